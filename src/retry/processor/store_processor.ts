/**
 * A processor with all its parts: the store in its thread, the forwarder of dead letters, ingest from a topic, and the
 * log. Also watches for messages of other processes and removes old messages. Used by `run` and `serve`.
 */
import process from "node:process";
import { addOriginToErrors, type ConfigSources } from "../../base/config/resolve_settings.ts";
import {
  type retryLimitSettings,
  type retryPolicySettings,
  retryProcessorSettings,
  type retryRedactSettings,
  type retryTopicSettings,
} from "../settings/retry_settings.ts";
import type { SettingValues } from "../../base/config/setting.ts";
import { BatonError } from "../../base/errors.ts";
import { type Clock, systemClock } from "../../base/support/clock.ts";
import { countWithNoun } from "../../base/support/text.ts";
import { sleep } from "../../base/support/deadline.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { Schedule } from "../../base/schedule/schedule.ts";
import { destinationCheckTimeoutMs } from "../check_destination.ts";
import { ForwardWarnings } from "../dead_letters/forward_warnings.ts";
import { DeadLetterForwarder, type DeadLetterSink } from "../dead_letters/dead_letter_forwarder.ts";
import { type DeadLetterDestination, readDeadLetterDestination } from "../dead_letters/dead_letter_destination.ts";
import type { ServiceStore, ServiceStoreOptions } from "../queue/store_methods.ts";
import { operatorChangesMax } from "../queue/retry_store_limits.ts";
import type { Log } from "../../base/support/log.ts";
import type { Target } from "../targets/target.ts";
import type { TopicClients } from "../targets/topic_clients.ts";
import { parseRate } from "../queue/rate_limit.ts";
import { type ProcessorEvent, RetryProcessor, toBatonError } from "./retry_processor.ts";
import { readStoreRules } from "./retry_rules.ts";
import type { TopicIngestTask } from "./topic_ingest.ts";
import { type MachineBoot, readMachineBoot } from "../queue/machine_boot.ts";

/** The parts of the system that a simulation replaces. */
export interface ProcessorSystem {
  readonly clock: () => Clock;
  readonly boot: () => Promise<MachineBoot>;
  readonly pid: () => number;
  readonly openSink: (
    destination: Exclude<DeadLetterDestination, { readonly kind: "store" | "drop" }>,
    options: StoreProcessorOptions,
  ) => Promise<DeadLetterSink>;
}

const realSystem: ProcessorSystem = {
  clock: systemClock,
  boot: readMachineBoot,
  pid: () => process.pid,
  openSink: async (destination, options) => {
    const { openDeadLetterSink } = await import("../dead_letters/open_dead_letter_sink.ts");
    return await openDeadLetterSink(destination, options);
  },
};

interface StoreProcessorOptions {
  readonly location: { readonly name: string; readonly folder: string | null };
  /** Opens the store. Passed as a function, so that a program without databases contains no code for them. */
  readonly openStore: (options: ServiceStoreOptions) => Promise<ServiceStore>;
  readonly target: Target;
  readonly values:
    & SettingValues<
      & typeof retryLimitSettings
      & typeof retryPolicySettings
      & typeof retryProcessorSettings
      & typeof retryRedactSettings
      & typeof retryTopicSettings
    >
    & { readonly killAfter: number };
  readonly sources: ConfigSources;
  readonly log: Log;
  readonly until: "stopped" | "tried" | "empty";
  /** The clients of topics; null if no topic is used. The caller closes the clients. */
  readonly topics: TopicClients | null;
  /** The parts of the system; simulations replace them. */
  readonly system?: ProcessorSystem;
}

/** The time between two checks for messages that other processes have stored, in milliseconds. */
const watchEveryMs = 100;
/**
 * The time after the end of a lease in which a guard on a busy machine may still be killing its commands, in
 * milliseconds.
 */
const graceMs = 2000;
const forgetEveryMs = 60_000;

/** Counts the work of a process since it started, for /metrics. */
class RetryCounters {
  /** The number of tries that have ended, by the state of the message after the try. */
  readonly ended = { done: 0, waiting: 0, dead: 0, dropped: 0 };
  stale = 0;
  reclaimed = 0;
  leasesLost = 0;
  forwarded = 0;
  ingested = 0;
  untried = 0;
  forwardFailures = 0;

  count(event: ProcessorEvent): void {
    if (event.kind === "ended" && event.life.state in this.ended) {
      this.ended[event.life.state as keyof typeof this.ended]++;
    } else if (event.kind === "stale") this.stale++;
    else if (event.kind === "reclaimed") this.reclaimed += event.count;
    else if (event.kind === "lost") this.leasesLost++;
  }
}

interface ProcessorParts {
  readonly store: ServiceStore;
  readonly processor: RetryProcessor;
  readonly counters: RetryCounters;
  readonly clock: Clock;
  readonly log: Log;
  readonly forwarder: DeadLetterForwarder | null;
  readonly ingest: TopicIngestTask | null;
  /** If true, ingests the messages that are now in the topic before the first try, and none afterwards. */
  readonly drainsTopic: boolean;
  readonly keepDoneMs: number;
}

export class StoreProcessor implements AsyncDisposable {
  readonly store: ServiceStore;
  readonly counters: RetryCounters;
  readonly processor: RetryProcessor;
  readonly #parts: ProcessorParts;
  /** Aborts at the first call of `stop`. */
  readonly #stopping = new AbortController();
  /** Aborts at the second call of `stop`. */
  readonly #hurrying = new AbortController();
  /** Aborts when the background work has to end. */
  readonly #ending = new AbortController();

  private constructor(parts: ProcessorParts) {
    this.#parts = parts;
    ({ store: this.store, counters: this.counters, processor: this.processor } = parts);
  }

  static async open(options: StoreProcessorOptions): Promise<StoreProcessor> {
    const { target, values, sources, log, until, system = realSystem } = options;
    const { rate, nextTimeMs } = parseSchedule(values, sources);
    const rules = readStoreRules(values, sources);
    const boot = await system.boot();
    const clock = system.clock();
    const counters = new RetryCounters();
    let processor: RetryProcessor | null = null;
    const store = await options.openStore({
      rules,
      leaseMs: values.retryLease,
      hooks: {
        onChanged: () => processor?.wakeUp(),
        onBroken: (error) => processor?.fail(error),
        onDamage: (sentence) => logDamage(log, sentence),
        onWarning: (sentence) => log("warning", "database", sentence),
      },
    });
    const forwarder = await openForwarder(options, store, counters);
    const onEvent = (event: ProcessorEvent) => {
      logProcessorEvent(log, event);
      counters.count(event);
      if (event.kind === "reclaimed" || (event.kind === "ended" && event.life.state === "dead")) forwarder?.wakeUp();
    };
    processor = new RetryProcessor({
      store,
      target,
      clock,
      wallClockMs: () => Date.now(),
      boot,
      pid: system.pid(),
      leaseMs: values.retryLease,
      graceMs,
      concurrency: values.retryConcurrency,
      order: values.retryOrder,
      rate,
      pacing: { batch: values.retryBatch ?? null, intervalMs: rules.policy.intervalMs, nextTimeMs },
      drainMs: values.retryDrainTimeout,
      until,
      onEvent,
    });
    const ingest = await openIngest(options, store, (count) => {
      counters.ingested += count;
      processor?.wakeUp();
    });
    const drainsTopic = until !== "stopped";
    const keepDoneMs = values.retryKeepDone;
    return new StoreProcessor({
      store,
      processor,
      counters,
      clock,
      log,
      forwarder,
      ingest,
      drainsTopic,
      keepDoneMs,
    });
  }

  /** Lets the tries in flight end. A second call of `stop` stops them. */
  stop(): void {
    if (this.#stopping.signal.aborted) this.#hurrying.abort();
    this.#stopping.abort();
    this.#parts.processor.stop();
  }

  /**
   * Runs the processor. `onReady` is called when the log has its reserved size. From then on, a full disk no longer
   * prevents recording.
   */
  async run(onReady?: () => Promise<void>): Promise<void> {
    const { store, processor, ingest, drainsTopic, forwarder } = this.#parts;
    await store.call("reserveLog").catch(() => {});
    await onReady?.();
    const drainError = drainsTopic ? await this.#drain() : null;
    const ingesting = drainsTopic ? undefined : ingest?.run(this.#ending.signal).catch((error) => {
      processor.fail(toBatonError(error));
    });
    const background = [
      this.#watchStore(),
      this.#forgetOld(),
      forwarder?.run(this.#ending.signal, this.#stopping.signal, this.#hurrying.signal),
    ];
    try {
      await processor.run();
    } finally {
      this.#ending.abort();
      await Promise.all([...background, ingesting]);
    }
    if (drainError !== null) throw drainError;
    if (!drainsTopic || this.#stopping.signal.aborted) return;
    await this.#checkDamaged();
    await this.#checkDeadLetters();
  }

  /** Rejects if damaged messages were not tried. Used at the end of a run that ends by itself. */
  async #checkDamaged(): Promise<void> {
    const { store } = this.#parts;
    if (await store.call("damageCount") === 0) return;
    const count = await store.call("countDamaged");
    if (count === 0) return;
    const which = countWithNoun(count, "damaged message was", "damaged messages were");
    throw new BatonError(
      "IO",
      `${which} not tried; list them with baton retry-processor verify, cancel them with cancel ID`,
    );
  }

  /** Rejects if dead letters were not delivered. Used at the end of a run that ends by itself. */
  async #checkDeadLetters(): Promise<void> {
    if (this.#parts.forwarder === null) return;
    const { count, error } = await this.#parts.store.call("deadLetterBacklog");
    if (count === 0) return;
    const which = countWithNoun(count, "dead letter is", "dead letters are");
    const why = error ?? "another process of this store is sending dead letters";
    throw new BatonError("UNREACHABLE", `${which} still in the store, not delivered to --dead-letter: ${why}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#parts.store.close();
  }

  /**
   * Ingests the messages of the topic. Returns an error instead of throwing it, because the messages of the store are
   * tried first.
   */
  async #drain(): Promise<BatonError | null> {
    try {
      await this.#parts.ingest?.drain(this.#stopping.signal);
      return null;
    } catch (error) {
      return this.#stopping.signal.aborted ? null : toBatonError(error);
    }
  }

  async #watchStore(): Promise<void> {
    const { clock } = this.#parts;
    const steps = new WallClockStepDetector(clock.now(), Date.now());
    while (await this.#waitUnlessEnding(watchEveryMs)) {
      this.#parts.store.checkForChanges();
      clock.noticeSuspend();
      this.#logClockStep(steps.stepSinceLastCheck(clock.now(), Date.now()));
    }
  }

  /** Logs that the wall clock was set, which explains why waiting messages are suddenly tried later or earlier. */
  #logClockStep(byMs: number): void {
    if (byMs === 0) return;
    const [way, when] = byMs < 0 ? ["back", "later"] : ["forward", "earlier"];
    const by = formatDuration(Math.abs(byMs));
    const sentence = `the wall clock was set ${way} by ${by}: waiting messages are tried ${by} ${when}`;
    this.#parts.log("warning", "clock_set", sentence, { by_ms: Math.round(byMs) });
  }

  /** Removes old messages in small transactions: other calls then do not wait for long. */
  async #forgetOld(): Promise<void> {
    const { store, keepDoneMs } = this.#parts;
    do {
      try {
        while (
          await store.call("forget", Date.now() - keepDoneMs) === operatorChangesMax && !this.#ending.signal.aborted
        );
      } catch (error) {
        if (!(error instanceof BatonError)) throw error; // the processor will meet the same error and report it
      }
    } while (await this.#waitUnlessEnding(forgetEveryMs));
  }

  /** Waits. Returns false if the background work must end. */
  async #waitUnlessEnding(milliseconds: number): Promise<boolean> {
    await sleep(this.#parts.clock, milliseconds, this.#ending.signal).catch(() => {});
    return !this.#ending.signal.aborted;
  }
}

/** Reads the rate and the cron schedule. Throws USAGE for a value of a flag, otherwise CONFIG. */
function parseSchedule({ retryRate, retryCron }: StoreProcessorOptions["values"], sources: ConfigSources) {
  const rate = () => retryRate === undefined ? null : parseRate(retryRate);
  const nextTimeMs = () => {
    if (retryCron === undefined) return undefined;
    const schedule = new Schedule(retryCron);
    return (afterMs: number) => schedule.next(afterMs);
  };
  return {
    rate: addOriginToErrors("retryRate", retryProcessorSettings.retryRate, sources, rate),
    nextTimeMs: addOriginToErrors("retryCron", retryProcessorSettings.retryCron, sources, nextTimeMs),
  };
}

async function openIngest(
  { values: { retryFromTopic: topic }, topics: clients, log }: StoreProcessorOptions,
  store: ServiceStore,
  onIngested: (count: number) => void,
): Promise<TopicIngestTask | null> {
  if (topic === undefined || clients === null) return null;
  const { TopicIngestTask } = await import("./topic_ingest.ts");
  return new TopicIngestTask({ clients, topic, store, log, onIngested });
}

/** Opens the forwarder of dead letters. Returns null if dead letters stay in the store. */
async function openForwarder(
  options: StoreProcessorOptions,
  store: ServiceStore,
  counters: RetryCounters,
): Promise<DeadLetterForwarder | null> {
  const { log, system = realSystem } = options;
  const destination = readDeadLetterDestination(options.values, options.sources);
  if (destination.kind === "store" || destination.kind === "drop") return null;
  const warnings = new ForwardWarnings(log);
  const sink = await system.openSink(destination, { ...options, log: warnings.ofOpening });
  return new DeadLetterForwarder({
    store,
    sink,
    clock: system.clock(),
    wallClockMs: () => Date.now(),
    ...(options.until === "stopped" ? {} : { openTimeoutMs: destinationCheckTimeoutMs }),
    onForwarded({ id }, isRecorded) {
      counters.forwarded++;
      warnings.noteForwarded(id);
      if (!isRecorded) {
        const sentence = `delivered the dead letter ${id} to --dead-letter; meanwhile it was purged or redriven`;
        return log("warning", "dead_letter_changed", sentence, { id });
      }
      log("info", "dead_letter_forwarded", `delivered the dead letter ${id} to --dead-letter`, { id });
    },
    onFailure(why, letter) {
      counters.forwardFailures++;
      warnings.noteFailure(why, letter?.id ?? null);
    },
  });
}

/** The smallest difference that counts as a step of the clock, in milliseconds. A clock may be adjusted slowly. */
const stepMsMin = 1000;

export class WallClockStepDetector {
  #gapMs: number;

  /** The two arguments are readings of the monotonic and the wall clock at the same moment, in milliseconds. */
  constructor(nowMs: number, wallMs: number) {
    this.#gapMs = wallMs - nowMs;
  }

  /**
   * Returns how many milliseconds the wall clock was set forward since the last call; a negative number if it was set
   * back.
   */
  stepSinceLastCheck(nowMs: number, wallMs: number): number {
    const byMs = wallMs - nowMs - this.#gapMs;
    if (Math.abs(byMs) < stepMsMin) return 0;
    this.#gapMs += byMs;
    return byMs;
  }
}

function logProcessorEvent(log: Log, event: ProcessorEvent): void {
  switch (event.kind) {
    case "began": {
      const { id, tries } = event.message;
      return log("detail", "try_started", `${id}: try ${tries + 1} starts`, { id });
    }
    case "ended":
      return logTryEnd(log, event);
    case "given_back":
    case "held_back": {
      const { id } = event.message;
      return log(event.kind === "given_back" ? "warning" : "detail", "not_tried", `${id} was not tried: ${event.why}`, {
        id,
      });
    }
    case "stale": {
      const { id } = event.message;
      return log("warning", "stale", `${id}: the result of its try came too late and is ignored`, { id });
    }
    case "reclaimed": {
      const { count } = event;
      return log("warning", "reclaimed", `took back ${countWithNoun(count, "message")} of a processor that died`, {
        count,
      });
    }
    case "lost": {
      const sentence = `${event.why}; tries in flight count as crashed, and the processor registers again`;
      return log("warning", "lease_lost", sentence);
    }
    case "store_busy":
      return log("warning", "store_busy", event.why);
  }
}

function logDamage(log: Log, sentence: string): void {
  log("warning", "damaged", `damaged on the disk and not used: ${sentence}`);
}

function logTryEnd(log: Log, { message, life, error }: Extract<ProcessorEvent, { kind: "ended" }>): void {
  const { id } = message;
  const fields = { id, state: life.state, tries: life.tries };
  if (life.state === "done") return log("detail", "done", `${id} is done after try ${life.tries}`, fields);
  const why = error ?? "";
  if (life.state === "waiting") {
    const next = formatDuration(Math.max(0, life.nextAtMs - Date.now()));
    return log("detail", "failed", `${id}: try ${life.tries} ${why}; next try in ${next}`, { ...fields, error: why });
  }
  const tries = countWithNoun(life.tries, "try", "tries");
  const sentence = `${id} is ${life.state} (${life.reason}) after ${tries}; the last one ${why}`;
  log("warning", life.state, sentence, { ...fields, reason: life.reason ?? "", error: why });
}
