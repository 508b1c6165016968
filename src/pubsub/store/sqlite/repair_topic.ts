/**
 * Gives up the damaged data of a topic, in the open transaction. A marker row replaces damaged or missing messages, so
 * that subscribers learn that they have missed these messages. The topic forgets clients with damaged rows, and all
 * puts of clients with damaged counters. The topic's registration number increases: the topic then treats no earlier
 * request as new.
 */
import { BatonError } from "../../../base/errors.ts";
import { isSqliteDamageError } from "../../../base/storage/checksum_table.ts";
import { decodeStoredName } from "../rows/topic_client.ts";
import { deleteRowsDespiteDamage, rebuildIndexesAfter } from "./delete_rows.ts";
import { formatMessageRange, readOrIfDamaged } from "../../../base/storage/damage.ts";
import { insertMessageRow, isIntactMessageRow } from "./sqlite_log_rows.ts";
import type { SqlRow, TopicDatabase } from "./topic_database.ts";
import type { SqliteTopics } from "./sqlite_topics.ts";
import type { TopicRow } from "../rows/topic_rows.ts";
import { messageRowStates, sqliteTopicTables } from "./topic_tables.ts";

/** The clients with puts that an index does not find; "all" if an index cannot be read. */
type DamagedIndexes = TopicDatabase["damagedIndexes"];

/**
 * Repairs a topic. Returns descriptions of the data that was given up. `isDamaged` is true if damage to the topic's
 * clients is known. The topic must be loaded again. If the tables cannot be read, throws BAD_DATA and changes nothing.
 */
export function repairTopic(
  database: TopicDatabase,
  topics: SqliteTopics,
  topic: TopicRow,
  isDamaged: boolean,
): string[] {
  let done: string[] = [];
  const repair = (indexes: DamagedIndexes) =>
    done = repairInTransaction(database, topics, { topic, isDamaged, indexes });
  if (database.runUnlessDamaged(() => void repair(database.damagedIndexes)) === null) return done;
  // If an index cannot be read, only the tables are used, and all clients count as damaged.
  const refusal = database.runUnlessDamaged(() => {
    for (const table of ["resolved", "msg_ids"]) rebuildIndexesAfter(database, table, () => {});
    rebuildIndexesAfter(database, "messages", () => rebuildIndexesAfter(database, "clients", () => void repair("all")));
  });
  if (refusal === null) return done;
  const why = `topic ${JSON.stringify(topic.name)} cannot be repaired, because its rows cannot be read: ${refusal}`;
  throw new BatonError("BAD_DATA", why);
}

function repairInTransaction(
  database: TopicDatabase,
  topics: SqliteTopics,
  { topic, isDamaged, indexes }: {
    readonly topic: TopicRow;
    readonly isDamaged: boolean;
    readonly indexes: DamagedIndexes;
  },
): string[] {
  const { bytes, done } = repairMessages(database, topics, topic);
  const { id, registration } = topic;
  const next = registration + 1;
  const clients = repairClients(database, topic, next, indexes);
  const all = [...done, ...clients.done];
  if (all.length === 0 && isDamaged) all.push("the index of its clients (rebuilt)");
  if (all.length === 0) return all;
  for (const table of ["messages", "clients", "resolved", "msg_ids"]) rebuildIndexesAfter(database, table, () => {});
  topics.change(id, { bytes, clients: clients.count, registration: next });
  return all;
}

function repairMessages(
  database: TopicDatabase,
  topics: SqliteTopics,
  { id, gone, stored }: TopicRow,
): { readonly bytes: number; readonly done: string[] } {
  const whole = deleteDamagedRows(database, "messages", id, (row) => {
    return isIntactMessageRow(row) && row["topic"] === id && Number(row["first"]) > gone &&
      Number(row["last"]) <= stored;
  }, { columns: ", records" }).sort((a, b) => Number(a["first"]) - Number(b["first"]));
  const done: string[] = [];
  let before = gone;
  let bytes = 0;
  const giveUp = (last: number) => {
    if (last <= before) return;
    const range = { first: before + 1, last, previous: before, bytes: 0 };
    insertMessageRow(
      database,
      { ...range, id: topics.numbers.message(id, range.first), topic: id },
      new Uint8Array(0),
      messageRowStates.givenUp,
    );
    done.push(formatMessageRange(before + 1, last));
  };
  for (const row of whole) {
    giveUp(Number(row["previous"]));
    before = Number(row["last"]);
    bytes += Number(row["bytes"]);
  }
  giveUp(stored);
  return { bytes, done };
}

function repairClients(
  database: TopicDatabase,
  topic: TopicRow,
  registration: number,
  indexes: DamagedIndexes,
): { readonly count: number; readonly done: string[] } {
  const isWhole = (row: SqlRow) => sqliteTopicTables.clients.isIntact(row) && row["topic"] === topic.id;
  const whole = deleteDamagedRows(database, "clients", topic.id, isWhole, { onLost: (id) => deletePuts(database, id) });
  const lost = topic.clients - whole.length;
  const done = lost > 0 ? [`clients whose names cannot be read: ${lost}`] : [];
  for (const row of whole) {
    const isFound = indexes !== "all" && !indexes.has(Number(row["id"]));
    if (isFound && hasWholeCounters(database, Number(row["id"]))) continue;
    deletePuts(database, Number(row["id"]));
    // Earlier puts are refused from now on, because it is unknown whether they were stored.
    const next = { ...row, registration } as Parameters<typeof sqliteTopicTables.clients.valuesToBind>[0];
    const sql = "UPDATE clients SET registration = ?, sum = ? WHERE id = ?";
    database.run(sql, registration, sqliteTopicTables.clients.checksumOfRow(next), Number(row["id"]));
    done.push(`what client ${JSON.stringify(decodeStoredName(row["name"]))} has put`);
  }
  return { count: whole.length, done };
}

/**
 * Deletes all rows of a client's puts, even if the client no longer exists, because a new client may get the same id.
 */
function deletePuts(database: TopicDatabase, client: number): void {
  for (const table of ["windows", "resolved", "msg_ids"]) {
    deleteRowsDespiteDamage(database, table, "client = ?", client);
  }
}

function hasWholeCounters(database: TopicDatabase, client: number): boolean {
  const check = () =>
    [sqliteTopicTables.windows, sqliteTopicTables.resolved, sqliteTopicTables.msg_ids].every((table) => {
      const rows = database.all(`SELECT ${table.allColumns} FROM ${table.name} WHERE client = ?`, client);
      return rows.every((row) => table.isIntact(row));
    });
  return readOrIfDamaged(false, check, isSqliteDamageError);
}

/** Deletes the damaged rows of a topic. Returns the undamaged rows without their records. */
function deleteDamagedRows(
  database: TopicDatabase,
  name: "messages" | "clients",
  topic: number,
  isWhole: (row: SqlRow) => boolean,
  { columns = "", onLost = () => {} }: { readonly columns?: string; readonly onLost?: (id: number) => void } = {},
): SqlRow[] {
  const table = sqliteTopicTables[name];
  // The IDs come from the table and from the index, because a damaged row may contain anything.
  const ids = new Set<number>();
  for (const how of ["NOT INDEXED", ""]) {
    for (const row of database.all(`SELECT id FROM ${name} ${how} WHERE topic = ?`, topic)) ids.add(Number(row["id"]));
  }
  const whole: SqlRow[] = [];
  for (const id of ids) {
    const row = database.get(`SELECT ${table.allColumns}${columns} FROM ${name} WHERE id = ?`, id);
    if (row !== undefined && isWhole(row)) whole.push({ ...row, records: null });
    else if (row === undefined || row["topic"] === topic || !table.isIntact(row)) {
      deleteRowsDespiteDamage(database, name, "id = ?", id);
      onLost(id);
    }
  }
  return whole;
}
