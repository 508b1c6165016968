/**
 * One message queue in a PostgreSQL schema: its connections, its row, and the clock of the database. After a lost
 * reply, every statement may be repeated, because each change names the revision of the row for which it was decided.
 */
import { crc32 } from "node:zlib";
import { BatonError } from "../../../base/errors.ts";
import { type DatabaseAddress, describeDatabase } from "../../../base/postgres/database_address.ts";
import { readDatabaseSafetyFacts, requireSafeDatabase } from "../../../base/postgres/database_checks.ts";
import { DatabaseLane } from "../../../base/postgres/database_lane.ts";
import { insertSchemaName, requireSharedStore } from "../../../base/postgres/database_schema.ts";
import { countRowsSql, requireChangedRowsSql } from "../../../base/postgres/required_rows.ts";
import type {
  connectToPrimary,
  PostgresRow,
  PrimaryConnection,
  SqlParameter,
} from "../../../base/postgres/primary_connection.ts";
import { StatementError } from "../../../base/postgres/statement_error.ts";
import { backoffMs, serverBackoff } from "../../../base/support/backoff.ts";
import type { Clock } from "../../../base/support/clock.ts";
import { sleep } from "../../../base/support/deadline.ts";
import type { MessageLife } from "../message_life.ts";
import { forwardingOfLife, stateNumbers } from "../message_row.ts";
import type { MessageContent, MessageLifeChange, MessageRow } from "../retry_rows.ts";
import { errorCharsMax } from "../retry_store_limits.ts";
import { databaseNowSql, postgresQueueTables } from "./postgres_queue_tables.ts";
import type { MessageHead, NewLetters } from "../stored_message.ts";

export interface PostgresQueueOptions {
  readonly address: DatabaseAddress;
  readonly name: string;
  readonly clock: Clock;
  readonly letters: NewLetters;
  readonly requiresSync: boolean;
  /** Called once for each warning about a guarantee that the database does not give. */
  readonly onWarning?: (sentence: string) => void;
  readonly onDamage?: (sentence: string) => void;
  readonly connect?: typeof connectToPrimary;
}

/** The connections. There are several, so that a lease is renewed while another call takes long. */
export type PostgresQueueLaneName = "writes" | "claims" | "accepts" | "leases" | "trial" | "rest";

interface QueueRunOptions {
  readonly lane?: PostgresQueueLaneName;
  /** The smallest number of rows that the statement must return. */
  readonly rowsMin?: number;
}

/** How long opening a store waits for the database, in milliseconds. */
const openMs = 5000;
/** How long a call waits for the database, in milliseconds, including repetitions after lost connections. */
const callMs = 15_000;

export class PostgresQueue implements AsyncDisposable {
  readonly name: string;
  damages = 0;
  readonly #options: PostgresQueueOptions;
  readonly #lanes = new Map<PostgresQueueLaneName, DatabaseLane>();
  readonly #closing = new AbortController();
  readonly #warned = new Set<string>();
  readonly #connected = new Set<PostgresQueueLaneName>();
  #reconnects = 0;
  #row: { readonly id: number; readonly key: string } | null = null;
  #storeId: string | null = null;
  /** The difference between the clock of the database and `clock`, in milliseconds. */
  #offsetMs = 0;

  constructor(options: PostgresQueueOptions) {
    this.#options = options;
    this.name = options.name;
  }

  /** Connects and finds the queue. If there is none, creates it; if it must exist, rejects with CONFIG. */
  async open({ mustExist }: { readonly mustExist: boolean }): Promise<void> {
    const find = `SELECT id, key, ${databaseNowSql} AS now_ms FROM SCHEMA.queue WHERE name = $1`;
    let [row] = await this.runOnce("queue_find", find, [this.name], { deadlineMs: openMs });
    if (row === undefined && !mustExist) {
      const add = "INSERT INTO SCHEMA.queue (name, key) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
      await this.run("queue_add", add, [this.name, randomName()]);
      [row] = await this.run("queue_find", find, [this.name], { rowsMin: 1 });
    }
    if (row === undefined) {
      throw new BatonError("CONFIG", `There is no message store "${this.name}" in ${this.where}`);
    }
    this.#row = { id: Number(row["id"]), key: String(row["key"]) };
    this.noteTime(row);
  }

  /** A number that increases with each new connection after a lost one, because a failover may have undone commits. */
  get reconnects(): number {
    return this.#reconnects;
  }

  get where(): string {
    return describeDatabase(this.#options.address);
  }

  get id(): number {
    return this.#row?.id ?? 0;
  }

  get key(): string {
    return this.#row?.key ?? "";
  }

  /** Returns the wall clock of the database in milliseconds, as computed from its last response. */
  nowMs(): number {
    return this.#options.clock.now() + this.#offsetMs;
  }

  noteTime(row: PostgresRow | undefined): void {
    if (row !== undefined) this.#offsetMs = Number(row["now_ms"]) - this.#options.clock.now();
  }

  toLocalMs(atMs: number): number {
    return Math.round(Date.now() + atMs - this.nowMs());
  }

  /**
   * Runs a statement one time. Rejects with StatementError. After UNREACHABLE or LOCK_BUSY nothing has happened; after
   * OUTCOME_UNKNOWN the statement may have been executed.
   */
  async runOnce(
    name: string,
    text: string,
    values: readonly SqlParameter[] = [],
    { lane = "rest", deadlineMs = callMs, rowsMin = 0 }: QueueRunOptions & { readonly deadlineMs?: number } = {},
  ): Promise<PostgresRow[]> {
    const statement = { name, text: insertSchemaName(text, this.#options.address.schema), rowsMin };
    return await this.#lane(lane).run(statement, values, { deadlineMs, signal: this.#closing.signal });
  }

  /**
   * Runs a statement until its outcome is known, or the time has passed. Calls `onRepeat` if a copy may have been
   * executed.
   */
  async run(
    name: string,
    text: string,
    values: readonly SqlParameter[] = [],
    { onRepeat = () => {}, ...options }: QueueRunOptions & { readonly onRepeat?: () => void } = {},
  ): Promise<PostgresRow[]> {
    const { clock } = this.#options;
    const endMs = clock.now() + callMs;
    let unknown: StatementError | null = null;
    for (let attempt = 0;; attempt++) {
      const leftMs = endMs - clock.now();
      try {
        return await this.runOnce(name, text, values, { ...options, deadlineMs: Math.max(1, leftMs) });
      } catch (error) {
        if (!(error instanceof StatementError)) throw error;
        if (error.outcome === "unknown") {
          unknown = error;
          onRepeat();
        }
        const mayRepeat = error.outcome === "unknown" || error.isTemporary;
        if (!mayRepeat || leftMs <= 0 || this.#closing.signal.aborted) throw unknown ?? error;
        await sleep(clock, backoffMs(attempt, serverBackoff), this.#closing.signal).catch(() => {});
      }
    }
  }

  /**
   * Writes decided changes. Returns the messages that now have their change; an earlier copy of the statement, whose
   * reply was lost, may have written it. Other messages were changed by another process. `mayBeWritten` is true if an
   * earlier call may have written the changes.
   */
  async write(changes: readonly MessageLifeChange[], { mayBeWritten = false } = {}): Promise<Set<number>> {
    const written = new Set<number>();
    let isRepeated = mayBeWritten;
    for (let left = changes; left.length > 0;) {
      for (const seq of await this.#writeOnce(left, () => isRepeated = true)) written.add(seq);
      left = left.filter(({ row }) => !written.has(seqOf(row)));
      if (left.length === 0) break;
      const found = await this.#durableRows(left);
      for (const change of isRepeated ? left : []) {
        const seq = seqOf(change.row);
        if (hasChange(found.get(seq), change)) written.add(seq);
      }
      // A failover after the write may have undone a change. Such a change is written again.
      left = left.filter(({ row }) => Number(found.get(seqOf(row))?.["rev"]) === Number(row["rev"]));
    }
    return written;
  }

  async #writeOnce(changes: readonly MessageLifeChange[], onRepeat: () => void): Promise<number[]> {
    const all = <T>(of: (change: MessageLifeChange) => T) => changes.map(of);
    const rows = await this.run("queue_write", writeText, [
      this.id,
      all(({ row }) => seqOf(row)),
      all(({ row }) => Number(row["rev"])),
      all(({ next }) => stateNumbers[next.state]),
      all(({ next }) => next.tries),
      all(({ next }) => next.crashes),
      all(({ next, nowMs }) => Math.round(next.nextAtMs - nowMs)),
      all(({ next }) => next.reason),
      all(({ tried, damage }) => encodeErrorText(tried?.error ?? damage ?? null)),
      all(({ tried, damage }) => tried !== undefined || damage !== undefined),
      all(({ next }) => this.forwardingOf(next)),
      all(({ redrive }) => redrive ?? null),
    ], { lane: "writes", onRepeat });
    return rows.map((row) => Number(row["seq"]));
  }

  /**
   * Reads messages by a statement that also writes. Its commit waits for the standby, so that the standby has the data
   * that was read.
   */
  async #durableRows(changes: readonly MessageLifeChange[]): Promise<ReadonlyMap<number, PostgresRow>> {
    const text = "WITH durable AS (UPDATE SCHEMA.queue SET redrives = redrives WHERE id = $1 RETURNING id) " +
      "SELECT r.seq, r.rev, r.state, r.tries, r.crashes FROM SCHEMA.retry r WHERE r.queue = $1 AND r.seq = ANY " +
      "($2::bigint[]) " +
      `AND ${requireChangedRowsSql("queue", countRowsSql("durable"), "1")}`;
    const rows = await this.run("queue_compare", text, [this.id, changes.map(({ row }) => seqOf(row))], {
      lane: "writes",
    });
    return new Map(rows.map((row) => [Number(row["seq"]), row]));
  }

  forwardingOf(life: MessageLife): number {
    return forwardingOfLife(life, this.#options.letters);
  }

  reportDamage(sentence: string): void {
    this.damages++;
    this.#options.onDamage?.(sentence);
  }

  /** Ends statements in progress. */
  async close(): Promise<void> {
    this.#closing.abort(new BatonError("UNREACHABLE", "the store was closed"));
    await Promise.all([...this.#lanes.values()].map((lane) => lane.close()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #lane(name: PostgresQueueLaneName): DatabaseLane {
    const { address, clock, connect } = this.#options;
    const lane = this.#lanes.get(name) ??
      new DatabaseLane({
        address,
        clock,
        name: `retry ${this.name}`,
        onConnect: (connection) => this.#check(connection, name),
        warn: (text) => this.#options.onWarning?.(text),
        ...(connect === undefined ? {} : { connect }),
      });
    this.#lanes.set(name, lane);
    return lane;
  }

  /** Checks on each new connection that this is the same database, and what it can guarantee. */
  async #check(connection: PrimaryConnection, lane: PostgresQueueLaneName): Promise<void> {
    const { address, requiresSync, onWarning } = this.#options;
    const { storeId } = await requireSharedStore(connection, address, postgresQueueTables);
    if (this.#storeId !== null && storeId !== this.#storeId) {
      throw new BatonError("CONFIG", `${this.where} is another store now: its tables were created again`);
    }
    this.#storeId = storeId;
    // Does not count a trial, which closes its connection when it takes too long.
    if (this.#connected.has(lane) && lane !== "trial") this.#reconnects++;
    this.#connected.add(lane);
    for (const sentence of requireSafeDatabase(address, await readDatabaseSafetyFacts(connection), { requiresSync })) {
      if (this.#warned.has(sentence)) continue;
      this.#warned.add(sentence);
      onWarning?.(sentence);
    }
  }
}

const writeText = "SELECT seq FROM SCHEMA.queue_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AS seq";

/**
 * Returns true if a message may have the change of an earlier copy: its revision has increased, and its tries and
 * crashes show no other change.
 */
function hasChange(row: PostgresRow | undefined, { row: { rev: before }, next }: MessageLifeChange): boolean {
  const rev = Number(before);
  if (row === undefined || Number(row["crashes"]) !== next.crashes) return false;
  const isSame = Number(row["state"]) === stateNumbers[next.state] && Number(row["tries"]) === next.tries;
  return Number(row["rev"]) === rev + 1 ? isSame : Number(row["rev"]) > rev && Number(row["tries"]) >= next.tries;
}

export function encodeErrorText(error: string | null): Buffer | null {
  return error === null ? null : Buffer.from(error.slice(0, errorCharsMax));
}

export function contentCrc(head: Uint8Array, body: Uint8Array): number {
  return crc32(body, crc32(head));
}

/**
 * Returns the content of a message from the columns `crc`, `head` and `body`. If the content is damaged, reports that
 * and returns a sentence about it.
 */
export function readContent(queue: PostgresQueue, row: PostgresRow): MessageContent | string {
  const { head, body } = row;
  if (head instanceof Buffer && body instanceof Buffer && contentCrc(head, body) === Number(row["crc"])) {
    return { head: JSON.parse(head.toString()) as MessageHead, body };
  }
  const what = head instanceof Buffer ? "damaged" : "missing";
  const sentence = `the content of message ${queue.key}-${seqOf(row)} is ${what}`;
  queue.reportDamage(sentence);
  return sentence;
}

function seqOf(row: MessageRow): number {
  return Number(row["seq"]);
}

/** Returns a random name: 40 bits in Crockford's base 32, as for stores in folders. */
function randomName(): string {
  const digits = "0123456789abcdefghjkmnpqrstvwxyz";
  return [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => digits[byte & 31]).join("");
}
