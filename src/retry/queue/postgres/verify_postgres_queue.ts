/** Checks a message store in PostgreSQL. Changes nothing. */
import { noProgress, type WorkProgress } from "../../../base/support/work_progress.ts";
import { keepsContent, messageStateInRow, textInRow } from "../message_row.ts";
import type { RetryVerifyReport } from "../store_methods.ts";
import { type PostgresQueue, readContent } from "./postgres_queue.ts";

/** The number of messages that are read at a time, and the most problems that are reported. */
const verifyPageRows = 200;
const problemsMax = 100;

/**
 * Checks contents, owners, and which message of each key is next; works even while the queue is in use. Each message is
 * read once, together with its content, but pages are read at different moments.
 */
export async function verifyPostgresQueue(
  queue: PostgresQueue,
  progress: WorkProgress = noProgress,
): Promise<RetryVerifyReport> {
  const problems: string[] = [];
  const addProblem = (sentence: string) => void (problems.length < problemsMax && problems.push(sentence));
  const { messages, bytes } = await verifyMessages(queue, addProblem, progress);
  const turns = `SELECT key, count(*) FILTER (WHERE turn) AS heads FROM SCHEMA.retry
  WHERE queue = $1 AND state < 2 AND key IS NOT NULL
  GROUP BY key HAVING count(*) FILTER (WHERE turn) <> 1 LIMIT ${problemsMax}`;
  for (const row of await queue.run("queue_verify_turns", turns, [queue.id])) {
    addProblem(`${row["heads"]} messages with the key ${textInRow(row["key"])} are next, instead of 1`);
  }
  const orphans = `SELECT count(*) AS count FROM SCHEMA.retry_body b WHERE b.queue = $1
  AND NOT EXISTS (SELECT 1 FROM SCHEMA.retry r WHERE r.queue = b.queue AND r.seq = b.seq)`;
  const [row] = await queue.run("queue_verify_bodies", orphans, [queue.id]);
  if (Number(row?.["count"]) > 0) addProblem(`${row?.["count"]} bodies belong to no message`);
  return { messages, bytes, problems };
}

async function verifyMessages(
  queue: PostgresQueue,
  addProblem: (sentence: string) => void,
  progress: WorkProgress,
): Promise<Omit<RetryVerifyReport, "problems">> {
  let messages = 0;
  let bytes = 0;
  progress.startPart({ noun: "message", verb: "checked", total: null });
  const text = `SELECT r.seq, r.state, r.owner, r.forwarding, r.bytes, b.crc, b.head, b.body, p.id AS processor
  FROM SCHEMA.retry r LEFT JOIN SCHEMA.retry_body b ON b.queue = r.queue AND b.seq = r.seq
  LEFT JOIN SCHEMA.processor p ON p.id = r.owner
  WHERE r.queue = $1 AND r.seq > $2 ORDER BY r.seq LIMIT ${verifyPageRows}`;
  for (let after = 0;;) {
    const rows = await queue.run("queue_verify", text, [queue.id, after]);
    for (const row of rows) {
      progress.add(1);
      messages++;
      const state = messageStateInRow(row);
      const what = `message ${queue.key}-${row["seq"]}`;
      const isKept = keepsContent(row);
      if (isKept) bytes += Number(row["bytes"]);
      if (isKept && typeof readContent(queue, row) === "string") {
        addProblem(`${what} is ${state}, but its content is damaged or missing`);
      }
      if (!isKept && row["body"] !== null) addProblem(`${what} is ${state}, but still has a body`);
      if (state === "in_flight" && row["processor"] === null) {
        addProblem(`${what} is in flight, but no processor owns it`);
      }
      if (state !== "in_flight" && row["owner"] !== null) addProblem(`${what} is ${state}, but a processor owns it`);
    }
    if (rows.length < verifyPageRows) return { messages, bytes };
    after = Number(rows.at(-1)?.["seq"]);
  }
}
