/** Looks at everything in a topic store, in use or not, and says what does not fit together. Changes nothing. */
import type { DatabaseSync } from "node:sqlite";
import { messageOf } from "../../../errors.ts";
import { counted } from "../../../support/counted.ts";
import { decodeResolved, messageAt, messageOffsets } from "../../../wire/pubsub/topic_data.ts";
import { nameOf } from "./client.ts";
import { openToRead, places, type SqlRow } from "./topic_database.ts";

/** Problems that are told; the rest is as many. */
const problemsMax = 100;

export interface StoreReport {
  readonly topics: number;
  readonly messages: number;
  readonly clients: number;
  /** Sentences. None: all is well. */
  readonly problems: readonly string[];
}

interface TopicRows {
  readonly id: number;
  readonly title: string;
  readonly last: number;
  readonly bytes: number;
}

/** Reads every row once. Throws CONFIG where there is no store of a known format, IO when it cannot be read at all. */
export function verifyStore(dataDir: string): StoreReport {
  const database = openToRead(dataDir);
  const problems: string[] = [];
  const say = (problem: string) => {
    if (problems.length < problemsMax) problems.push(problem);
  };
  const report = { topics: 0, messages: 0, clients: 0 };
  try {
    database.exec("BEGIN"); // one moment, whatever is written meanwhile
    for (const row of rows(database, "PRAGMA integrity_check")) {
      if (row["integrity_check"] !== "ok") say(`SQLite: ${row["integrity_check"]}`);
    }
    for (const row of rows(database, "SELECT * FROM topics")) {
      if (Number(row["place"]) === places.dropped || Number(row["place"]) === places.arriving) continue;
      report.topics++;
      const topic = {
        id: Number(row["id"]),
        title: `topic ${JSON.stringify(nameOf(row["name"]))}`,
        last: Number(row["last"]),
        bytes: Number(row["bytes"]),
      };
      const slowest = verifyClients(database, topic, say, report);
      verifyMessages(database, topic, { slowest, say, report });
    }
    const strays =
      "SELECT topic, count(*) AS n FROM messages WHERE topic NOT IN (SELECT id FROM topics) GROUP BY topic";
    for (const { topic, n } of rows(database, strays)) {
      say(`${counted(Number(n), "row")} of messages left of topic ${topic}, which is not there any more`);
    }
  } finally {
    database.close();
  }
  return { ...report, problems };
}

/** The last message that the slowest subscriber had; null when nobody is subscribed. */
function verifyClients(
  database: DatabaseSync,
  { id, title, last }: TopicRows,
  say: (problem: string) => void,
  report: { clients: number },
): number | null {
  let slowest: number | null = null;
  for (const row of rows(database, "SELECT * FROM clients WHERE topic = ?", id)) {
    report.clients++;
    const client = JSON.stringify(nameOf(row["name"]));
    const position = row["position"] === null ? null : Number(row["position"]);
    if (position !== null && position > last) {
      say(`${title}: ${client} has had message ${position}, and ${last} is the newest`);
    }
    if (position !== null) slowest = Math.min(slowest ?? position, position);
    for (
      const window of rows(database, "SELECT id, session, entries FROM resolved WHERE client = ?", Number(row["id"]))
    ) {
      try {
        for (const entry of decodeResolved(window["entries"] as Uint8Array)) {
          if (entry.id > last) {
            say(`${title}: counter ${entry.counter} of ${client} is message ${entry.id}, and ${last} is the newest`);
          }
        }
      } catch (error) {
        say(`${title}: row ${window["id"]} of the counters of ${client} is damaged: ${messageOf(error)}`);
      }
    }
  }
  return slowest;
}

function verifyMessages(database: DatabaseSync, { id, title, last, bytes }: TopicRows, { slowest, say, report }: {
  readonly slowest: number | null;
  readonly say: (problem: string) => void;
  readonly report: { messages: number };
}): void {
  let before: number | null = null;
  let sum = 0;
  for (const row of rows(database, "SELECT * FROM messages WHERE topic = ? ORDER BY first", id)) {
    const [first, end, records] = [Number(row["first"]), Number(row["last"]), row["records"] as Uint8Array];
    const where = `${title}: row ${row["id"]} of the messages`;
    // Messages that were put while nobody was subscribed are not stored; behind a subscriber's place none may be missing.
    if (before !== null && first !== before + 1 && slowest !== null && slowest < first - 1) {
      say(`${title}: message ${Math.max(before, slowest) + 1} is missing`);
    }
    if (before !== null && first <= before) say(`${where} begins at ${first}, and ${before} was there before`);
    if (end > last) say(`${where} ends at ${end}, and ${last} is the newest`);
    sum += records.byteLength;
    report.messages += end - first + 1;
    before = end;
    try {
      const offsets = messageOffsets(records);
      const ids = offsets.map((offset) => messageAt(records, offset).id);
      if (ids.length !== end - first + 1 || ids.some((found, index) => found !== first + index)) {
        say(`${where} has messages ${ids[0]} to ${ids.at(-1)}, and not ${first} to ${end}`);
      }
    } catch (error) {
      say(`${where} is damaged: ${messageOf(error)}`);
    }
  }
  if (sum !== bytes) say(`${title}: its messages take ${sum} bytes, and ${bytes} are counted`);
}

function* rows(database: DatabaseSync, sql: string, ...values: number[]): Generator<SqlRow, void, void> {
  yield* database.prepare(sql).iterate(...values) as IterableIterator<SqlRow>;
}
