/**
 * The number of rows that each client has in the tables of its puts. The indexes are compared with the tables only when the store
 * is opened. An index that the disk damages later finds fewer rows than there are, and a repeated put would be stored again.
 */
import { isDamage } from "../../storage/checksum_table.ts";
import type { TopicDatabase } from "./topic_database.ts";

/** SQL that counts the rows of each client in the order of an index. */
const counting = {
  windows: "SELECT client, count(*) AS n FROM windows GROUP BY client",
  resolved: "SELECT client, count(*) AS n FROM resolved INDEXED BY resolved_window GROUP BY client",
  msg_ids: "SELECT client, count(*) AS n FROM msg_ids INDEXED BY msg_ids_client GROUP BY client",
} as const;

export type PutTable = keyof typeof counting;

export class PutRowCounts {
  /** Null for a table that cannot be read: its clients are damaged anyway. */
  readonly #counts = new Map<string, Map<number, number> | null>();

  constructor(database: TopicDatabase) {
    this.readAgain(database);
  }

  /** All changes must have been written before. */
  readAgain(database: TopicDatabase): void {
    for (const [table, sql] of Object.entries(counting)) {
      try {
        const counts = new Map<number, number>();
        for (const { client, n } of database.all(sql)) counts.set(Number(client), Number(n));
        this.#counts.set(table, counts);
      } catch (error) {
        if (!isDamage(error)) throw error;
        this.#counts.set(table, null);
      }
    }
  }

  /** Counts a row that was inserted or, with -1, deleted. */
  add(table: PutTable, client: number, rows: number): void {
    const counts = this.#counts.get(table);
    counts?.set(client, (counts.get(client) ?? 0) + rows);
  }

  /** All rows of a client were deleted. */
  forget(client: number): void {
    for (const counts of this.#counts.values()) counts?.delete(client);
  }

  /** Whether the client has this number of rows, as far as is known. */
  agrees(table: string, client: number, found: number): boolean {
    const counts = this.#counts.get(table);
    return counts === null || counts === undefined || (counts.get(client) ?? 0) === found;
  }
}
