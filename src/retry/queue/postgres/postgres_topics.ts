/**
 * State about topics that the processors of a queue in PostgreSQL share: the last message that was moved from a topic,
 * and which process has the role of a topic client. A process has the role for `topicClientRoleMs` on the clock of the
 * database, and renews it.
 */
import type { IngestedRow, IngestRows } from "../retry_rows.ts";
import { acceptStatementValues, type PostgresMessages } from "./postgres_messages.ts";
import type { PostgresQueue } from "./postgres_queue.ts";
import { databaseNowSql } from "./postgres_queue_tables.ts";

/** How long a process has the role, in milliseconds. If a process is killed, others wait this long. */
export const topicClientRoleMs = 15_000;

export class PostgresIngest implements IngestRows {
  readonly #queue: PostgresQueue;
  readonly #messages: PostgresMessages;

  constructor(queue: PostgresQueue, messages: PostgresMessages) {
    this.#queue = queue;
    this.#messages = messages;
  }

  async add(topic: string, last: number, rows: readonly IngestedRow[], nowMs: number): Promise<boolean> {
    const queue = this.#queue;
    const newest = rows.at(-1)?.id ?? last;
    const values = [
      queue.id,
      Buffer.from(topic),
      last,
      newest,
      ...acceptStatementValues(queue, rows.map((row) => ({ ...row, nowMs }))),
    ];
    const [stored] = await queue.run("queue_ingest", ingestText, values, { lane: "accepts" });
    if (stored?.["stored"] !== true) return false;
    this.#messages.noteAdded(rows);
    return true;
  }

  async lastIngestedId(topic: string): Promise<number> {
    const text = "SELECT last_id FROM SCHEMA.retry_ingest WHERE queue = $1 AND topic = $2";
    const [row] = await this.#queue.run("queue_ingested", text, [this.#queue.id, Buffer.from(topic)]);
    return Number(row?.["last_id"] ?? -1);
  }

  async forgetIngested(topic: string, id: number): Promise<void> {
    const text = "DELETE FROM SCHEMA.retry_ingest WHERE queue = $1 AND topic = $2 AND last_id = $3";
    await this.#queue.run("queue_forget_ingested", text, [this.#queue.id, Buffer.from(topic), id]);
  }
}

const ingestText =
  "SELECT SCHEMA.queue_ingest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) AS stored";

/** The role that lets one process use a topic client of the queue. */
export class TopicClientRole {
  readonly #queue: PostgresQueue;
  readonly #client: string;
  readonly #holder = crypto.randomUUID();

  constructor(queue: PostgresQueue, client: string) {
    this.#queue = queue;
    this.#client = client;
  }

  /**
   * Takes or renews the role. Returns the number of the client's session; null if another process has the role. The
   * number is higher than all earlier ones. It contains the time, so that it increases even if a failover has lost the
   * last number.
   */
  async take(): Promise<number | null> {
    const text = `INSERT INTO SCHEMA.retry_client AS c (queue, client, holder, role_end, session)
      VALUES ($1, $2, $3::uuid, ${databaseNowSql} + $4, ${databaseNowSql}) ON CONFLICT (queue, client) DO UPDATE
      SET holder = excluded.holder, role_end = excluded.role_end,
        session = CASE WHEN c.holder = excluded.holder THEN c.session ELSE greatest(c.session + 1, excluded.session) END
      WHERE c.holder = excluded.holder OR c.role_end < ${databaseNowSql} RETURNING session`;
    const [row] = await this.#queue.run("queue_client", text, [
      this.#queue.id,
      this.#client,
      this.#holder,
      topicClientRoleMs,
    ]);
    return row === undefined ? null : Number(row["session"]);
  }

  async leave(): Promise<void> {
    const text = "UPDATE SCHEMA.retry_client SET role_end = 0 WHERE queue = $1 AND client = $2 AND holder = $3::uuid";
    const values = [this.#queue.id, this.#client, this.#holder];
    await this.#queue.runOnce("queue_client_ends", text, values, { deadlineMs: 1000 });
  }
}
