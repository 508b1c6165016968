/**
 * The claims of one process on messages of a queue in PostgreSQL: its lease in the database, what it has claimed, and
 * the results of its tries. A lost reply to a claim leaves messages in flight that this process does not know: it first
 * raises the epoch of its row, which ends all its earlier claims, and then gives back what it does not know
 * (test/retry/model/postgres_claims_model.ts).
 */
import { BatonError } from "../../../base/errors.ts";
import type { PostgresRow } from "../../../base/postgres/primary_connection.ts";
import { changeAllRowsSql } from "../../../base/postgres/required_rows.ts";
import { StatementError } from "../../../base/postgres/statement_error.ts";
import { CallBatcher } from "../../../base/support/gather.ts";
import { lifeAfterCrash, lifeAfterReturn, lifeAfterTry, type LifeRules, type MessageLife } from "../message_life.ts";
import type { Claim, ClaimOrder, TryReport } from "../store_methods.ts";
import { changesMax, claimBytesMax } from "../retry_store_limits.ts";
import { messageLifeInRow } from "../message_row.ts";
import {
  damageSentence,
  type LifeChange,
  type PostgresQueue,
  readMessageContent,
  toStoredMessage,
} from "./postgres_queue.ts";
import { databaseNow } from "./postgres_queue_tables.ts";
import type { ClaimedMessage } from "../stored_message.ts";

/**
 * How long after the end of a lease its messages are taken back: clocks may differ, and a guard needs time to kill.
 * Milliseconds.
 */
export const postgresGraceMs = 10_000;

const lease = { lane: "leases" } as const;

/** A message that this process has claimed and not recorded. */
interface OwnClaim {
  readonly rev: number;
  readonly life: MessageLife;
  /** The decision of the first call of `finish`; a repetition writes the same. */
  decided: LifeChange | null;
  mayBeWritten: boolean;
}

export interface PostgresClaimsOptions {
  readonly rules: LifeRules;
  /** Duration of a lease from a renewal, in milliseconds. */
  readonly leaseMs: number;
  /** Shown to operators. */
  readonly processName: string;
  readonly random: () => number;
}

export class PostgresClaims {
  readonly #queue: PostgresQueue;
  readonly #options: PostgresClaimsOptions;
  readonly #known = new Map<number, OwnClaim>();
  readonly #results: CallBatcher<LifeChange & { readonly mayBeWritten: boolean }, boolean>;
  #owner = 0;
  #epoch = 0;
  /** A claim had no reply: messages may be in flight that this process does not know. */
  #isUnknown = false;
  /** The reconnects of the queue up to which nothing is unknown. */
  #reconnects = 0;
  /** The last claim had as many messages as it asked for. */
  #hasMore = false;

  constructor(queue: PostgresQueue, options: PostgresClaimsOptions) {
    this.#queue = queue;
    this.#options = options;
    this.#results = new CallBatcher({
      itemsMax: 256,
      work: async (changes) => {
        const mayBeWritten = changes.some((change) => change.mayBeWritten);
        const written = await queue.write(changes, { mayBeWritten });
        return changes.map(({ seq }) => written.has(seq));
      },
    });
  }

  /** Registers this process. A repetition leaves a row that no process renews, which others remove. */
  async register(): Promise<number> {
    const text =
      `INSERT INTO SCHEMA.processor (queue, name, lease_end) VALUES ($1, $2, ${databaseNow} + $3) RETURNING id`;
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

  /** False: the lease was given up. */
  async renew(owner: number): Promise<boolean> {
    const text = `UPDATE SCHEMA.processor SET lease_end = ${databaseNow} + $2 WHERE id = $1 AND NOT ended
      RETURNING ${databaseNow} AS now_ms`;
    const [row] = await this.#queue.runOnce("queue_renew", text, [owner, this.#options.leaseMs], lease);
    this.#queue.noteTime(row);
    return row !== undefined;
  }

  /**
   * Removes this process. No claim of it can commit after it was marked, so what the second statement sees in flight
   * stays so.
   */
  async leave(owner: number): Promise<void> {
    if (this.#mayBeUnknown() && owner === this.#owner) await this.#giveBackUnknown();
    await this.#queue.run("queue_leave", "UPDATE SCHEMA.processor SET ended = true WHERE id = $1", [owner], lease);
    await this.#removeEnded([owner]);
  }

  /** Takes back messages of processes whose lease has ended. Returns their number. */
  async reclaim(): Promise<number> {
    const over = `(ended OR lease_end < ${databaseNow} - $2)`;
    const looked = await this.#queue.runOnce(
      "queue_over",
      `SELECT id FROM SCHEMA.processor WHERE queue = $1 AND ${over}`,
      [this.#queue.id, postgresGraceMs],
      lease,
    );
    if (looked.length === 0) return 0;
    const marked = await this.#queue.run(
      "queue_end",
      changeAllRowsSql("processor", "ended = true", `queue = $1 AND ${over}`),
      [this.#queue.id, postgresGraceMs],
      lease,
    );
    const ended = marked.map((row) => Number(row["id"]));
    let count = 0;
    for (let rows = await this.#inFlight(ended); rows.length > 0; rows = await this.#inFlight(ended)) {
      const nowMs = this.#queue.nowMs();
      const changes = rows.flatMap((row): LifeChange[] => {
        const next = lifeAfterCrash(messageLifeInRow(row), this.#options.rules, nowMs, this.#options.random);
        const tried = { error: "the processor died during the try" };
        return next === null ? [] : [{ seq: Number(row["seq"]), rev: Number(row["rev"]), next, nowMs, tried }];
      });
      count += (await this.#queue.write(changes)).size;
    }
    await this.#removeEnded(ended);
    return count;
  }

  async #inFlight(owners: readonly number[]): Promise<PostgresRow[]> {
    const text =
      `SELECT * FROM SCHEMA.retry WHERE owner = ANY ($1::bigint[]) AND state = 1 ORDER BY seq LIMIT ${changesMax}`;
    return await this.#queue.run("queue_in_flight", text, [owners], lease);
  }

  async #removeEnded(ids: readonly number[]): Promise<void> {
    const text = "DELETE FROM SCHEMA.processor p WHERE p.id = ANY ($1::bigint[]) AND p.ended " +
      "AND NOT EXISTS (SELECT 1 FROM SCHEMA.retry r WHERE r.owner = p.id AND r.state = 1)";
    await this.#queue.run("queue_remove", text, [ids], lease);
  }

  /**
   * Claims due messages. Rejects with LOCK_LOST if the lease was given up; OUTCOME_UNKNOWN: the next call gives back
   * what this one claimed.
   */
  async claim({ owner, max, order, nowMs }: ClaimOrder): Promise<Claim> {
    const queue = this.#queue;
    const age = Math.max(0, Math.round(Date.now() - nowMs));
    if (this.#mayBeUnknown()) await this.#giveBackUnknown();
    if (!this.#hasMore) {
      const { isDue, nextMs } = await this.#look(owner, order, age);
      if (!isDue) return { messages: [], nextMs };
    }
    const rows = await this.#claimRows(owner, order, max, age);
    if (rows.some((row) => row["seq"] === null)) throw lostLease();
    this.#hasMore = rows.length === max && order !== "fifo";
    const messages: ClaimedMessage[] = [];
    const damaged: LifeChange[] = [];
    for (const row of rows) {
      const seq = Number(row["seq"]);
      const rev = Number(row["rev"]);
      const life = messageLifeInRow(row);
      const content = readMessageContent(queue, row);
      if (content === null) {
        const next: MessageLife = { ...life, state: "dead", reason: "damaged" };
        damaged.push({ seq, rev, next, nowMs: life.nextAtMs, tried: { error: damageSentence(queue, row) } });
        continue;
      }
      this.#known.set(seq, { rev, life, decided: null, mayBeWritten: false });
      messages.push({ ...toStoredMessage(queue, row), ...content });
    }
    // Messages that cannot be written now are given back, and found damaged again.
    await queue.write(damaged).catch(() => this.#isUnknown = true);
    return { messages, nextMs: this.#hasMore ? null : await this.#nextMs(owner, order) };
  }

  /**
   * The messages of a claim are returned whatever this finds: no other process tries them. Null: the next due time is
   * not known.
   */
  async #nextMs(owner: number, order: ClaimOrder["order"]): Promise<number | null> {
    return await this.#look(owner, order, 0).then(({ nextMs }) => nextMs, () => null);
  }

  async #claimRows(owner: number, order: ClaimOrder["order"], max: number, age: number): Promise<PostgresRow[]> {
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

  /** A claim locks the row of the process, which is a commit even if nothing is due; this is none. */
  async #look(
    owner: number,
    order: ClaimOrder["order"],
    age: number,
  ): Promise<{ readonly isDue: boolean; readonly nextMs: number | null }> {
    const [row] = await this.#queue.runOnce(`queue_look_${order}`, lookTexts[order], [this.#queue.id, owner], {
      lane: "claims",
    });
    this.#queue.noteTime(row);
    if (row?.["held"] !== true) throw lostLease();
    const first = row?.["first_ms"] ?? null;
    const next = row?.["next_ms"] ?? null;
    const isDue = row?.["paused"] !== true && first !== null && Number(first) <= Number(row?.["now_ms"]) - age;
    return { isDue, nextMs: next === null ? null : this.#queue.toLocalMs(Number(next)) };
  }

  /** Whether this process has the claim itself, not only an earlier one of the same message. */
  #isKnown(row: PostgresRow): boolean {
    return this.#known.get(Number(row["seq"]))?.life.fence === Number(row["fence"]);
  }

  #mayBeUnknown(): boolean {
    return this.#isUnknown || this.#reconnects !== this.#queue.reconnects;
  }

  /**
   * Raising the epoch waits for a claim that is being committed, and refuses those that come later. Repeatable: the
   * number is this process's.
   */
  async #giveBackUnknown(): Promise<void> {
    const { reconnects } = this.#queue;
    const epoch = this.#epoch + 1;
    const text = "UPDATE SCHEMA.processor SET epoch = $2 WHERE id = $1 AND epoch <= $2 AND NOT ended RETURNING id";
    const [row] = await this.#queue.run("queue_fence", text, [this.#owner, epoch], { lane: "claims" });
    if (row === undefined) throw lostLease();
    this.#epoch = epoch;
    for (;;) {
      const found = await this.#inFlight([this.#owner]);
      const nowMs = this.#queue.nowMs();
      const changes = found.filter((row) => !this.#isKnown(row)).flatMap((row): LifeChange[] => {
        const life = messageLifeInRow(row);
        const next = lifeAfterReturn(life, life.fence, nowMs);
        return next === null ? [] : [{ seq: Number(row["seq"]), rev: Number(row["rev"]), next, nowMs }];
      });
      await this.#queue.write(changes);
      if (changes.length === 0 || found.length < changesMax) break;
    }
    this.#isUnknown = false;
    this.#reconnects = reconnects;
  }

  /** Records the result of a try. Null: the message has another owner now. May be called again after a failure. */
  async finish({ seq, fence, owner, end, error }: TryReport): Promise<MessageLife | null> {
    const own = this.#known.get(seq);
    if (own === undefined || owner !== this.#owner || own.life.fence !== fence) return null;
    if (own.decided === null) {
      const nowMs = this.#queue.nowMs();
      const { rules, random } = this.#options;
      const next = end === null
        ? lifeAfterReturn(own.life, fence, nowMs)
        : lifeAfterTry(own.life, fence, end, { rules, nowMs, random });
      if (next === null) return null;
      own.decided = { seq, rev: own.rev, next, nowMs, ...(end === null ? {} : { tried: { error } }) };
    }
    const { decided } = own;
    let isWritten: boolean;
    try {
      isWritten = await this.#results.add({ ...decided, mayBeWritten: own.mayBeWritten });
    } catch (thrown) {
      own.mayBeWritten = true;
      throw thrown;
    }
    // A new lease may have made the message another claim.
    if (this.#known.get(seq) === own) this.#known.delete(seq);
    return isWritten ? decided.next : null;
  }
}

function lostLease(): BatonError {
  return new BatonError("LOCK_LOST", "The lease of this processor expired, and another process took its messages back");
}

/** The due time of the message that is next in this order. */
const firstDue: Readonly<Record<ClaimOrder["order"], string>> = {
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
      FROM (SELECT ${databaseNow} AS now_ms OFFSET 0) n, SCHEMA.queue q WHERE q.id = $1`,
  ]),
) as Readonly<Record<ClaimOrder["order"], string>>;
