/**
 * Builds the SQL statement that commits a batch, which has all changes of many topics, in one round trip and one
 * transaction. The statement changes nothing in a topic if the topic's row has another epoch or revision than expected.
 * Pure.
 */
import { crc32 } from "node:zlib";
import type { SqlParameter, SqlStatement } from "../../../base/postgres/primary_connection.ts";
import { requireChangedRowsSql } from "../../../base/postgres/required_rows.ts";
import { computeChecksumOfValues } from "../../../base/storage/checksum_table.ts";
import { encodeResolvedPutCounters } from "../../wire/topic_records.ts";
import { encodeStoredName } from "../rows/topic_client.ts";
import { setTimelineColumnsSql } from "./postgres_tables.ts";
import type { LogRowHead, ResolvedCountersRow, TopicChange } from "../rows/topic_rows.ts";

/** The epoch and revision of a topic's row. If another server changes the row, it also changes these numbers. */
export interface TopicRowFence {
  readonly epoch: number;
  readonly revision: number;
}

export interface OpenTopicFence extends TopicRowFence {
  /** The last number that was given to a client or row of the topic. */
  numbers: number;
}

/** A change of a topic, with the state of the row that it requires. */
export interface FencedTopicChange {
  readonly change: TopicChange;
  readonly fence: TopicRowFence;
  /** The last number that was given to a client or row of the topic. */
  readonly numbers: number;
}

/** The columns of a list of rows. The statement has an array for each column. */
type ColumnTypes = Readonly<Record<string, "bigint" | "text" | "bytes">>;

/**
 * The lists of rows in the statement, in the order of its parameters. A column of bytes becomes two columns, offset and
 * length, because all bytes of a batch are sent in one parameter.
 */
const lists = {
  topics: {
    topic: "bigint",
    epoch: "bigint",
    revision: "bigint",
    last: "bigint",
    gone: "bigint",
    stored: "bigint",
    bytes: "bigint",
    clients: "bigint",
    registration: "bigint",
    numbers: "bigint",
  },
  added: {
    topic: "bigint",
    first: "bigint",
    last: "bigint",
    previous: "bigint",
    content_sum: "bigint",
    sum: "bigint",
    records: "bytes",
  },
  deleted: { topic: "bigint", low: "bigint", high: "bigint" },
  clients: {
    topic: "bigint",
    id: "bigint",
    name: "bytes",
    session: "bigint",
    key: "bytes",
    op: "bigint",
    op_session: "bigint",
    forgotten_session: "bigint",
    position: "bigint",
    registration: "bigint",
  },
  forgotten: { topic: "bigint", client: "bigint" },
  windows: { topic: "bigint", client: "bigint", session: "bigint", key: "bytes", first_unacked: "bigint" },
  deletedWindows: { topic: "bigint", client: "bigint", session: "bigint" },
  resolved: {
    topic: "bigint",
    client: "bigint",
    session: "bigint",
    id: "bigint",
    first_unacked: "bigint",
    sum: "bigint",
    entries: "bytes",
  },
  deletedResolved: { topic: "bigint", client: "bigint", session: "bigint", up_to: "bigint" },
  keys: {
    topic: "bigint",
    client: "bigint",
    id: "bigint",
    key: "bytes",
    message: "bigint",
    fingerprint: "bigint",
  },
  deletedKeys: { topic: "bigint", client: "bigint", id: "bigint" },
} as const satisfies Readonly<Record<string, ColumnTypes>>;

type ListName = keyof typeof lists;
type RowOf<Name extends ListName> = {
  readonly [Column in keyof typeof lists[Name]]: typeof lists[Name][Column] extends "bytes" ? Uint8Array
    : number | null;
};

/** Returns the columns of a list as parameters. A column `name` of bytes becomes `name_at` and `name_length`. */
function columnsOf(list: ListName): string[] {
  return Object.entries(lists[list] as ColumnTypes).flatMap(([name, type]) =>
    type === "bytes" ? [`${name}_at`, `${name}_length`] : [name]
  );
}

/** Returns a placeholder for the rows of a list, which `statementOf` replaces by numbered parameters. */
const rowsOf = (list: ListName, alias: string) => `ROWS.${list} AS ${alias}(${columnsOf(list).join(", ")})`;

/**
 * The condition for rows of topics that this statement writes. NOT IN is fast here, because the database computes the
 * list only one time.
 */
const isOwn = "NOT IN (SELECT topic FROM lost)";
const kept = (column: string) => `${column} = COALESCE(w.${column}, t.${column})`;
const overwritten = (columns: readonly string[]) =>
  columns.map((column) => `${column} = excluded.${column}`).join(", ");

/** A part of the statement. The part changes one table and returns a row for each changed row. */
interface StatementPart {
  readonly table: string;
  readonly kind: "insertion" | "deletion";
  readonly text: string;
  /** A query that returns one distinct row for each row that the part must change. */
  readonly wanted: string;
}

/**
 * Returns a part that inserts the rows of a list into a table with the same column names. `conflict` is the clause for
 * rows that exist already.
 */
function insertion(table: string, list: ListName, conflict = ""): StatementPart {
  const columns = Object.entries(lists[list] as ColumnTypes);
  const values = columns.map(([name, type]) =>
    type === "bytes" ? `substring($1::bytea FROM r.${name}_at::int FOR r.${name}_length::int)` : `r.${name}`
  );
  const rows = `FROM ${rowsOf(list, "r")} WHERE r.topic ${isOwn}`;
  return {
    table,
    kind: "insertion",
    wanted: `SELECT ${rows}`,
    text: `INSERT INTO SCHEMA.${table} (${columns.map(([name]) => name).join(", ")})
    SELECT ${values.join(", ")} ${rows} ${conflict} RETURNING 1`,
  };
}

function deletion(table: string, list: ListName, condition: string): StatementPart {
  const where = `WHERE d.topic = r.topic AND ${condition} AND r.topic ${isOwn}`;
  return {
    table,
    kind: "deletion",
    wanted: `SELECT d.ctid FROM SCHEMA.${table} AS d, ${rowsOf(list, "r")} ${where}`,
    text: `DELETE FROM SCHEMA.${table} AS d USING ${rowsOf(list, "r")} ${where} RETURNING 1`,
  };
}

/** The parts of the statement, by the list whose rows they write. */
const parts: Readonly<Record<Exclude<ListName, "topics">, readonly StatementPart[]>> = {
  added: [insertion("topic_message", "added")],
  deleted: [deletion("topic_message", "deleted", "d.first BETWEEN r.low AND r.high")],
  clients: [
    insertion(
      "topic_client",
      "clients",
      `ON CONFLICT (topic, id) DO UPDATE SET ${
        overwritten(["session", "key", "op", "op_session", "forgotten_session", "position"])
      }`,
    ),
  ],
  forgotten: [
    deletion("topic_client", "forgotten", "d.id = r.client"),
    deletion("topic_window", "forgotten", "d.client = r.client"),
    deletion("topic_resolved", "forgotten", "d.client = r.client"),
    deletion("topic_msg_id", "forgotten", "d.client = r.client"),
  ],
  windows: [
    insertion(
      "topic_window",
      "windows",
      `ON CONFLICT (topic, client, session) DO UPDATE SET ${overwritten(["key", "first_unacked"])}`,
    ),
  ],
  deletedWindows: [deletion("topic_window", "deletedWindows", "d.client = r.client AND d.session = r.session")],
  resolved: [insertion("topic_resolved", "resolved")],
  deletedResolved: [
    deletion("topic_resolved", "deletedResolved", "d.client = r.client AND d.session = r.session AND d.id <= r.up_to"),
  ],
  keys: [insertion("topic_msg_id", "keys")],
  deletedKeys: [deletion("topic_msg_id", "deletedKeys", "d.client = r.client AND d.id = r.id")],
};

/**
 * Returns conditions that the parts p0, p1 and so on have changed all rows that they must change. Counts the deletions
 * of a table together, because two parts may delete the same row, which the database deletes only once.
 */
function conditionsOf(changed: readonly StatementPart[]): string {
  const indexed = changed.map((part, index) => ({ ...part, index }));
  const groups = Map.groupBy(indexed, ({ table, kind }) => `${kind} ${table}`);
  return [...groups.values()].map((group) => {
    const { table = "", kind } = group[0] ?? {};
    const counts = group.map(({ index }) => `(SELECT count(*) FROM p${index})`).join(" + ");
    const wanted = group.map((part) => part.wanted).join(" UNION ");
    const distinct = kind === "deletion" && group.length === 1 ? wanted.replace("SELECT", "SELECT DISTINCT") : wanted;
    return ` AND ${requireChangedRowsSql(table, `(${counts})`, `(SELECT count(*) FROM (${distinct}) w)`)}`;
  }).join("");
}

const listNames = Object.keys(lists) as ListName[];

/**
 * Returns the statement for batches that have rows in these lists. The statement returns the ids of the written topics.
 * The parts of a statement do not see each other's changes, so `addChange` omits a row that a batch inserts and
 * deletes.
 */
function statementOf(used: readonly ListName[]): SqlStatement {
  let next = 2; // $1 is the parameter with all bytes
  const rows = new Map(used.map((list) => [
    list,
    `unnest(${columnsOf(list).map(() => `$${next++}::bigint[]`).join(", ")})`,
  ]));
  const changed = used.flatMap((list) => list === "topics" ? [] : parts[list]);
  const text = `WITH want AS (SELECT * FROM ${rowsOf("topics", "w")}),
  own AS (UPDATE SCHEMA.topic AS t SET revision = t.revision + 1, ${setTimelineColumnsSql}, ${
    ["last", "gone", "stored", "bytes", "clients", "registration", "numbers"].map(kept).join(", ")
  } FROM want w WHERE t.id = w.topic AND t.epoch = w.epoch AND t.revision = w.revision AND t.sealed_for IS NULL
    RETURNING t.id),
  lost AS (SELECT topic FROM want EXCEPT SELECT id FROM own)${
    changed.map(({ text }, index) => `,\n  p${index} AS (${text})`).join("")
  }
  SELECT id FROM own WHERE $1::bytea IS NOT NULL${conditionsOf(changed)}`; // an unused parameter has no type
  const name = `topic_batch_${used.map((list) => listNames.indexOf(list).toString(36)).join("")}`;
  return { name, text: text.replaceAll(/ROWS\.(\w+)/g, (_, list) => rows.get(list as ListName) ?? "") };
}

/**
 * The statements, by the lists that they use. A part without rows would cost time, and batches use few combinations of
 * lists.
 */
const statements = new Map<string, SqlStatement>();

export function topicBatchStatement(
  changes: readonly FencedTopicChange[],
): { readonly statement: SqlStatement; readonly values: SqlParameter[] } {
  const values = new ListValues();
  // Writes the topics in the same order in all statements. Two servers that write the same topics then rarely deadlock.
  for (const fenced of [...changes].sort((a, b) => a.change.topicId - b.change.topicId)) addChange(values, fenced);
  const used = values.used();
  const key = used.join(" ");
  let statement = statements.get(key);
  if (statement === undefined) statements.set(key, statement = statementOf(used));
  return { statement, values: values.parameters(used) };
}

function addChange(values: ListValues, { change, fence: { epoch, revision }, numbers }: FencedTopicChange): void {
  const { topicId: topic, row } = change;
  const ends = row ?? { last: null, gone: null, stored: null, bytes: null, clients: null, registration: null };
  const { last, gone, stored, bytes, clients, registration } = ends;
  values.add("topics", { topic, epoch, revision, last, gone, stored, bytes, clients, registration, numbers });
  for (const { head, records } of change.added) values.add("added", messageColumns(topic, head, records));
  const oldest = change.deleted[0];
  const newest = change.deleted.at(-1);
  // The deleted rows of a commit follow each other without gaps.
  if (oldest !== undefined && newest !== undefined) {
    values.add("deleted", { topic, low: oldest.first, high: newest.first });
  }
  for (const client of change.forgottenClients) values.add("forgotten", { topic, client });
  for (const client of change.clients) {
    const { id, session, op, opSession: op_session, forgottenSession: forgotten_session, position } = client;
    const texts = { name: encodeStoredName(client.name), key: encodeStoredName(client.key) };
    const numbersOf = { topic, id, session, op, op_session, forgotten_session, position };
    values.add("clients", { ...numbersOf, ...texts, registration: client.registration });
  }
  addPuts(values, change);
}

function addPuts(values: ListValues, change: TopicChange): void {
  const { topicId: topic } = change;
  // A transfer may have several records of the same window. Only the last record is stored.
  const windows = new Map(change.windows.map((window) => [`${window.client} ${window.session}`, window]));
  for (const { client, session, key, firstUnacked } of windows.values()) {
    values.add("windows", { topic, client, session, key: encodeStoredName(key), first_unacked: firstUnacked });
  }
  const upTo = new Map(change.deletedResolved.map((rows) => [`${rows.client} ${rows.session}`, rows.upTo]));
  for (const { client, session } of change.deletedWindows) {
    values.add("deletedResolved", { topic, client, session, up_to: Number.MAX_SAFE_INTEGER });
    // A window that was created again is overwritten, not deleted.
    if (!windows.has(`${client} ${session}`)) values.add("deletedWindows", { topic, client, session });
  }
  for (const { client, session, upTo: up_to } of change.deletedResolved) {
    values.add("deletedResolved", { topic, client, session, up_to });
  }
  for (const row of change.resolved) {
    if (row.id <= (upTo.get(`${row.client} ${row.session}`) ?? -1)) continue;
    const entries = encodeResolvedPutCounters(row.entries);
    const { id, client, session, firstUnacked: first_unacked } = row;
    const sum = resolvedRowChecksum(topic, row, entries);
    values.add("resolved", { topic, client, session, id, first_unacked, sum, entries });
  }
  for (const { id, client, key, message, fingerprint } of change.keys) {
    values.add("keys", { topic, client, id, key: encodeStoredName(key), message, fingerprint });
  }
  for (const { client, id } of change.deletedKeys) values.add("deletedKeys", { topic, client, id });
}

/**
 * Returns the columns of a row of messages. The columns other than `records` have a separate checksum, so that they can
 * be read without the records.
 */
function messageColumns(topic: number, head: LogRowHead, records: Uint8Array): RowOf<"added"> {
  const { first, last, previous } = head;
  const content_sum = crc32(records);
  return { topic, first, last, previous, content_sum, sum: messageRowChecksum(topic, head, content_sum), records };
}

export function messageRowChecksum(
  topic: number,
  { first, last, previous, bytes }: LogRowHead,
  contentSum: number,
): number {
  return computeChecksumOfValues([topic, first, last, previous, bytes, contentSum]);
}

export function resolvedRowChecksum(
  topic: number,
  { client, session, id, firstUnacked }: Omit<ResolvedCountersRow, "entries">,
  entries: Uint8Array,
): number {
  return computeChecksumOfValues([topic, client, session, id, firstUnacked, entries]);
}

/** Collects the rows of all lists as arrays of their columns, and the bytes of all rows in one parameter. */
class ListValues {
  readonly #columns = new Map<ListName, (number | null)[][]>();
  readonly #pieces: Uint8Array[] = [];
  /** The offset of the next byte, counted from 1. */
  #at = 1;

  add<Name extends ListName>(list: Name, row: RowOf<Name>): void {
    let columns = this.#columns.get(list);
    if (columns === undefined) this.#columns.set(list, columns = columnsOf(list).map(() => []));
    let column = 0;
    for (const name of Object.keys(lists[list])) {
      const value = (row as Readonly<Record<string, Uint8Array | number | null>>)[name] ?? null;
      if (value === null || typeof value === "number") columns[column++]?.push(value);
      else {
        columns[column++]?.push(this.#at);
        columns[column++]?.push(value.byteLength);
        this.#pieces.push(value);
        this.#at += value.byteLength;
      }
    }
  }

  /** Returns the lists that have rows, in the order of the parameters. */
  used(): ListName[] {
    return listNames.filter((list) => this.#columns.has(list));
  }

  parameters(used: readonly ListName[]): SqlParameter[] {
    const arrays = used.flatMap((list) => this.#columns.get(list) ?? []).map((column) =>
      `{${column.map((value) => value ?? "NULL").join(",")}}`
    );
    return [Buffer.concat(this.#pieces), ...arrays];
  }
}
