/**
 * State that the processors of a queue in PostgreSQL have in common at topics: the last message that was moved from a
 * topic into the queue, and which process uses a client. One process has the role of a client for `roleMs`, by the
 * clock of the database, and renews it.
 */
import { randomUUID } from "node:crypto";
import type { SqlParameter } from "../../../base/postgres/primary_connection.ts";
import type { PostgresQueue } from "./postgres_queue.ts";
import type { IngestMessage } from "../store_methods.ts";
import { databaseNow } from "./postgres_queue_tables.ts";

/** A process that was killed keeps others waiting for as long. Milliseconds. */
export const roleMs = 15_000;

/** `acceptValues`: the values of `queue_accept` for these messages, after the queue. */
export async function ingestMessages(
  queue: PostgresQueue,
  { topic, messages, acceptValues }: {
    readonly topic: string;
    readonly messages: readonly IngestMessage[];
    readonly acceptValues: (bodies: readonly Uint8Array[]) => readonly SqlParameter[];
  },
): Promise<number> {
  const name = Buffer.from(topic);
  for (;;) {
    const after = await lastIngestedId(queue, topic);
    const fresh = messages.filter(({ id }) => id > after);
    const newest = fresh.at(-1);
    if (newest === undefined) return 0;
    const values = [queue.id, name, after, newest.id, ...acceptValues(fresh.map(({ body }) => body))];
    const [stored] = await queue.run("queue_ingest", ingestText, values, { lane: "accepts" });
    // Otherwise another process, or an earlier copy of this statement, has moved some of them.
    if (stored?.["stored"] === true) return fresh.length;
  }
}

/** The last message of the topic that was stored; -1: none. */
export async function lastIngestedId(queue: PostgresQueue, topic: string): Promise<number> {
  const text = "SELECT last_id FROM SCHEMA.retry_ingest WHERE queue = $1 AND topic = $2";
  const [row] = await queue.run("queue_ingested", text, [queue.id, Buffer.from(topic)]);
  return Number(row?.["last_id"] ?? -1);
}

/** Forgets the last message, if it is this one: it belongs to an earlier topic of this name. */
export async function forgetIngested(queue: PostgresQueue, topic: string, id: number): Promise<void> {
  const text = "DELETE FROM SCHEMA.retry_ingest WHERE queue = $1 AND topic = $2 AND last_id = $3";
  await queue.run("queue_forget_ingested", text, [queue.id, Buffer.from(topic), id]);
}

const ingestText =
  "SELECT SCHEMA.queue_ingest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) AS stored";

/** The role of one client of the queue, for one process. */
export class TopicClientRole {
  readonly #queue: PostgresQueue;
  readonly #client: string;
  readonly #holder = randomUUID();

  constructor(queue: PostgresQueue, client: string) {
    this.#queue = queue;
    this.#client = client;
  }

  /**
   * Takes the role, or renews it. Returns the number of the client's session, which is higher than those of all
   * processes that had the role before; null: another process has it. The clock is in it, so that it grows even if a
   * fail-over of the database has lost the last number.
   */
  async take(): Promise<number | null> {
    const text = `INSERT INTO SCHEMA.retry_client AS c (queue, client, holder, role_end, session)
      VALUES ($1, $2, $3::uuid, ${databaseNow} + $4, ${databaseNow}) ON CONFLICT (queue, client) DO UPDATE
      SET holder = excluded.holder, role_end = excluded.role_end,
        session = CASE WHEN c.holder = excluded.holder THEN c.session ELSE greatest(c.session + 1, excluded.session) END
      WHERE c.holder = excluded.holder OR c.role_end < ${databaseNow} RETURNING session`;
    const [row] = await this.#queue.run("queue_client", text, [this.#queue.id, this.#client, this.#holder, roleMs]);
    return row === undefined ? null : Number(row["session"]);
  }

  /** Gives the role to others. */
  async leave(): Promise<void> {
    const text = "UPDATE SCHEMA.retry_client SET role_end = 0 WHERE queue = $1 AND client = $2 AND holder = $3::uuid";
    const values = [this.#queue.id, this.#client, this.#holder];
    await this.#queue.runOnce("queue_client_ends", text, values, { deadlineMs: 1000 });
  }
}
