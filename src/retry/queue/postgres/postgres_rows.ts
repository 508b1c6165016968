/** The rows of a message store in PostgreSQL, which processors on several machines share. */
import { hostname } from "node:os";
import process from "node:process";
import { SharedStoreWriteTrial } from "../../../base/postgres/store_trial.ts";
import type { Clock } from "../../../base/support/clock.ts";
import { postgresBodyBytesMax } from "../retry_store_limits.ts";
import type { RetryRows } from "../retry_rows.ts";
import type { StoreDisk } from "../store_methods.ts";
import { PostgresLetters } from "./postgres_letters.ts";
import { PostgresMessages } from "./postgres_messages.ts";
import { PostgresProcessors } from "./postgres_processors.ts";
import type { PostgresQueue } from "./postgres_queue.ts";
import { postgresQueueTables } from "./postgres_queue_tables.ts";
import { PostgresIngest } from "./postgres_topics.ts";

/** The time limit of a trial write, in milliseconds. It is shorter than a status page's wait for the result. */
const trialMs = 1500;

export class PostgresRows implements RetryRows {
  readonly #queue: PostgresQueue;
  readonly #trial: SharedStoreWriteTrial;
  readonly bodyBytesMax = postgresBodyBytesMax;
  readonly messages: PostgresMessages;
  readonly processors: PostgresProcessors;
  readonly letters: PostgresLetters;
  readonly topics: PostgresIngest;

  constructor(queue: PostgresQueue, { clock, leaseMs }: { readonly clock: Clock; readonly leaseMs: number }) {
    this.#queue = queue;
    this.#trial = new SharedStoreWriteTrial({
      table: "retry_body",
      tables: postgresQueueTables,
      row: `(queue, seq, crc, head, body) VALUES (0, pg_backend_pid(), 0, '', BYTES)`,
      now: () => clock.now(),
      run: ({ name, text }) => queue.runOnce(name, text, [], { lane: "trial", deadlineMs: trialMs }),
    });
    this.messages = new PostgresMessages(queue, { clock, onFull: () => this.#trial.noteFull() });
    this.processors = new PostgresProcessors(queue, { leaseMs, processName: `${hostname()} ${process.pid}` });
    this.letters = new PostgresLetters(queue, clock);
    this.topics = new PostgresIngest(queue, this.messages);
  }

  get key(): string {
    return this.#queue.key;
  }

  get what(): string {
    return `The message store "${this.#queue.name}" in ${this.#queue.where}`;
  }

  nowMs(): number {
    return this.#queue.nowMs();
  }

  toLocalMs(atMs: number): number {
    return this.#queue.toLocalMs(atMs);
  }

  /**
   * Returns the reason why nothing can be written, for example that the database does not respond; null if writing is
   * possible.
   */
  whyNotWritable(): Promise<string | null> {
    return this.#trial.whyNotStored();
  }

  /** Returns null, because only a write shows whether there is room. */
  whyNoRoom(): null {
    return null;
  }

  reserveLog(): void {}

  async disk(): Promise<StoreDisk> {
    return { usedBytes: await this.messages.usedBytes(), freeBytes: null };
  }

  damageCount(): number {
    return this.#queue.damages;
  }
}
