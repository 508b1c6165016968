/** Checks a whole topic store, even while a server uses it, and reports inconsistent data. Changes nothing. */
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { errorMessage } from "../../../base/errors.ts";
import { noProgress, type WorkProgress } from "../../../base/support/work_progress.ts";
import { countWithNoun } from "../../../base/support/text.ts";
import { findWalDamage } from "../../../base/storage/wal_check.ts";
import {
  newProblemList,
  type ReportStoreProblem,
  verifyStorePart,
  verifyStoreTables,
} from "../../../base/storage/verify_tables.ts";
import { decodeResolvedPutCounters, messageRecordAt, messageRecordOffsets } from "../../wire/topic_records.ts";
import { decodeStoredName, describeTopicRow } from "../rows/topic_client.ts";
import { describeDamagedRow, formatMessageRange } from "../../../base/storage/damage.ts";
import { describeDamagedMessages, isIntactMessageRow } from "./sqlite_log_rows.ts";
import { openTopicStoreToRead, type SqlRow, topicDatabaseName } from "./topic_database.ts";
import { messageRowStates, sqliteTopicStates, sqliteTopicTables, topicStoreSchema } from "./topic_tables.ts";

export interface TopicStoreReport {
  readonly topics: number;
  readonly messages: number;
  readonly clients: number;
  /** Problems as sentences; empty if there are none. */
  readonly problems: readonly string[];
}

/** The numbers of an undamaged topic row, and the title of the topic for messages. */
type VerifiedTopic =
  & { readonly title: string }
  & Record<"id" | "last" | "gone" | "stored" | "bytes" | "clients", number>;

/**
 * Reads every row of a store once. Throws CONFIG if there is no store of a known format, or IO if the store cannot be
 * read at all.
 */
export function verifyTopicStore(dataDir: string, progress: WorkProgress = noProgress): TopicStoreReport {
  const damage = findWalDamage(join(dataDir, topicDatabaseName));
  const database = openTopicStoreToRead(dataDir);
  try {
    const report = verifyTopicDatabase(database, progress);
    return damage === null ? report : { ...report, problems: [damage, ...report.problems] };
  } finally {
    database.close();
  }
}

/** Checks an open database in one consistent snapshot. Changes nothing. */
export function verifyTopicDatabase(database: DatabaseSync, progress: WorkProgress = noProgress): TopicStoreReport {
  const { problems, addProblem } = newProblemList();
  const report = { topics: 0, messages: 0, clients: 0 };
  database.exec("BEGIN");
  verifyStoreTables(database, {
    schema: topicStoreSchema,
    tables: Object.values(sqliteTopicTables),
    addProblem,
    progress,
    columns: { messages: ", records" },
    damaged: (table, row) => {
      const isMessages = table.name === "messages";
      if (isMessages ? isIntactMessageRow(row) : table.isIntact(row)) return null;
      const where = table.name === "topics" ? describeTopicRow(row["name"]) : describeTopic(database, row);
      return isMessages ? describeDamagedMessages(row, where) : describeDamagedRow(table.name, row["id"], where);
    },
  });
  progress.startPart({ noun: "topic", verb: "checked", total: null });
  verifyStorePart("the topics", addProblem, () => {
    for (const row of readRows(database, "SELECT * FROM topics NOT INDEXED")) {
      verifyTopic(database, row, { addProblem, report });
      progress.add(1);
    }
  });
  verifyStorePart("the messages", addProblem, () => {
    const strays =
      "SELECT topic, count(*) AS n FROM messages WHERE topic NOT IN (SELECT id FROM topics) GROUP BY topic";
    for (const { topic, n } of readRows(database, strays)) {
      addProblem(`${countWithNoun(Number(n), "row")} of messages left of topic ${topic}, which no longer exists`);
    }
  });
  return { ...report, problems };
}

function describeTopic(database: DatabaseSync, { topic }: SqlRow): string {
  try {
    if (typeof topic !== "number") return "of this store";
    const name = database.prepare("SELECT name FROM topics WHERE id = ?").get(topic)?.["name"];
    return `of topic ${JSON.stringify(decodeStoredName(name))}`;
  } catch {
    return `of topic ${topic}, whose name cannot be read`;
  }
}

function verifyTopic(database: DatabaseSync, row: SqlRow, { addProblem, report }: {
  readonly addProblem: ReportStoreProblem;
  readonly report: { topics: number; messages: number; clients: number };
}): void {
  if (Number(row["state"]) === sqliteTopicStates.dropped || Number(row["state"]) === sqliteTopicStates.receiving) {
    return;
  }
  report.topics++;
  if (!sqliteTopicTables.topics.isIntact(row)) return; // the row was reported already, and its numbers are unknown
  const title = `topic ${JSON.stringify(decodeStoredName(row["name"]))}`;
  const topic = { ...row, title } as SqlRow & VerifiedTopic;
  verifyClients(database, topic, addProblem, report);
  verifyMessages(database, topic, addProblem, report);
}

function verifyClients(
  database: DatabaseSync,
  { id, title, last, clients }: VerifiedTopic,
  addProblem: ReportStoreProblem,
  report: { clients: number },
): void {
  let found = 0;
  for (const row of readRows(database, "SELECT * FROM clients WHERE topic = ?", id)) {
    found++;
    const client = JSON.stringify(decodeStoredName(row["name"]));
    const position = row["position"] === null ? null : Number(row["position"]);
    if (position !== null && position > last) {
      addProblem(`${title}: ${client} is at message ${position}, but the newest is ${last}`);
    }
    for (
      const window of readRows(
        database,
        "SELECT id, session, entries FROM resolved WHERE client = ?",
        Number(row["id"]),
      )
    ) {
      try {
        for (const entry of decodeResolvedPutCounters(window["entries"] as Uint8Array)) {
          if (entry.id > last) {
            addProblem(
              `${title}: counter ${entry.counter} of ${client} is message ${entry.id}, but the newest is ${last}`,
            );
          }
        }
      } catch (error) {
        addProblem(`${title}: row ${window["id"]} of the counters of ${client} is damaged: ${errorMessage(error)}`);
      }
    }
  }
  if (found !== clients) addProblem(`${title}: ${clients} clients were stored, but ${found} were found`);
  report.clients += found;
}

function verifyMessages(
  database: DatabaseSync,
  { id, title, last, gone, stored, bytes }: VerifiedTopic,
  addProblem: ReportStoreProblem,
  report: { messages: number },
): void {
  let before = gone;
  let sum = 0;
  // Messages without a subscriber are not stored, so each row contains the number of the last message in the previous
  // row.
  const missing = (previous: number) => {
    if (previous > before) addProblem(`${formatMessageRange(before + 1, previous)} of ${title}: the row is missing`);
  };
  for (const row of readRows(database, "SELECT * FROM messages WHERE topic = ? ORDER BY first", id)) {
    const first = Number(row["first"]);
    const end = Number(row["last"]);
    const records = row["records"] as Uint8Array;
    const where = `${title}: row ${row["id"]} of the messages`;
    missing(Number(row["previous"]));
    if (first <= before) addProblem(`${where} starts at ${first}, but the row before it ends at ${before}`);
    if (end > last) addProblem(`${where} ends at ${end}, but the newest is ${last}`);
    sum += records.byteLength;
    before = end;
    if (row["state"] === messageRowStates.givenUp) continue;
    report.messages += end - first + 1;
    try {
      const ids = messageRecordOffsets(records).map((offset) => messageRecordAt(records, offset).id);
      if (ids.length !== end - first + 1 || ids.some((found, index) => found !== first + index)) {
        addProblem(`${where} has messages ${ids[0]} to ${ids.at(-1)}, not ${first} to ${end}`);
      }
    } catch (error) {
      addProblem(`${where} is damaged: ${errorMessage(error)}`);
    }
  }
  missing(stored);
  if (sum !== bytes) addProblem(`${title}: its messages take ${sum} bytes, but ${bytes} are counted`);
}

function* readRows(database: DatabaseSync, sql: string, ...values: number[]): Generator<SqlRow, void, void> {
  yield* database.prepare(sql).iterate(...values) as IterableIterator<SqlRow>;
}
