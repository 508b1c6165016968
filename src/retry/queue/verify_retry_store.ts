/** Looks at everything in a message store, in use or not, and says what does not fit together. Changes nothing. */
import { type MessageState, messageStates } from "./message_life.ts";
import { RetryDatabase } from "./retry_database.ts";
import { problemList, type ReportProblem, verifyPart, verifyTables } from "../../storage/verify_tables.ts";
import { stateNumbers } from "./retry_totals.ts";
import { schema, tables } from "./retry_tables.ts";

export interface RetryVerifyReport {
  readonly messages: number;
  readonly bytes: number;
  /** Sentences. None: all is well. */
  readonly problems: readonly string[];
}

/** Reads every row once. Throws CONFIG where there is no store of a known format, IO when it cannot be read at all. */
export function verifyRetryStore(folder: string): RetryVerifyReport {
  const database = new RetryDatabase(folder, { mustExist: true });
  const { problems, say } = problemList();
  try {
    return database.snapshot(() => {
      database.verify((rows) => verifyTables(rows, { schema, tables: Object.values(tables), say }));
      let [messages, bytes] = [0, 0];
      verifyPart("the messages", say, () => {
        const counted = verifyMessages(database, say);
        verifyTotals(database, counted, say);
        for (const { count, bytes: some } of Object.values(counted)) {
          [messages, bytes] = [messages + count, bytes + some];
        }
      });
      return { messages, bytes, problems };
    });
  } finally {
    database.close();
  }
}

type Counted = Record<MessageState, { count: number; bytes: number }>;

function verifyMessages(database: RetryDatabase, say: ReportProblem): Counted {
  const counted = Object.fromEntries(messageStates.map((state) => [state, { count: 0, bytes: 0 }])) as Counted;
  const rows = database.iterate(
    `SELECT m.*, length(b.body) AS body_bytes, p.id AS processor FROM messages AS m LEFT JOIN bodies AS b ON b.seq = m.seq
      LEFT JOIN processors AS p ON p.id = m.owner ORDER BY m.seq`,
  );
  for (const row of rows) {
    const what = `message ${row["seq"]}`;
    const state = messageStates[Number(row["state"])];
    if (state === undefined) {
      say(`${what} is in the state ${row["state"]}, which there is not`);
      continue;
    }
    const isKept = (state === "dead" && row["forwarding"] !== 3) || state === "waiting" || state === "in_flight";
    counted[state].count++;
    if (isKept) counted[state].bytes += Number(row["bytes"]);
    if (isKept && row["body_bytes"] === null) say(`${what} is ${state}, and its body is missing`);
    if (!isKept && row["body_bytes"] !== null) say(`${what} is ${state}, and still has a body`);
    if (isKept && row["body_bytes"] !== null && Number(row["body_bytes"]) !== Number(row["bytes"])) {
      say(`${what} has ${row["body_bytes"]} bytes, and ${row["bytes"]} were stored`);
    }
    if (state === "in_flight" && row["processor"] === null) say(`${what} is in flight, and nobody has it`);
    if (state !== "in_flight" && row["owner"] !== null) say(`${what} is ${state}, and process ${row["owner"]} has it`);
  }
  const lines =
    `SELECT key, sum(is_next) AS turns FROM messages WHERE state < 2 AND key IS NOT NULL GROUP BY key HAVING turns <> 1`;
  for (const row of database.iterate(lines)) say(`${row["turns"]} messages of the key ${row["key"]} have the turn`);
  const orphans = database.get("SELECT count(*) AS n FROM bodies WHERE seq NOT IN (SELECT seq FROM messages)");
  if (Number(orphans?.["n"]) > 0) say(`${orphans?.["n"]} bodies have no message`);
  return counted;
}

/** Of what is over the count goes on when its rows are forgotten. */
function verifyTotals(database: RetryDatabase, counted: Counted, say: ReportProblem): void {
  for (const state of ["waiting", "in_flight", "dead"] as const) {
    const row = database.get("SELECT count, bytes FROM totals WHERE state = ?", stateNumbers[state]);
    const { count, bytes } = counted[state];
    if (Number(row?.["count"] ?? 0) !== count) {
      say(`${count} messages are ${state}, and ${row?.["count"] ?? 0} are counted`);
    }
    if (Number(row?.["bytes"] ?? 0) !== bytes) {
      say(`what is ${state} takes ${bytes} bytes, and ${row?.["bytes"] ?? 0} are counted`);
    }
  }
}
