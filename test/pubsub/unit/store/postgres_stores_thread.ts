/**
 * Topic stores in schemas of a PostgreSQL database, in a thread: the tests call their methods one after the other and
 * wait for each result, as if they were synchronous. `postgres_stores.ts` has the other side.
 */
import { type MessagePort, workerData } from "node:worker_threads";
import { BatonError } from "../../../../src/base/errors.ts";
import { parseDatabaseUrl } from "../../../../src/base/postgres/database_address.ts";
import { DatabaseLane } from "../../../../src/base/postgres/database_lane.ts";
import { migrateDatabase } from "../../../../src/base/postgres/database_schema.ts";
import { postgresTopicTables } from "../../../../src/pubsub/store/postgres/postgres_tables.ts";
import { PostgresTopicRows } from "../../../../src/pubsub/store/postgres/postgres_topic_rows.ts";
import { RefusedPuts } from "../../../../src/pubsub/store/limits/refused_puts.ts";
import { StoreEngine } from "../../../../src/pubsub/store/engine/store_engine.ts";
import { StoredTopic } from "../../../../src/pubsub/store/content/stored_topic.ts";
import type { StoreResponse } from "../../../../src/pubsub/store/operations/store_operations.ts";
import { isStepGenerator, type StepGenerator } from "../../../../src/base/support/steps.ts";
import { decodeStoredName } from "../../../../src/pubsub/store/rows/topic_client.ts";
import { TopicMaintenance } from "../../../../src/pubsub/store/engine/topic_maintenance.ts";
import type { TopicStoreOptions } from "../../../../src/pubsub/store/limits/topic_store_limits.ts";
import { TopicTransfer } from "../../../../src/pubsub/store/transfer/topic_transfer.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";

export type ThreadCall =
  /** Opens a store in the schema `store`, which keeps its content if it was opened before. */
  | { readonly kind: "open"; readonly store: string; readonly options: TopicStoreOptions; readonly isNew: boolean }
  | { readonly kind: "close"; readonly store: string }
  | { readonly kind: "get"; readonly store: string; readonly path: readonly string[] }
  | {
    readonly kind: "apply";
    readonly store: string;
    readonly path: readonly string[];
    readonly values: readonly unknown[];
  }
  | { readonly kind: "sql"; readonly store: string; readonly text: string };

export interface ThreadReply {
  readonly type: "value" | "object" | "function";
  readonly value?: unknown;
  readonly error?: { readonly code: string | null; readonly message: string };
  readonly responses: readonly StoreResponse[];
  readonly warnings: readonly string[];
  /** How often the store has waited for the database. */
  readonly waits: number;
}

interface OpenStore {
  readonly lane: DatabaseLane;
  readonly rows: PostgresTopicRows;
  readonly engine: StoreEngine;
  transfer: TopicTransfer;
  readonly maintenance: TopicMaintenance;
  /** As after a failure, when what is in memory is read again. */
  readonly newTransfer: () => void;
}

const { port, url, signal } = workerData as {
  readonly port: MessagePort;
  readonly url: string;
  readonly signal: Int32Array;
};
const clock = systemClock();
const stores = new Map<string, OpenStore>();
const tableNames = ["message", "client", "window", "resolved", "msg_id", "dropped", "mark"].map((name) =>
  `topic_${name}`
);
let nowMs = 0;
let responses: StoreResponse[] = [];
let warnings: string[] = [];
let waits = 0;

async function run<Result>(steps: StepGenerator<Result>): Promise<Result> {
  let step = steps.next();
  while (step.done !== true) {
    waits++;
    let value: unknown;
    try {
      value = await step.value;
    } catch (error) {
      step = steps.throw(error);
      continue;
    }
    step = steps.next(value);
  }
  return step.value;
}

async function open(schema: string, options: TopicStoreOptions, isNew: boolean): Promise<void> {
  const address = parseDatabaseUrl(`${url}?schema=${schema}`, { mayHavePassword: true, env: {} });
  if (isNew) await migrateDatabase(address, { clock, name: "test", tables: postgresTopicTables });
  const lane = new DatabaseLane({ address, clock, name: "s1" });
  if (isNew) {
    const all = ["topic", ...tableNames].map((name) => `${schema}.${name}`).join(", ");
    await lane.run({ name: "empty", text: `TRUNCATE ${all} RESTART IDENTITY` });
  }
  const rows = new PostgresTopicRows({
    lane,
    clock,
    server: "s1",
    onLoss: (sentence) => warnings.push(sentence),
  });
  const engine = new StoreEngine(rows, options, {
    onResponse: (response) => responses.push(response),
    wallClockMs: () => nowMs,
    refusedPuts: new RefusedPuts(),
    warn: (sentence) => warnings.push(sentence),
  });
  await run(engine.open());
  await rows.copies.findGarbage();
  const transfer = new TopicTransfer(rows, engine);
  const maintenance = new TopicMaintenance(rows, engine);
  const store: OpenStore = {
    lane,
    rows,
    engine,
    transfer,
    maintenance,
    newTransfer: () => void (store.transfer = new TopicTransfer(rows, engine, store.transfer)),
  };
  stores.set(schema, store);
  await run(transfer.dropIncomplete());
  // What this server has owned it opens again, as after a restart.
  const owned = await lane.run({
    name: "owned",
    text: `SELECT name, epoch FROM ${schema}.topic WHERE place = 0 AND owner = 's1'`,
  });
  for (const { name, epoch } of owned) await run(transfer.activate(decodeStoredName(name), Number(epoch), "copy"));
}

async function close(schema: string): Promise<void> {
  await stores.get(schema)?.lane.close();
  stores.delete(schema);
}

/** The value at a path of a store, and the object that it is a property of. */
function find(schema: string, path: readonly string[]): { readonly owner: object; readonly value: unknown } {
  let owner: object = stores.get(schema) as OpenStore;
  let value: unknown = owner;
  for (const name of path) {
    owner = value as object;
    value = Reflect.get(owner, name, owner);
  }
  return { owner, value };
}

async function execute(call: ThreadCall): Promise<Pick<ThreadReply, "type" | "value">> {
  switch (call.kind) {
    case "open":
      await open(call.store, call.options, call.isNew);
      return { type: "value" };
    case "close":
      await close(call.store);
      return { type: "value" };
    case "get": {
      const { value } = find(call.store, call.path);
      if (typeof value === "function") return { type: "function" };
      const isPlain = value === null || typeof value !== "object" || Array.isArray(value);
      return isPlain ? { type: "value", value } : { type: "object" };
    }
    case "apply": {
      const { owner, value } = find(call.store, call.path);
      const result: unknown = (value as (...values: readonly unknown[]) => unknown).apply(owner, [...call.values]);
      return { type: "value", value: sendable(isStepGenerator(result) ? await run(result) : await result) };
    }
    case "sql": {
      const lane = stores.get(call.store)?.lane as DatabaseLane;
      const text = call.text.replace(/\bSCHEMA\./g, `${call.store}.`);
      return { type: "value", value: await lane.run({ name: text.slice(0, 60), text }) };
    }
  }
}

/** A topic as its values, as far as tests look at them. */
function sendable(value: unknown): unknown {
  if (!(value instanceof StoredTopic)) return value;
  const { epoch, clientCount, plainCount, registration, damagedClients, log: { lastId } } = value;
  return { epoch, clientCount, plainCount, registration, damagedClients, log: { lastId } };
}

let last: Promise<void> = Promise.resolve();
port.on("message", (message: { readonly call: ThreadCall; readonly nowMs: number }) => {
  last = last.then(async () => {
    ({ nowMs } = message);
    let result: Pick<ThreadReply, "type" | "value" | "error">;
    try {
      result = await execute(message.call);
    } catch (error) {
      const code = error instanceof BatonError ? error.code : null;
      result = { type: "value", error: { code, message: error instanceof Error ? error.message : String(error) } };
    }
    const reply: ThreadReply = { ...result, responses, warnings, waits };
    responses = [];
    warnings = [];
    waits = 0;
    port.postMessage(reply);
    Atomics.add(signal, 0, 1);
    Atomics.notify(signal, 0);
  });
});
