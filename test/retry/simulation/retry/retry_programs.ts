/**
 * The processes around a message store as simulated programs: processors, submitters, an operator. All of them run the
 * real code.
 */
import { connectionSettings } from "../../../../src/coordination/settings/coordination_settings.ts";
import { type ConfigSources, resolveSettings } from "../../../../src/base/config/resolve_settings.ts";
import { retrySettings } from "../../../../src/retry/settings/retry_settings.ts";
import type { SettingValues } from "../../../../src/base/config/setting.ts";
import { type BatonError, type ErrorCode, errorMessage } from "../../../../src/base/errors.ts";
import { HttpClient } from "../../../../src/base/http/http_client.ts";
import { RetryHttpProxy } from "../../../../src/retry/http_proxy/retry_http_proxy.ts";
import { StoreProcessor } from "../../../../src/retry/processor/store_processor.ts";
import type { MachineBoot } from "../../../../src/retry/queue/machine_boot.ts";
import { readRequestMemory } from "../../../../src/retry/http_proxy/request_budget.ts";
import { readRetryRules } from "../../../../src/retry/processor/retry_rules.ts";
import { DirectStore } from "../../../../src/retry/queue/sqlite/direct_store.ts";
import type { DeadLetterDestination } from "../../../../src/retry/dead_letters/dead_letter_destination.ts";
import type { DeadLetterSink } from "../../../../src/retry/dead_letters/dead_letter_forwarder.ts";
import type { ServiceStore, ServiceStoreOptions } from "../../../../src/retry/queue/store_methods.ts";
import { readOnlyRules, type StoreRules } from "../../../../src/retry/queue/store_rules.ts";
import { RetryStore } from "../../../../src/retry/queue/sqlite/retry_store.ts";
import { serveRetryStore } from "../../../../src/retry/queue/sqlite/retry_store_thread.ts";
import type { FirstTry, NewMessage } from "../../../../src/retry/queue/stored_message.ts";
import { HttpTarget } from "../../../../src/retry/targets/http_target.ts";
import type { Target } from "../../../../src/retry/targets/target.ts";
import type { Address } from "../../../../src/base/sockets/connection.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import type { Chance } from "../../../world/chance.ts";
import type { SimNetwork } from "../../../world/sim_network.ts";
import type { SimProcess, SimProgram } from "../../../world/sim_process.ts";
import { SimStorageThread } from "../../../world/sim_thread.ts";
import { backendHost, backendPort, simulatedExchange } from "./backend_program.ts";
import { type CommandAct, runCommand } from "./command_model.ts";
import { type Ending, EndingRun } from "./ending_run.ts";
import { letterSink, type LetterSystem } from "./letter_sinks.ts";
import { firstTriesOfCall, rulesOfCall, usualFirstTry } from "./message_load.ts";
import type { RetryDisk } from "./retry_disk.ts";
import type { RetryOracle } from "./retry_oracle.ts";
import type { ServeOracle } from "./serve_oracle.ts";
import { simulatedListen } from "./sim_http.ts";

const backend = { origin: `http://${backendHost}:${backendPort}`, path: "/" };
/** The time until a process that has ended is started again, in milliseconds. */
const restartMs = 1000;
/** Events of a processor that are counted as situations. */
const counted: readonly string[] = [
  ...["lease_lost", "reclaimed", "stale", "clock_set", "store_busy"],
  ...["dead_letter_forwarded", "dead_letter_failed"],
];

/** How the processors of a world reach their message store. */
export interface SystemStore {
  /** Null: it is in a database. */
  readonly folder: string | null;
  readonly open: (process: SimProcess, options: ServiceStoreOptions) => Promise<ServiceStore>;
  readonly openSink: (
    process: SimProcess,
    options: { readonly destination: DeadLetterDestination; readonly timeoutMs: number },
  ) => DeadLetterSink;
  /** Failures that its processes must expect. */
  readonly failures: readonly ErrorCode[];
}

export interface RetrySystem {
  readonly network: SimNetwork;
  readonly store: SystemStore;
  /** Null: the store is in a database. */
  readonly disk: RetryDisk | null;
  readonly oracle: RetryOracle;
  readonly kind: "http" | "command";
  readonly sources: ConfigSources;
  /** Null: the processors do not serve clients. */
  readonly served: ServeOracle | null;
  readonly rules: StoreRules;
  /** What a command does. */
  readonly act: (id: string, body: string) => CommandAct;
  /** Whether a content is the whole one of a message. */
  readonly isWhole: (body: string) => boolean;
  readonly isQuiet: () => boolean;
  /** Whether no further messages are stored. */
  readonly isEnough: () => boolean;
  /** Whether calls may have no --dead-letter, and may fail finally. */
  readonly callsDiffer?: boolean;
}

export function endOf(process: SimProcess, how: string, startsAfterMs = restartMs): void {
  process.world.log(() => `${process.name} has ended: ${how}`);
  process.exit();
  process.world.after(startsAfterMs, () => process.start());
}

/** Each boot has its own id, and its clock starts at 0. */
export function bootOf({ machine }: SimProcess): MachineBoot {
  const sinceMs = machine.bootsMs.at(-1) ?? -60_000;
  return { id: `boot ${machine.bootsMs.length}`, nowMs: () => machine.bootMs() - sinceMs };
}

function startThread(process: SimProcess, disk: RetryDisk): SimStorageThread {
  const thread = new SimStorageThread(process, disk.lockedMs);
  serveRetryStore({
    parent: thread.parent,
    openDatabase: (_, { mustExist }) => disk.open(process, (durationMs) => thread.spendMs(durationMs), mustExist),
  });
  return thread;
}

/** A store in a folder of the machine. */
export interface FolderSystem extends RetrySystem {
  readonly disk: RetryDisk;
}

export function folderStore(disk: RetryDisk, letters: LetterSystem): SystemStore {
  return {
    folder: disk.folder,
    open: (process, options) =>
      RetryStore.open(disk.folder, { ...options, startThread: () => startThread(process, disk) }),
    openSink: (process, options) => letterSink(process, letters, options),
    failures: ["IO", "STORE_FULL", "LOCK_BUSY"],
  };
}

export interface ProcessorOptions {
  /** Messages that it stores itself each second, after a first try that failed; 0: none. */
  readonly acceptRate: number;
  /** Where it serves clients; null: nowhere. */
  readonly address: Address | null;
  /** Other than "stopped": it ends by itself, and is started again by a crontab. */
  readonly until: "stopped" | Ending;
  /** Called when a run has ended by itself, and found nothing to complain about. */
  readonly ended: () => void;
  /** Ends the processor in order. */
  readonly whenTold: (process: SimProcess) => Promise<void>;
  readonly newMessage: (chance: Chance) => Omit<NewMessage, "tried">;
}

export function processorProgram(system: RetrySystem, options: ProcessorOptions): SimProgram {
  const { disk, oracle, network, sources, store } = system;
  const { until } = options;
  return async (process) => {
    const { world, clock } = process;
    const client = new HttpClient({ clock, env: {}, exchange: simulatedExchange(process, network) });
    const values = { ...resolveSettings({ ...retrySettings, ...connectionSettings }, sources), killAfter: 0 };
    const pauseMs = until === "stopped"
      ? restartMs
      : world.chance.fork(`cron ${process.name} ${process.life}`).between(2000, 15_000);
    const ending = until === "stopped" || disk === null ? null : new EndingRun(process, {
      ...{ disk, oracle, until, order: values.retryOrder, hasBatch: values.retryBatch !== undefined },
    });
    const began = (id: string) => ending?.began(id);
    try {
      await using processor = await StoreProcessor.open({
        location: { name: "sim", folder: store.folder },
        openStore: async (storeOptions) => {
          const watched = oracle.watch(await store.open(process, storeOptions));
          return ending === null ? watched : ending.watch(watched);
        },
        target: watchedTarget(process, system, { client, timeoutMs: values.retryAttemptTimeout, began }),
        ...{ values, sources, until, topics: null },
        log: (_, event, sentence) => {
          if (counted.includes(event)) world.count(`mark event ${event}`);
          world.log(() => `${process.name}: ${sentence}`);
        },
        system: {
          clock: () => clock,
          boot: () => Promise.resolve(bootOf(process)),
          pid: () => process.life,
          openSink: (destination) =>
            Promise.resolve(store.openSink(process, { destination, timeoutMs: values.retryAttemptTimeout })),
        },
      });
      const proxy = options.address === null
        ? null
        : serveProxy(process, network, { client, processor, values, sources });
      let isTold = false;
      void options.whenTold(process).then(async () => {
        isTold = true;
        world.count("mark processor told to stop");
        if (proxy !== null) await closeInOrder(process, proxy, values.retryDrainTimeout);
        processor.stop();
      });
      if (options.address !== null) await proxy?.listen(options.address);
      if (options.acceptRate > 0) void acceptMessages(process, system, processor, options, () => isTold);
      ending?.begin();
      await processor.run();
      if (isTold) return endOf(process, "it was told to");
      if (ending === null) return world.fail("processor ended", `${process.name} ended, and was not told to`);
      ending.ended();
      options.ended();
      endOf(process, "it has nothing to do", pauseMs);
    } catch (error) {
      const { code } = error as BatonError;
      if (!store.failures.includes(code) && ending?.failed(error as BatonError) !== true) {
        world.fail("processor ended", `${process.name}: ${(error as Error).stack}`);
      }
      endOf(process, errorMessage(error), pauseMs);
    }
  };
}

/** The HTTP side of `serve`. */
function serveProxy(process: SimProcess, network: SimNetwork, { client, processor, values, sources }: {
  readonly client: HttpClient;
  readonly processor: StoreProcessor;
  readonly values: SettingValues<typeof retrySettings>;
  readonly sources: ConfigSources;
}): RetryHttpProxy {
  const { clock, world } = process;
  return new RetryHttpProxy({
    ...{ client, backend, follow: false },
    store: processor.store,
    rules: readRetryRules(values, sources),
    timeoutMs: values.retryAttemptTimeout,
    bodyBytesMax: values.retryMaxBody,
    bodyTimeoutMs: values.retryBodyTimeout,
    memoryBytes: readRequestMemory(values, sources),
    callsMax: values.retryMaxBackendRequests,
    connectionsMax: values.retryMaxConnections,
    storedStatus: values.retryAnswerStored ?? null,
    clock,
    onStored: (id, why, isTried) => {
      if (!isTried) world.count("mark request stored without a try");
      world.log(() => `${process.name} stored ${id}: the first try ${why}`);
    },
    onFailure: (why) => world.log(() => `${process.name}: ${why}`),
    onCut: (why) => world.fail("response cut", `${process.name}: ${why}`),
    listen: simulatedListen(process, network),
  });
}

/** As `serve` when it is told to stop: requests that it has are still stored. */
async function closeInOrder(process: SimProcess, proxy: RetryHttpProxy, drainMs: number): Promise<void> {
  const hurried = new AbortController();
  process.startTimer(drainMs, () => hurried.abort());
  await proxy.close(hurried.signal);
}

/** What a program with the library does: it stores what it has tried itself. */
async function acceptMessages(
  process: SimProcess,
  { oracle, isEnough, store: { failures } }: RetrySystem,
  { store, processor }: StoreProcessor,
  { acceptRate, newMessage }: ProcessorOptions,
  isTold: () => boolean,
): Promise<void> {
  const { world } = process;
  const chance = world.chance.fork(`accept ${process.name} ${process.life}`);
  for (;;) {
    await sleep(process.clock, chance.next() * 2000 / acceptRate);
    if (isEnough() || isTold()) return;
    const tried: FirstTry = { outcome: "retry", retryAfterMs: null, error: "got status 500" };
    try {
      const messages = Array.from({ length: chance.whole(1, 3) }, () => ({ ...newMessage(chance), tried }));
      const askedMs = world.nowMs;
      for (const { id } of await store.call("accept", messages, Date.now())) oracle.accepted(id, askedMs);
      processor.wakeUp();
    } catch (error) {
      world.count("mark message refused");
      if (!failures.includes((error as BatonError).code)) return world.fail("refused", (error as Error).stack ?? "");
      if ((error as BatonError).code === "IO") return;
    }
  }
}

/**
 * The target of a processor, whose tries the oracle sees. Requests are sent by the real target; commands are a model.
 */
function watchedTarget(
  process: SimProcess,
  { oracle, kind, act, served, isWhole }: RetrySystem,
  { client, timeoutMs, began }: {
    readonly client: HttpClient;
    readonly timeoutMs: number;
    readonly began: (id: string) => void;
  },
): Target {
  const http = new HttpTarget({
    ...{ client, backend, method: "POST", headers: [] },
    ...{ rules: { retryOn: [], noRetryOn: [] }, follow: false, timeoutMs },
  });
  return {
    async deliver(message, lease) {
      began(message.id);
      const seen = oracle.began(process, message);
      const body = new TextDecoder().decode(message.body);
      served?.tried(message.id, body);
      if (!isWhole(body)) process.world.fail("content changed", `${message.id}: ${JSON.stringify(body.slice(0, 80))}`);
      if (kind === "command") {
        const onGone = (code: number | null) => oracle.ended(seen, code);
        return await runCommand({ process, lease, timeoutMs, act: act(message.id, body), onGone });
      }
      process.whenDead(() => oracle.ended(seen, null));
      const result = await http.deliver(message, lease);
      oracle.ended(seen, statusOf(result), result);
      oracle.checkLease(seen, lease, bootOf(process).nowMs());
      return result;
    },
  };
}

/** The status that the target got, as far as its result shows it. */
function statusOf(result: Awaited<ReturnType<Target["deliver"]>>): number | null {
  if (result.kind !== "tried") return null;
  const { outcome } = result.end;
  return outcome === "done" ? 200 : Number(/status (\d+)/.exec(result.error ?? "")?.[1] ?? 0) || null;
}

/** Runs one transaction of a short command; resolves when the disk has it. */
type Transact = <Result>(work: (store: DirectStore) => Promise<Result>) => Promise<Result>;

/** Opens the store for a short command. */
async function withStore<Result>(
  process: SimProcess,
  { disk }: FolderSystem,
  rules: StoreRules,
  work: (transact: Transact) => Promise<Result>,
): Promise<Result> {
  const whenFree = async () => {
    while (disk.lockedMs() > 0) await wait(process, disk.lockedMs());
  };
  await whenFree();
  let spentMs = 0;
  const openDatabase = (_: string, { mustExist }: { readonly mustExist: boolean }) =>
    disk.open(process, (durationMs) => spentMs += durationMs, mustExist);
  await using store = new DirectStore(disk.folder, rules, { mustExist: false, openDatabase });
  return await work(async (change) => {
    await whenFree();
    spentMs = 0;
    const result = await change(store);
    await wait(process, spentMs);
    return result;
  });
}

function wait(process: SimProcess, delayMs: number): Promise<void> {
  return new Promise((resolve) => process.schedule("disk", delayMs, resolve));
}

export interface SubmitterOptions {
  readonly everyMs: number;
  readonly newMessage: (chance: Chance) => Omit<NewMessage, "tried">;
  /** Called when no further messages follow. */
  readonly ended: () => void;
}

/** Stores messages, as `submit` and `call` do; some of them at the quiet end. */
export function submitterProgram(
  system: FolderSystem,
  { everyMs, newMessage, ended }: SubmitterOptions,
): SimProgram {
  const { oracle, isEnough, isQuiet } = system;
  return async (process) => {
    const { world, clock } = process;
    const chance = world.chance.fork(`submit ${process.name} ${process.life}`);
    const { callsDiffer = false } = system;
    const rules = callsDiffer ? rulesOfCall(system.rules, chance) : system.rules;
    const failed = callsDiffer ? firstTriesOfCall(chance) : () => usualFirstTry;
    for (let isLast = false; !isLast;) {
      await sleep(clock, chance.next() * 2 * everyMs);
      isLast = isQuiet();
      if (isEnough() && !isLast) continue;
      const messages = Array.from({ length: isLast ? 5 : chance.oneOf([1, 1, 2, 10]) }, () => ({
        ...newMessage(chance),
        tried: chance.is(0.3) ? failed() : null,
      }));
      try {
        const askedMs = world.nowMs;
        const accept = (store: DirectStore) => store.call("accept", messages, Date.now());
        for (const { id } of await withStore(process, system, rules, (transact) => transact(accept))) {
          oracle.accepted(id, askedMs);
        }
      } catch (error) {
        world.count("mark message refused");
        world.log(() => `${process.name}: ${errorMessage(error)}`);
        if (!system.store.failures.includes((error as BatonError).code)) {
          world.fail("refused", (error as Error).stack ?? "");
        }
      }
    }
    ended();
  };
}

export interface OperatorOptions {
  readonly everyMs: number;
  readonly processors: readonly string[];
  /** Ends a processor in order. Null: none is ended. */
  readonly tell: ((processor: string) => void) | null;
}

/**
 * Retries, cancels, redrives and purges messages, pauses the store, and ends processors in order. At the quiet end
 * everything is due.
 */
export function operatorProgram(system: FolderSystem, { everyMs, processors, tell }: OperatorOptions): SimProgram {
  return async (process) => {
    const { world, clock } = process;
    const chance = world.chance.fork(`operator ${process.life}`);
    while (!system.isQuiet()) {
      await sleep(clock, chance.next() * 2 * everyMs);
      try {
        await operate(process, system, chance, tell && (() => tell(chance.oneOf(processors))));
      } catch (error) {
        world.log(() => `operator: ${errorMessage(error)}`);
        if (!system.store.failures.includes((error as BatonError).code)) {
          world.fail("operator", (error as Error).stack ?? "");
        }
      }
    }
    // A wall clock that was set back keeps messages waiting; the documentation names this command for it.
    for (;;) {
      try {
        await withStore(process, system, readOnlyRules, async (transact) => {
          system.oracle.resuming();
          await transact((store) => store.call("setPaused", false));
          system.oracle.resumed();
          for (const { id } of await transact((store) => listed(store, "waiting"))) {
            await transact((store) => {
              system.oracle.touched(id, "retry");
              return store.call("change", id, "retry", Date.now());
            });
          }
        });
      } catch (error) {
        world.log(() => `operator: ${errorMessage(error)}`);
      }
      await sleep(clock, 20_000);
    }
  };
}

function listed(store: DirectStore, state: "waiting" | "dead") {
  return store.read("list", { states: [state] }, { afterSeq: 0, max: 1000 });
}

async function operate(
  process: SimProcess,
  system: FolderSystem,
  chance: Chance,
  tell: (() => void) | null,
): Promise<void> {
  const { oracle } = system;
  const kind = chance.oneOf(["retry", "cancel", "redrive", "redrive all", "purge", "pause", "tell"] as const);
  if (kind === "tell") return tell?.();
  await withStore(process, system, readOnlyRules, async (transact) => {
    if (kind === "pause") {
      oracle.pausing();
      await transact((store) => store.call("setPaused", true));
      oracle.paused();
      await sleep(process.clock, chance.next() * 5000);
      oracle.resuming();
      await transact((store) => store.call("setPaused", false));
      return oracle.resumed();
    }
    if (kind === "redrive all") {
      const number = await transact((store) => store.call("startRedrive"));
      return await transact(async (store) => {
        for (const { id, forwardState } of await listed(store, "dead")) {
          if (forwardState !== "forwarded") oracle.touched(id, "redrive");
        }
        await store.call("redrive", number, {}, chance.oneOf([1, 1000]), Date.now());
      });
    }
    const changed = await transact(async (store) => {
      const found = await listed(store, kind === "retry" || kind === "cancel" ? "waiting" : "dead");
      if (found.length === 0) return null;
      const { id, forwardState } = chance.oneOf(found);
      if (kind !== "redrive" || forwardState !== "forwarded") oracle.touched(id, kind);
      return await store.call("change", id, kind, Date.now()) === null ? id : null;
    });
    if (changed !== null && (kind === "cancel" || kind === "purge")) oracle.changed(changed, kind);
  });
}
