/** The processes around a message store in a database: a submitter, an operator, and the sink of dead letters. */
import { BatonError, type ErrorCode, errorMessage } from "../../../../src/base/errors.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import type { DeadLetterSink } from "../../../../src/retry/dead_letters/dead_letter_forwarder.ts";
import {
  PostgresRetryStore,
  type PostgresStoreOptions,
} from "../../../../src/retry/queue/postgres/postgres_retry_store.ts";
import { readOnlyRules, type StoreRules } from "../../../../src/retry/queue/store_rules.ts";
import type { NewMessage } from "../../../../src/retry/queue/stored_message.ts";
import type { Chance } from "../../../world/chance.ts";
import type { SimProcess, SimProgram } from "../../../world/sim_process.ts";
import { firstTriesOfCall, rulesOfCall } from "./message_load.ts";
import type { RetrySystem, SystemStore } from "./retry_programs.ts";
import { simAddress, type SimPostgres } from "./sim_postgres.ts";

/** Also that nobody knows whether a call has done something. */
const failures: readonly ErrorCode[] = ["STORE_FULL", "LOCK_BUSY", "UNREACHABLE", "OUTCOME_UNKNOWN"];

export function databaseStore(database: SimPostgres, sink: (process: SimProcess) => DeadLetterSink): SystemStore {
  return {
    folder: null,
    open: (process, options) => openStore(process, database, options),
    openSink: sink,
    failures,
  };
}

function openStore(
  process: SimProcess,
  database: SimPostgres,
  options: Pick<PostgresStoreOptions, "rules" | "hooks" | "leaseMs">,
): Promise<PostgresRetryStore> {
  return PostgresRetryStore.open({
    ...{ address: simAddress, name: "sim", mustExist: false, clock: process.clock },
    connect: database.connectorOf(process),
    ...options,
  });
}

/** Accepts dead letters, which may come again. A part of them fails while there are faults. */
export function lettersSink(
  process: SimProcess,
  { letters, fails }: { readonly letters: string[]; readonly fails: () => boolean },
): DeadLetterSink {
  return {
    skipsFailed: true,
    open: () =>
      Promise.resolve({
        nextOffset: () => null,
        async send({ id }) {
          await sleep(process.clock, 5);
          if (fails()) throw new BatonError("BAD_DATA", `${id} is refused`);
          letters.push(id);
          process.world.count("mark dead letter forwarded");
        },
        close: () => {},
      }),
  };
}

/** Opens a store for one command. Failures that must be expected end it. */
async function withStore(
  process: SimProcess,
  { system, database, rules }: {
    readonly system: RetrySystem;
    readonly database: SimPostgres;
    readonly rules: StoreRules;
  },
  work: (store: PostgresRetryStore) => Promise<void>,
): Promise<void> {
  try {
    await using store = await openStore(process, database, { rules });
    await work(store);
  } catch (error) {
    process.world.log(() => `${process.name}: ${errorMessage(error)}`);
    if (system.store.failures.includes((error as BatonError).code)) process.world.count("mark command failed");
    else process.world.fail("command", `${process.name}: ${(error as Error).stack}`);
  }
}

export interface DatabaseSubmitterOptions {
  readonly database: SimPostgres;
  readonly everyMs: number;
  readonly newMessage: (chance: Chance) => Omit<NewMessage, "tried">;
  /** Called when no further messages follow. */
  readonly ended: () => void;
}

/** Stores messages, some of them at the quiet end. None is stored again after a failure. */
export function databaseSubmitter(system: RetrySystem, options: DatabaseSubmitterOptions): SimProgram {
  const { oracle, isEnough, isQuiet } = system;
  const { database, everyMs, newMessage, ended } = options;
  return async (process) => {
    const chance = process.world.chance.fork(`submit ${process.name} ${process.life}`);
    const rules = rulesOfCall(system.rules, chance);
    const failed = firstTriesOfCall(chance);
    for (let isLast = false; !isLast;) {
      await sleep(process.clock, chance.next() * 2 * everyMs);
      isLast = isQuiet();
      if (isEnough() && !isLast) continue;
      const messages = Array.from({ length: isLast ? 5 : chance.oneOf([1, 1, 2, 10]) }, () => ({
        ...newMessage(chance),
        tried: chance.is(0.3) ? failed() : null,
      }));
      await withStore(process, { system, database, rules }, async (store) => {
        const askedMs = process.world.nowMs;
        for (const { id } of await store.call("accept", messages, Date.now())) oracle.accepted(id, askedMs);
      });
    }
    ended();
  };
}

/** Retries, cancels, redrives and purges messages, and pauses the store. At the quiet end no pause is left. */
export function databaseOperator(
  system: RetrySystem,
  { database, everyMs }: { readonly database: SimPostgres; readonly everyMs: number },
): SimProgram {
  return async (process) => {
    const chance = process.world.chance.fork(`operator ${process.life}`);
    const run = (work: (store: PostgresRetryStore) => Promise<void>) =>
      withStore(process, { system, database, rules: readOnlyRules }, work);
    while (!system.isQuiet()) {
      await sleep(process.clock, chance.next() * 2 * everyMs);
      await run((store) => operate(process, system, store, chance));
    }
    for (;;) {
      await run(async (store) => {
        system.oracle.resuming();
        await store.call("setPaused", false);
        system.oracle.resumed();
      });
      await sleep(process.clock, 20_000);
    }
  };
}

async function operate(
  process: SimProcess,
  { oracle }: RetrySystem,
  store: PostgresRetryStore,
  chance: Chance,
): Promise<void> {
  const kind = chance.oneOf(["retry", "cancel", "redrive", "redrive all", "purge", "pause"] as const);
  if (kind === "pause") {
    oracle.pausing();
    await store.call("setPaused", true);
    oracle.paused();
    await sleep(process.clock, chance.next() * 5000);
    oracle.resuming();
    await store.call("setPaused", false);
    return oracle.resumed();
  }
  if (kind === "redrive all") {
    const number = await store.call("startRedrive");
    return void await store.call("redrive", number, {}, chance.oneOf([1, 1000]), Date.now());
  }
  const state = kind === "retry" || kind === "cancel" ? "waiting" : "dead";
  const found = await store.call("list", { states: [state] }, { afterSeq: 0, max: 1000 });
  if (found.length === 0) return;
  const { id } = chance.oneOf(found);
  if (kind !== "redrive") oracle.touched(id, kind);
  const refusal = await store.call("change", id, kind, Date.now());
  if (refusal === null && (kind === "cancel" || kind === "purge")) oracle.changed(id, kind);
}
