/**
 * Checks everything in a message store, even while the store is in use, and reports inconsistencies. Changes nothing.
 */
import { type MessageState, messageStates } from "../message_life.ts";
import { RetryDatabase } from "./retry_database.ts";
import type { RetryVerifyReport } from "../store_methods.ts";
import { noProgress, type WorkProgress } from "../../../base/support/work_progress.ts";
import {
  newProblemList,
  type ReportStoreProblem,
  verifyStorePart,
  verifyStoreTables,
} from "../../../base/storage/verify_tables.ts";
import { stateNumbers } from "../message_row.ts";
import { sqliteRetrySchema, sqliteRetryTables } from "./retry_tables.ts";

/**
 * Checks a store, and reads every row once. Throws CONFIG if there is no store of a known format, or IO if it cannot be
 * read.
 */
export function verifyRetryStore(folder: string, progress: WorkProgress = noProgress): RetryVerifyReport {
  const database = new RetryDatabase(folder, { mustExist: true });
  const { problems, addProblem } = newProblemList();
  try {
    return database.readSnapshot(() => {
      verifyStoreTables(database.database, {
        schema: sqliteRetrySchema,
        tables: Object.values(sqliteRetryTables),
        addProblem,
        progress,
      });
      progress.startPart({ noun: "message", verb: "checked", total: null });
      let messages = 0;
      let bytes = 0;
      verifyStorePart("the messages", addProblem, () => {
        const counted = verifyMessages(database, addProblem, progress);
        verifyTotals(database, counted, addProblem);
        for (const { count, bytes: some } of Object.values(counted)) {
          messages += count;
          bytes += some;
        }
      });
      return { messages, bytes, problems };
    });
  } finally {
    database.close();
  }
}

type CountedStates = Record<MessageState, { count: number; bytes: number }>;

function verifyMessages(
  database: RetryDatabase,
  addProblem: ReportStoreProblem,
  progress: WorkProgress,
): CountedStates {
  const counted = Object.fromEntries(messageStates.map((state) => [state, { count: 0, bytes: 0 }])) as CountedStates;
  const rows = database.iterate(
    `SELECT m.*, length(b.body) AS body_bytes, p.id AS processor FROM messages AS m
      LEFT JOIN bodies AS b ON b.seq = m.seq LEFT JOIN processors AS p ON p.id = m.owner ORDER BY m.seq`,
  );
  for (const row of rows) {
    progress.add(1);
    const what = `message ${row["seq"]}`;
    const state = messageStates[Number(row["state"])];
    if (state === undefined) {
      addProblem(`${what} is in the unknown state ${row["state"]}`);
      continue;
    }
    const isKept = (state === "dead" && row["forwarding"] !== 3) || state === "waiting" || state === "in_flight";
    counted[state].count++;
    if (isKept) counted[state].bytes += Number(row["bytes"]);
    if (isKept && row["body_bytes"] === null) addProblem(`${what} is ${state}, but its body is missing`);
    if (!isKept && row["body_bytes"] !== null) addProblem(`${what} is ${state}, but still has a body`);
    if (isKept && row["body_bytes"] !== null && Number(row["body_bytes"]) !== Number(row["bytes"])) {
      addProblem(`${what} has ${row["body_bytes"]} bytes, but ${row["bytes"]} were stored`);
    }
    if (state === "in_flight" && row["processor"] === null) {
      addProblem(`${what} is in flight, but no processor owns it`);
    }
    if (state !== "in_flight" && row["owner"] !== null) {
      addProblem(`${what} is ${state}, but processor ${row["owner"]} owns it`);
    }
  }
  const lines = "SELECT key, sum(is_next) AS heads FROM messages WHERE state < 2 AND key IS NOT NULL GROUP BY key " +
    "HAVING heads <> 1";
  for (const row of database.iterate(lines)) {
    addProblem(`${row["heads"]} messages with the key ${row["key"]} are next, instead of 1`);
  }
  const unmarked = database.get(
    "SELECT count(*) AS n FROM messages WHERE state < 2 AND key IS NULL AND is_next = 0",
  );
  if (Number(unmarked?.["n"]) > 0) addProblem(`${unmarked?.["n"]} messages without a key are not marked as next`);
  const orphans = database.get("SELECT count(*) AS n FROM bodies WHERE seq NOT IN (SELECT seq FROM messages)");
  if (Number(orphans?.["n"]) > 0) addProblem(`${orphans?.["n"]} bodies belong to no message`);
  return counted;
}

/**
 * Checks the totals of the states that have a body. Other totals include removed messages, so they cannot be checked.
 */
function verifyTotals(database: RetryDatabase, counted: CountedStates, addProblem: ReportStoreProblem): void {
  for (const state of ["waiting", "in_flight", "dead"] as const) {
    const row = database.get("SELECT count, bytes FROM totals WHERE state = ?", stateNumbers[state]);
    const { count, bytes } = counted[state];
    if (Number(row?.["count"] ?? 0) !== count) {
      addProblem(`${count} messages are ${state}, but the total is ${row?.["count"] ?? 0}`);
    }
    if (Number(row?.["bytes"] ?? 0) !== bytes) {
      addProblem(`messages that are ${state} have ${bytes} bytes, but the total is ${row?.["bytes"] ?? 0}`);
    }
  }
}
