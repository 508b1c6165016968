/** A store without its thread, for tests: operations with defaults in, responses in the order of the operations out. */
import { afterAll, afterEach, beforeAll, beforeEach } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StoreOperation, StoreResponse } from "../../../../src/pubsub/store/operations/store_operations.ts";
import { decodedOperation } from "../../../support/store_requests.ts";
import { RefusedPuts } from "../../../../src/pubsub/store/limits/refused_puts.ts";
import { SqliteTopicRows } from "../../../../src/pubsub/store/sqlite/sqlite_topic_rows.ts";
import { LateRows, runArriving } from "./late_rows.ts";
import {
  isStepGenerator,
  type RunStepMethods,
  runStepsNow,
  type StepGenerator,
} from "../../../../src/base/support/steps.ts";
import { StoreEngine } from "../../../../src/pubsub/store/engine/store_engine.ts";
import {
  defaultTopicStoreOptions,
  type TopicStoreOptions,
} from "../../../../src/pubsub/store/limits/topic_store_limits.ts";
import { TopicTransfer } from "../../../../src/pubsub/store/transfer/topic_transfer.ts";
import { TopicDatabase } from "../../../../src/pubsub/store/sqlite/topic_database.ts";
import type { TopicRows } from "../../../../src/pubsub/store/rows/topic_rows.ts";
import { dose } from "../../../support/dose.ts";
import { describeWithPeer, hasPeer } from "../../../support/peers.ts";
import { PostgresStore, PostgresStores } from "./postgres_stores.ts";
import { TopicMaintenance } from "../../../../src/pubsub/store/engine/topic_maintenance.ts";

/** An operation of one kind, as much of it as the test wants to say. */
export type Some<Kind extends StoreOperation["kind"]> =
  & { readonly kind?: Kind }
  & Partial<Omit<Extract<StoreOperation, { kind: Kind }>, "kind">>;
export type SomeOperation = { readonly kind: StoreOperation["kind"] } & Partial<Record<string, unknown>> | Some<"put">;

/**
 * Call it once in a file: what makes stores, each in a folder of its own, which goes after the test. In memory where
 * there is such a place: what these tests prove is not that a disk keeps what it was given.
 */
export function engineDrivers(
  place: RowPlace = "here",
): (options?: Partial<TopicStoreOptions>, more?: DriverOptions) => EngineDriver {
  let root = "";
  let stores: PostgresStores | null = null;
  if (place === "in PostgreSQL") {
    beforeAll(async () => void (stores = await PostgresStores.start()), 60_000);
    afterAll(async () => await stores?.[Symbol.asyncDispose]());
  }
  beforeEach(() => root = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "baton-topics-")));
  afterEach(() => rmSync(root, { recursive: true, force: true }));
  let made = 0;
  return (options = {}, more = {}) =>
    new EngineDriver(join(root, `store-${made++}`), options, { ...more, place, stores });
}

/**
 * The places of a store's rows: in this process; elsewhere, so that the engine waits for each answer; and in a real
 * database that servers share.
 */
export type RowPlace = "here" | "elsewhere" | "in PostgreSQL";
export const rowPlaces: readonly RowPlace[] = hasPeer("postgres")
  ? ["here", "elsewhere", "in PostgreSQL"]
  : ["here", "elsewhere"];
if (!hasPeer("postgres")) describeWithPeer("postgres", "rows in PostgreSQL", () => {});

/** Runs of a property test: a store in a database of its own takes longer to make. */
export function runsIn(place: RowPlace, { gate, full }: { readonly gate: number; readonly full: number }): number {
  return dose(place === "in PostgreSQL" ? { gate: Math.ceil(gate / 8), full: full / 8 } : { gate, full });
}

export interface DriverOptions {
  readonly place?: RowPlace;
  readonly stores?: PostgresStores | null;
  /** Whether the topic `news` is made. */
  readonly creates?: boolean;
  readonly warn?: (sentence: string) => void;
}

/** An object whose steps are run to their end by `run` when they are called. */
function running<T extends object>(object: T, run: (steps: StepGenerator<unknown>) => unknown): RunStepMethods<T> {
  return new Proxy(object, {
    get: (_, name) => {
      const value: unknown = Reflect.get(object, name, object);
      if (typeof value !== "function") return value;
      return (...values: unknown[]) => {
        const result: unknown = value.apply(object, values);
        return isStepGenerator(result) ? run(result) : result;
      };
    },
  }) as RunStepMethods<T>;
}

export class EngineDriver {
  readonly #dir: string;
  readonly #place: RowPlace;
  /** How often the engine has waited for rows. */
  waits = 0;
  readonly #options: TopicStoreOptions;
  readonly #warn: (sentence: string) => void;
  #database: TopicDatabase | null = null;
  readonly #postgres: PostgresStore | null;
  rows!: TopicRows;
  engine!: RunStepMethods<StoreEngine>;
  transfer!: RunStepMethods<TopicTransfer>;
  maintenance!: RunStepMethods<TopicMaintenance>;
  lastTransfer!: TopicTransfer;
  #rawEngine!: StoreEngine;
  #responses: StoreResponse[] = [];
  #ticket = 1000;
  #isOpen = false;
  /** Its wall clock. */
  nowMs = 1_000_000;
  /** Why nothing may be written. */
  noRoom: string | null = null;
  /** Called for responses that no batch waits for. */
  onResponse: (response: StoreResponse) => void = () => {};

  constructor(
    dir: string,
    options: Partial<TopicStoreOptions> = {},
    { creates = true, warn = () => {}, place = "here", stores = null }: DriverOptions = {},
  ) {
    this.#dir = dir;
    this.#place = place;
    this.#warn = warn;
    this.#options = { ...defaultTopicStoreOptions, ...options };
    this.#postgres = stores && new PostgresStore(stores, this.#options, {
      nowMs: () => this.nowMs,
      onReply: ({ responses, warnings, waits }) => {
        for (const response of responses) this.#noteResponse(response);
        for (const sentence of warnings) this.#warn(sentence);
        this.waits += waits;
      },
    });
    this.#open(true);
    if (creates) this.transfer.create("news", { incarnation: "b", baseOffset: 0, epoch: 1 });
  }

  get folder(): string {
    return this.#dir;
  }

  /** The SQLite file. */
  get database(): TopicDatabase {
    if (this.#database === null) throw new Error("this store is not in SQLite");
    return this.#database;
  }

  /** Number of commits since the store was opened. */
  get commits(): number {
    return this.rows.commits;
  }

  /** The rows of a query on the tables of SQLite, which have the same columns in PostgreSQL. */
  query(sql: string): readonly Record<string, unknown>[] {
    if (this.#postgres === null) return this.database.all(sql);
    const text = sql.replace(
      /FROM (\w+?)s?\b/,
      (_, name) => `FROM SCHEMA.${name === "topic" ? name : `topic_${name}`}`,
    );
    return this.#postgres.sql(text.replace(/sum\(([^)]*)\)/, "sum($1)::bigint"));
  }

  /** The only value of such a query. */
  value(sql: string): unknown {
    return Object.values(this.query(sql)[0] ?? {})[0];
  }

  /** Ends the store without writing what is not durable, and opens it again. */
  reopen(): void {
    if (this.#isOpen) this.#close();
    this.#open(false);
  }

  close(): void {
    this.#close();
    this.#postgres?.release();
  }

  #close(): void {
    this.#isOpen = false;
    this.#database?.close();
    this.#postgres?.close();
  }

  #noteResponse(response: StoreResponse): void {
    this.#responses.push(response);
    this.onResponse(response);
  }

  complete(operation: SomeOperation): StoreOperation {
    const given = Object.fromEntries(Object.entries(operation).filter(([, value]) => value !== undefined));
    const common = { ticket: this.#ticket++, topic: "news", epoch: 1, client: "bob", session: null, op: null };
    const puts = { firstUnacked: 0, after: null, msgId: null, fromSession: null };
    const gets = { max: 1, maxBytes: 0, wait: false, peek: false, last: -1 };
    return { ...common, ...puts, ...gets, ...given } as unknown as StoreOperation;
  }

  /** One batch, through the frames that the thread decodes. */
  execute(...operations: SomeOperation[]): StoreResponse[] {
    const decoded = operations.map((operation) => {
      const whole = this.complete(operation);
      return whole.kind === "cancel" ? whole : decodedOperation(whole);
    });
    const tickets = decoded.map((whole) => whole.kind === "cancel" ? -1 : whole.ticket);
    this.#responses = [];
    this.engine.execute(decoded, this.noRoom);
    const place = (ticket: number) => tickets.includes(ticket) ? tickets.indexOf(ticket) : tickets.length;
    return this.#responses.sort((a, b) => place(a.ticket) - place(b.ticket));
  }

  /** The stream of the topic `news`, which is sealed at this epoch. */
  exported(epoch = 1): { readonly pieces: Uint8Array[]; readonly hash: string } {
    const transfer = this.transfer.exportBegin("news", epoch);
    const pieces: Uint8Array[] = [];
    for (;;) {
      const { piece, hash } = this.transfer.exportNext(transfer);
      if (hash !== null) return { pieces, hash };
      if (piece !== null) pieces.push(piece);
    }
  }

  /** The transfers of the store, after those that `before` has numbered. */
  newTransfer(before: TopicTransfer | null): RunStepMethods<TopicTransfer> {
    if (this.#postgres !== null) {
      this.#postgres.object<{ newTransfer(): void }>().newTransfer();
      return this.#postgres.object("transfer");
    }
    this.lastTransfer = new TopicTransfer(this.rows, this.#rawEngine, before);
    return running(this.lastTransfer, (steps) => this.#run(steps));
  }

  #run(steps: StepGenerator<unknown>): unknown {
    return this.#place === "here" ? runStepsNow(steps) : runArriving(steps, () => this.waits++);
  }

  #open(isNew: boolean): void {
    this.#isOpen = true;
    if (this.#postgres !== null) {
      this.#postgres.open(isNew);
      for (const name of ["rows", "engine", "transfer", "maintenance"] as const) {
        Object.assign(this, { [name]: this.#postgres.object(name) });
      }
      return;
    }
    this.#database = new TopicDatabase(this.#dir);
    try {
      this.#load(this.#database);
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  #load(database: TopicDatabase): void {
    const rows = new SqliteTopicRows(database);
    this.rows = this.#place === "here" ? rows : new LateRows(rows);
    const engine = new StoreEngine(this.rows, this.#options, {
      onResponse: (response) => {
        if (database.inTransaction) throw new Error("An response was given before its commit");
        this.#noteResponse(response);
      },
      wallClockMs: () => this.nowMs,
      refusedPuts: new RefusedPuts(),
      warn: this.#warn,
    });
    this.engine = running(engine, (steps) => this.#run(steps));
    this.engine.open();
    this.#rawEngine = engine;
    this.transfer = this.newTransfer(null);
    this.maintenance = running(new TopicMaintenance(this.rows, engine), (steps) => this.#run(steps));
    this.transfer.dropIncomplete();
  }
}
