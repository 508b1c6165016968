/**
 * A message store in PostgreSQL, which several processors on several machines share. Each call may be repeated after
 * UNREACHABLE, LOCK_BUSY and OUTCOME_UNKNOWN; only messages of `accept` would be stored a second time after
 * OUTCOME_UNKNOWN.
 */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import process from "node:process";
import { BatonError, errorMessage } from "../../../base/errors.ts";
import type { DatabaseAddress } from "../../../base/postgres/database_address.ts";
import { acceptMovedDatabase, migrateDatabase } from "../../../base/postgres/database_schema.ts";
import type { SqlParameter } from "../../../base/postgres/primary_connection.ts";
import { SharedStoreTrial } from "../../../base/postgres/store_trial.ts";
import { systemClock } from "../../../base/support/clock.ts";
import { CallBatcher } from "../../../base/support/gather.ts";
import type { WorkProgress } from "../../../base/support/work_progress.ts";
import { type MessageLife, type MessageState, newLife } from "../message_life.ts";
import { checkMessageSizes, postgresBodyBytesMax } from "../retry_store_limits.ts";
import type { StoreRules } from "../store_rules.ts";
import type {
  AcceptedMessage,
  IngestMessage,
  RetryVerifyReport,
  StoreClient,
  StoreHooks,
  StoreMethod,
  StoreMethods,
} from "../store_methods.ts";
import { stateNumbers, statesWithBody } from "../message_row.ts";
import { PostgresQueueAdmin } from "./postgres_queue_admin.ts";
import { PostgresClaims } from "./postgres_claims.ts";
import { PostgresDeadLetters } from "./postgres_dead_letters.ts";
import { contentCrc, errorBytes, PostgresQueue } from "./postgres_queue.ts";
import { forgetIngested, ingestMessages, lastIngestedId } from "./postgres_topics.ts";
import { postgresQueueTables } from "./postgres_queue_tables.ts";
import type { NewMessage, StateTotals } from "../stored_message.ts";

export interface PostgresStoreOptions {
  readonly address: DatabaseAddress;
  /** The name of the queue. */
  readonly name: string;
  readonly rules: StoreRules;
  readonly mustExist: boolean;
  /** Creates the tables first, or brings them to the format of this program. */
  readonly migrates?: boolean;
  /** The database may be in another cluster than the one in which its tables were made. */
  readonly wasMoved?: boolean;
  readonly requiresSync?: boolean;
  /** Duration of the lease of this process on messages, in milliseconds. Left out: it claims none. */
  readonly leaseMs?: number;
  readonly hooks?: StoreHooks;
  readonly random?: () => number;
}

/** The calls as promises. */
type AsyncStoreMethods = {
  readonly [Name in StoreMethod]: (
    ...values: Parameters<StoreMethods[Name]>
  ) => Promise<ReturnType<StoreMethods[Name]>>;
};

/** How long a trial waits for the database: less than a status page waits for its result. */
const trialMs = 1500;
/** Limits of one statement. */
const acceptMessagesMax = 1024;
const acceptBytesMax = 16 << 20;

export class PostgresRetryStore implements StoreClient, AsyncDisposable {
  readonly #queue: PostgresQueue;
  readonly #options: PostgresStoreOptions;
  readonly #letters: PostgresDeadLetters;
  readonly #admin: PostgresQueueAdmin;
  readonly #accepts: CallBatcher<readonly NewMessage[], AcceptedMessage[]>;
  readonly #methods: AsyncStoreMethods;
  readonly #random: () => number;
  readonly #trial: SharedStoreTrial;
  #counted: { readonly totals: Record<MessageState, StateTotals>; readonly untilMs: number } | null = null;
  /** AcceptedMessage by this process since the messages were counted. */
  #added = { count: 0, bytes: 0 };
  #nextSeq = -1;
  #isChecking = false;

  private constructor(options: PostgresStoreOptions) {
    const { address, name, rules, hooks, leaseMs = 0, random = Math.random } = options;
    const clock = systemClock();
    this.#options = options;
    this.#random = random;
    this.#queue = new PostgresQueue({
      address,
      name,
      clock,
      forwards: rules.forwards,
      requiresSync: options.requiresSync ?? false,
      ...(hooks?.onDamage === undefined ? {} : { onDamage: hooks.onDamage }),
      ...(hooks?.onWarning === undefined ? {} : { onWarning: hooks.onWarning }),
    });
    this.#trial = new SharedStoreTrial({
      table: "retry_body",
      tables: postgresQueueTables,
      row: `(queue, seq, crc, head, body) VALUES (0, pg_backend_pid(), 0, '', BYTES)`,
      now: () => clock.now(),
      run: ({ name, text }) => this.#queue.runOnce(name, text, [], { lane: "trial", deadlineMs: trialMs }),
    });
    this.#letters = new PostgresDeadLetters(this.#queue, clock);
    this.#admin = new PostgresQueueAdmin(this.#queue);
    const processName = `${hostname()} ${process.pid}`;
    const claims = new PostgresClaims(this.#queue, { rules, leaseMs, processName, random });
    this.#accepts = new CallBatcher({
      itemsMax: acceptMessagesMax,
      sizeMax: acceptBytesMax,
      sizeOf: (messages) => messages.reduce((sum, { body }) => sum + body.byteLength, 0),
      work: (groups) => this.#acceptGroups(groups),
    });
    this.#methods = this.#methodsOf(claims);
  }

  /** Makes the tables, and accepts another cluster, if the options say so. Rejects with StatementError. */
  static async prepare(
    { address, migrates = false, wasMoved = false }: Pick<PostgresStoreOptions, "address" | "migrates" | "wasMoved">,
  ): Promise<void> {
    if (migrates) {
      await migrateDatabase(address, { tables: postgresQueueTables, clock: systemClock(), name: "migration" });
    }
    if (wasMoved) await acceptMovedDatabase(address, { clock: systemClock(), name: "operator" });
  }

  /** Rejects with CONFIG if there is no such queue or the database cannot be used, UNREACHABLE, and REFUSED. */
  static async open(options: PostgresStoreOptions): Promise<PostgresRetryStore> {
    const { mustExist } = options;
    await PostgresRetryStore.prepare(options);
    const store = new PostgresRetryStore(options);
    try {
      await store.#queue.open({ mustExist });
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  call<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): Promise<ReturnType<StoreMethods[Name]>> {
    return this.#methods[method](...values);
  }

  /** A read is a call that takes its own snapshot. */
  read<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): Promise<ReturnType<StoreMethods[Name]>> {
    return this.call(method, ...values);
  }

  /** Checks everything in the queue, even one in use. Changes nothing. */
  verify(progress?: WorkProgress): Promise<RetryVerifyReport> {
    return this.#admin.verify(progress);
  }

  /** Calls `onChanged` if messages were accepted since the last call, by any process. */
  checkForChanges(): void {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const look = async () => {
      const text = "SELECT next_seq FROM SCHEMA.queue WHERE id = $1";
      const [row] = await this.#queue.runOnce("queue_next_seq", text, [this.#queue.id], { lane: "accepts" });
      const nextSeq = Number(row?.["next_seq"]);
      if (nextSeq !== this.#nextSeq) this.#options.hooks?.onChanged?.();
      this.#nextSeq = nextSeq;
    };
    // A database that cannot be reached is reported by the calls of the processor.
    look().catch(() => {}).finally(() => this.#isChecking = false);
  }

  /** Ends calls in progress. */
  async close(): Promise<void> {
    await this.#letters.leaveRole().catch(() => {}); // it ends by itself, later
    await this.#queue.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #methodsOf(claims: PostgresClaims): AsyncStoreMethods {
    const admin = this.#admin;
    const letters = this.#letters;
    const queue = this.#queue;
    return {
      accept: (messages) => this.#accept(messages),
      ingest: (topic, messages) => this.#ingest(topic, messages),
      lastIngestedId: (topic) => lastIngestedId(queue, topic),
      forgetIngested: (topic, id) => forgetIngested(queue, topic, id),
      register: () => claims.register(),
      renew: (owner) => claims.renew(owner),
      leave: (owner) => claims.leave(owner),
      reclaim: () => claims.reclaim(),
      claim: (order) => claims.claim(order),
      finish: (report) => claims.finish(report),
      totals: () => this.#totals(),
      fullReason: () => this.#fullReason(),
      markForwarded: (seq, _nowMs, isMarked) => letters.markForwarded(seq, isMarked),
      storeName: () => Promise.resolve(queue.key),
      list: (filter, page) => admin.list(filter, page),
      show: (id) => admin.show(id),
      change: (id, change) => admin.change(id, change),
      startRedrive: () => admin.startRedrive(),
      redrive: (number, filter, max) => admin.redrive(number, filter, max),
      countRedrivable: (filter) => admin.countRedrivable(filter),
      purge: (filter) => admin.purge(filter),
      setPaused: (isPaused) => admin.setPaused(isPaused),
      isPaused: () => admin.isPaused(),
      waitingTimes: () => admin.waitingTimes(),
      forget: (beforeMs) => admin.forget(beforeMs),
      pendingDeadLetters: (max) => letters.pending(max),
      deadLetterBacklog: () => letters.backlog(),
      keptDeadLetters: () => letters.kept(),
      markForwarding: (seq, offset) => letters.markForwarding(seq, offset),
      clearForwardDelays: () => letters.clearDelays(),
      recordForwardFailure: (seq, error) => letters.recordFailure(seq, error),
      reserveLog: () => Promise.resolve(),
      disk: async () => ({ usedBytes: await admin.usedBytes(), freeBytes: null }),
      damageCount: () => Promise.resolve(queue.damages),
      canBeTried: () => admin.canBeTried(),
      // A damaged message becomes a dead letter when it is claimed.
      countDamaged: () => Promise.resolve(0),
    };
  }

  async #accept(messages: readonly NewMessage[]): Promise<AcceptedMessage[]> {
    let bytes = 0;
    for (const message of messages) {
      checkMessageSizes(message, postgresBodyBytesMax);
      bytes += message.body.byteLength;
    }
    await this.#requireRoom(messages.length, bytes);
    const accepted = await this.#accepts.add(messages);
    this.#added = { count: this.#added.count + messages.length, bytes: this.#added.bytes + bytes };
    return accepted;
  }

  /** Stores the messages of several calls in one statement: all of them or none. */
  async #acceptGroups(groups: readonly (readonly NewMessage[])[]): Promise<AcceptedMessage[][]> {
    const queue = this.#queue;
    const { values, lives: newLives } = this.#acceptValues(groups.flat());
    const [row] = await queue.run("queue_accept", acceptText, [queue.id, ...values], { lane: "accepts" }).catch(
      (error) => {
        if (error instanceof BatonError && error.code === "STORE_FULL") this.#trial.noteFull();
        throw error;
      },
    );
    let seq = Number(row?.["seq"]);
    const lives = newLives.map((life) => ({ ...life, nextAtMs: queue.toLocalMs(life.nextAtMs) }));
    let at = 0;
    return groups.map((group) => group.map(() => ({ id: queue.idOf(seq++), life: lives[at++] as MessageLife })));
  }

  /**
   * Stores the messages of a topic that are new, all of them or none. Returns their number. Rejects with STORE_FULL and
   * BAD_DATA.
   */
  async #ingest(topic: string, messages: readonly IngestMessage[]): Promise<number> {
    const head = { kind: "command", argv: null, cwd: null } as const;
    const accepted = (bodies: readonly Uint8Array[]) => bodies.map((body) => ({ head, body, key: null, tried: null }));
    let bytes = 0;
    for (const message of accepted(messages.map(({ body }) => body))) {
      checkMessageSizes(message, postgresBodyBytesMax);
      bytes += message.body.byteLength;
    }
    await this.#requireRoom(messages.length, bytes);
    const acceptValues = (bodies: readonly Uint8Array[]) => this.#acceptValues(accepted(bodies)).values;
    const count = await ingestMessages(this.#queue, { topic, messages, acceptValues });
    this.#added = { count: this.#added.count + count, bytes: this.#added.bytes + bytes };
    return count;
  }

  /**
   * The values of `queue_accept` after the queue. With the same token in every repetition, the messages are stored
   * once.
   */
  #acceptValues(messages: readonly NewMessage[]): { readonly values: SqlParameter[]; readonly lives: MessageLife[] } {
    const queue = this.#queue;
    const nowMs = queue.nowMs();
    const all = messages.map((message) => {
      const head = Buffer.from(JSON.stringify(message.head));
      return { message, head, life: newLife(message.tried, this.#options.rules, nowMs, this.#random) };
    });
    const each = <T>(of: (one: (typeof all)[number]) => T) => all.map(of);
    const values = [
      randomUUID(),
      each(({ message: { key } }) => key === null ? null : Buffer.from(key)),
      each(({ life }) => stateNumbers[life.state]),
      each(({ life }) => life.tries),
      each(({ life }) => Math.round(life.nextAtMs - nowMs)),
      each(({ life }) => life.reason),
      each(({ message: { tried } }) => errorBytes(tried?.error ?? null)),
      each(({ life }) => queue.forwardingOf(life)),
      each(({ head, message: { body } }) => contentCrc(head, body)),
      each(({ head }) => head.byteLength),
      each(({ message: { body } }) => body.byteLength),
      Buffer.concat(all.flatMap(({ head, message: { body } }) => [head, body])),
    ];
    return { values, lives: each(({ life }) => life) };
  }

  /** Returns the last count unless it is old for the time that it took: counting reads all messages of the queue. */
  async #recentTotals(): Promise<Record<MessageState, StateTotals>> {
    const counted = this.#counted;
    return counted !== null && systemClock().now() < counted.untilMs ? counted.totals : await this.#totals();
  }

  async #totals(): Promise<Record<MessageState, StateTotals>> {
    const clock = systemClock();
    const startMs = clock.now();
    const totals = await this.#admin.totals();
    const tookMs = clock.now() - startMs;
    this.#counted = { totals, untilMs: clock.now() + 20 * tookMs };
    this.#added = { count: 0, bytes: 0 };
    return totals;
  }

  /** Throws STORE_FULL if this many more exceed a limit. What other processes accept at the same time may exceed it. */
  async #requireRoom(count: number, bytes: number): Promise<void> {
    const { maxMessages, maxBytes } = this.#options.rules;
    const totals = await this.#recentTotals();
    const sum = (what: keyof StateTotals) =>
      statesWithBody.reduce((all, state) => all + totals[state][what], this.#added[what]);
    const where = `The message store "${this.#queue.name}" in ${this.#queue.where} is full`;
    if (sum("count") + count > maxMessages) {
      const why = `it has ${sum("count")} messages, the limit is ${maxMessages} (--max-messages)`;
      throw new BatonError("STORE_FULL", `${where}: ${why}`);
    }
    if (sum("bytes") + bytes > maxBytes) {
      const why = `its messages have ${
        sum("bytes")
      } bytes, ${bytes} more exceed the limit of ${maxBytes} (--max-bytes)`;
      throw new BatonError("STORE_FULL", `${where}: ${why}`);
    }
  }

  /** The reason why no message would be accepted now, also that the database does not respond. */
  async #fullReason(): Promise<string | null> {
    try {
      const why = await this.#trial.whyNotStored();
      if (why === null) await this.#requireRoom(1, 1);
      return why;
    } catch (error) {
      return errorMessage(error);
    }
  }
}

const acceptText = "SELECT SCHEMA.queue_accept($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS seq";
