/** How many messages of a store are done, without a process for each look. */
import { RetryDatabase } from "../../src/retry/queue/sqlite/retry_database.ts";

export function doneMessages(folder: string): number {
  const database = new RetryDatabase(folder, { mustExist: true });
  try {
    return Number(database.get("SELECT count FROM totals WHERE state = 2")?.["count"] ?? 0);
  } finally {
    database.close();
  }
}
