/**
 * The rows of processors in PostgreSQL: the lease of this process, its claims, and the results of its tries. If the
 * reply to a claim is lost, messages
 * that this process does not know about may be in flight. It then raises the epoch in its row, which ends all its
 * earlier claims, and returns these messages (test/retry/model/postgres_claims_model.ts).
 */
import type { PostgresRow } from "../../../base/postgres/primary_connection.ts";
import { changeAllRowsSql } from "../../../base/postgres/required_rows.ts";
import { StatementError } from "../../../base/postgres/statement_error.ts";
import { CallBatcher } from "../../../base/support/gather.ts";
import type { FoundMessage, MessageLifeChange, OwnClaim, ProcessorRows } from "../retry_rows.ts";
import { claimBytesMax, operatorChangesMax } from "../retry_store_limits.ts";
import type { ClaimRequest, RetryOrder } from "../store_methods.ts";
import { type PostgresQueue, readContent } from "./postgres_queue.ts";
import { databaseNowSql } from "./postgres_queue_tables.ts";

/**
 * The time from the end of a lease until its messages are taken back, in milliseconds: clocks differ, and a guard needs
 * time to kill.
 */
export const postgresGraceMs = 10_000;

const lease = { lane: "leases" } as const;

export interface PostgresProcessorsOptions {
  /** Duration of a lease from a renewal, in milliseconds. */
  readonly leaseMs: number;
  /** The name of the process that operators see. */
  readonly processName: string;
}

export class PostgresProcessors implements ProcessorRows {
  readonly #queue: PostgresQueue;
  readonly #options: PostgresProcessorsOptions;
  /** The messages that this process has claimed and whose end is not yet recorded. */
  readonly #known = new Map<number, OwnClaim>();
  /** The claims whose result may already be written. */
  readonly #uncertain = new WeakSet<OwnClaim>();
  readonly #ends: CallBatcher<OwnClaim, boolean>;
  #owner = 0;
  #epoch = 0;
  /** True after a claim without a reply. Messages that this process does not know may then be in flight. */
  #isUnknown = false;
  /** The number of reconnects when no unknown message was last in flight. */
  #reconnects = 0;
  /** True if the last claim returned as many messages as it asked for. */
  #hasMore = false;

  constructor(queue: PostgresQueue, options: PostgresProcessorsOptions) {
    this.#queue = queue;
    this.#options = options;
    this.#ends = new CallBatcher({
      itemsMax: 256,
      work: async (claims) => {
        const mayBeWritten = claims.some((claim) => this.#uncertain.has(claim));
        const written = await queue.write(claims.flatMap(({ decided }) => decided ?? []), { mayBeWritten });
        return claims.map(({ row }) => written.has(Number(row["seq"])));
      },
    });
  }

  /**
   * Registers this process. If the statement is repeated, it adds a second row that no process renews; other processes
   * remove that row.
   */
  async register(): Promise<number> {
    const text =
      `INSERT INTO SCHEMA.processor (queue, name, lease_end) VALUES ($1, $2, ${databaseNowSql} + $3) RETURNING id`;
    const values = [this.#queue.id, this.#options.processName, this.#options.leaseMs];
    const [row] = await this.#queue.run("queue_register", text, values, { ...lease, rowsMin: 1 });
    this.#known.clear();
    this.#owner = Number(row?.["id"]);
    this.#epoch = 0;
    this.#isUnknown = false;
    this.#hasMore = false;
    this.#reconnects = this.#queue.reconnects;
    return this.#owner;
  }

  async renew(owner: number): Promise<boolean> {
    const text = `UPDATE SCHEMA.processor SET lease_end = ${databaseNowSql} + $2 WHERE id = $1 AND NOT ended
      RETURNING ${databaseNowSql} AS now_ms`;
    const [row] = await this.#queue.runOnce("queue_renew", text, [owner, this.#options.leaseMs], lease);
    this.#queue.noteTime(row);
    return row !== undefined;
  }

  async processorCount(): Promise<number> {
    const text = `SELECT count(*)::int AS count FROM SCHEMA.processor
      WHERE queue = $1 AND NOT ended AND lease_end >= ${databaseNowSql}`;
    const [row] = await this.#queue.runOnce("queue_processors", text, [this.#queue.id], lease);
    return Number(row?.["count"] ?? 0);
  }

  /**
   * Removes a processor that was marked. No claim of it can commit after the mark, so the messages that the second
   * statement sees in flight stay in flight.
   */
  async remove(owner: number): Promise<void> {
    await this.#queue.run("queue_leave", "UPDATE SCHEMA.processor SET ended = true WHERE id = $1", [owner], lease);
    await this.removeOverdue([owner]);
  }

  async overdue(): Promise<number[]> {
    const over = `(ended OR lease_end < ${databaseNowSql} - $2)`;
    const looked = await this.#queue.runOnce(
      "queue_over",
      `SELECT id FROM SCHEMA.processor WHERE queue = $1 AND ${over}`,
      [this.#queue.id, postgresGraceMs],
      lease,
    );
    if (looked.length === 0) return [];
    const marked = await this.#queue.run(
      "queue_end",
      changeAllRowsSql("processor", "ended = true", `queue = $1 AND ${over}`),
      [this.#queue.id, postgresGraceMs],
      lease,
    );
    return marked.map((row) => Number(row["id"]));
  }

  async inFlight(owners: readonly number[]): Promise<PostgresRow[]> {
    const text = `SELECT * FROM SCHEMA.retry WHERE owner = ANY ($1::bigint[]) AND state = 1
      ORDER BY seq LIMIT ${operatorChangesMax}`;
    return await this.#queue.run("queue_in_flight", text, [owners], lease);
  }

  async removeOverdue(ids: readonly number[]): Promise<void> {
    const text = "DELETE FROM SCHEMA.processor p WHERE p.id = ANY ($1::bigint[]) AND p.ended " +
      "AND NOT EXISTS (SELECT 1 FROM SCHEMA.retry r WHERE r.owner = p.id AND r.state = 1)";
    await this.#queue.run("queue_remove", text, [ids], lease);
  }

  /** Claims messages. After OUTCOME_UNKNOWN, `unknown` returns the messages that were claimed. */
  async take(
    { owner, max, order }: ClaimRequest,
    ageMs: number,
  ): Promise<{ readonly found: readonly FoundMessage[]; readonly nextMs: number | null } | null> {
    if (!this.#hasMore) {
      const looked = await this.#look(owner, order, ageMs);
      if (looked === null) return null;
      if (!looked.isDue) return { found: [], nextMs: looked.nextMs };
    }
    const rows = await this.#claimRows(owner, order, max, ageMs);
    if (rows.some((row) => row["seq"] === null)) return null;
    this.#hasMore = rows.length === max && order !== "fifo";
    const found = rows.map((whole): FoundMessage => {
      const { crc: _crc, head: _head, body: _body, ...row } = whole;
      const content = readContent(this.#queue, whole);
      if (typeof content !== "string") this.#known.set(Number(row["seq"]), { row, decided: null });
      return { row, content };
    });
    if (this.#hasMore) return { found, nextMs: null };
    // Ignores an error here, because the messages must be returned.
    return { found, nextMs: await this.#look(owner, order, 0).then((looked) => looked?.nextMs ?? null, () => null) };
  }

  /** Writes damaged messages. If that fails, they are returned to the queue, claimed again and found damaged again. */
  async writeDamaged(changes: readonly MessageLifeChange[]): Promise<void> {
    await this.#queue.write(changes).catch(() => this.#isUnknown = true);
  }

  async #claimRows(owner: number, order: RetryOrder, max: number, age: number): Promise<PostgresRow[]> {
    const text = "SELECT (c.message).*, c.body_crc AS crc, c.head_bytes AS head, c.body_bytes AS body " +
      "FROM SCHEMA.queue_claim($1, $2, $3, $4, $5, $6, $7) c";
    const values = [this.#queue.id, owner, this.#epoch, order, max, age, claimBytesMax];
    try {
      return await this.#queue.runOnce("queue_claim", text, values, { lane: "claims" });
    } catch (error) {
      if (error instanceof StatementError && error.outcome === "unknown") this.#isUnknown = true;
      throw error;
    }
  }

  /**
   * Looks for due messages before a claim, because a claim commits even if nothing is due. Returns null if the lease
   * was given up.
   */
  async #look(
    owner: number,
    order: RetryOrder,
    age: number,
  ): Promise<{ readonly isDue: boolean; readonly nextMs: number | null } | null> {
    const [row] = await this.#queue.runOnce(`queue_look_${order}`, lookTexts[order], [this.#queue.id, owner], {
      lane: "claims",
    });
    this.#queue.noteTime(row);
    if (row?.["held"] !== true) return null;
    const first = row["first_ms"] ?? null;
    const next = row["next_ms"] ?? null;
    const isDue = row["paused"] !== true && first !== null && Number(first) <= Number(row["now_ms"]) - age;
    return { isDue, nextMs: next === null ? null : this.#queue.toLocalMs(Number(next)) };
  }

  /**
   * Raises the epoch. This waits for a claim that is being committed, and makes the database refuse later ones. May be
   * repeated, because only this process changes the epoch. If the lease was given up, the next claim reports that.
   */
  async unknown(owner: number): Promise<PostgresRow[]> {
    const { reconnects } = this.#queue;
    if (owner !== this.#owner || (!this.#isUnknown && this.#reconnects === reconnects)) return [];
    const epoch = this.#epoch + 1;
    const text = "UPDATE SCHEMA.processor SET epoch = $2 WHERE id = $1 AND epoch <= $2 AND NOT ended RETURNING id";
    const [row] = await this.#queue.run("queue_fence", text, [owner, epoch], { lane: "claims" });
    if (row === undefined) return [];
    this.#epoch = epoch;
    const found = (await this.inFlight([owner])).filter((row) => !this.#isKnown(row));
    if (found.length > 0) return found;
    this.#isUnknown = false;
    this.#reconnects = reconnects;
    return [];
  }

  /** Returns true if this process knows this claim, and not only an earlier claim of the message. */
  #isKnown(row: PostgresRow): boolean {
    return Number(this.#known.get(Number(row["seq"]))?.row["fence"]) === Number(row["fence"]);
  }

  claimed(seq: number, owner: number): OwnClaim | null {
    return owner === this.#owner ? this.#known.get(seq) ?? null : null;
  }

  async writeEnd(claim: OwnClaim): Promise<boolean> {
    let isWritten: boolean;
    try {
      isWritten = await this.#ends.add(claim);
    } catch (thrown) {
      this.#uncertain.add(claim);
      throw thrown;
    }
    // The message may have another claim by now, under a new lease.
    const seq = Number(claim.row["seq"]);
    if (this.#known.get(seq) === claim) this.#known.delete(seq);
    return isWritten;
  }
}

const firstDue: Readonly<Record<RetryOrder, string>> = {
  none: `(SELECT r.next_ms FROM SCHEMA.retry r WHERE r.queue = $1 AND r.state = 0
    ORDER BY r.next_ms, r.seq LIMIT 1)`,
  key: `(SELECT r.next_ms FROM SCHEMA.retry r WHERE r.queue = $1 AND r.state = 0 AND r.turn
    ORDER BY r.next_ms, r.seq LIMIT 1)`,
  fifo: `(SELECT CASE WHEN r.state = 0 THEN r.next_ms END FROM SCHEMA.retry r WHERE r.queue = $1 AND r.state < 2
    ORDER BY r.seq LIMIT 1)`,
};

const lookTexts = Object.fromEntries(
  Object.entries(firstDue).map(([order, first]) => [
    order,
    `SELECT n.now_ms, q.paused,
      EXISTS (SELECT 1 FROM SCHEMA.processor p WHERE p.id = $2 AND NOT p.ended) AS held, ${first} AS first_ms,
      (SELECT r.next_ms FROM SCHEMA.retry r WHERE r.queue = $1 AND r.state = 0 ${order === "key" ? "AND r.turn " : ""}
        AND r.next_ms > n.now_ms ORDER BY r.next_ms, r.seq LIMIT 1) AS next_ms
      FROM (SELECT ${databaseNowSql} AS now_ms OFFSET 0) n, SCHEMA.queue q WHERE q.id = $1`,
  ]),
) as Readonly<Record<RetryOrder, string>>;
