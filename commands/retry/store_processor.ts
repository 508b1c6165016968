/**
 * A processor with all that belongs to it: the store in its thread, the look for what other processes have stored, the dead
 * letters on their way elsewhere, and the forgetting of what was done long ago. `run` and `serve` have one.
 */
import process from "node:process";
import { atOrigin, type ConfigSources } from "../../src/config/resolve_settings.ts";
import type {
  retryLimitSettings,
  retryPolicySettings,
  retryProcessorSettings,
  retryRedactSettings,
} from "../../src/config/retry_settings.ts";
import { retryProcessorSettings as processorSettings } from "../../src/config/retry_settings.ts";
import type { SettingValues } from "../../src/config/setting.ts";
import { BatonError } from "../../src/errors.ts";
import { ClockSteps } from "../../src/retry/processor/clock_steps.ts";
import { cronTimes } from "../../src/retry/processor/cron_times.ts";
import { LetterOffice } from "../../src/retry/dead_letters/dead_letter_forwarder.ts";
import { Processor, type ProcessorEvent } from "../../src/retry/processor/retry_processor.ts";
import { parseRate } from "../../src/retry/processor/rate_limit.ts";
import { RetryStore } from "../../src/retry/queue/retry_store.ts";
import { changesMax } from "../../src/retry/queue/retry_store_limits.ts";
import type { Target } from "../../src/retry/targets/target.ts";
import { systemClock } from "../../src/support/clock.ts";
import { sleep } from "../../src/support/deadline.ts";
import { counted } from "../../src/support/text.ts";
import { formatDuration } from "../../src/support/duration.ts";
import { checkMs } from "./check_place.ts";
import { openLetterPlace } from "./open_letter_place.ts";
import { machineBoot } from "./machine_boot.ts";
import { type RetryLog, sayDamage, sayEvent } from "./retry_log.ts";
import { RetryCounters } from "./retry_metrics.ts";
import { storeRulesOf } from "./retry_rules.ts";
import type { SamplingLeader } from "./sampling_leader.ts";
import type { SourceDuty } from "./source_duty.ts";
import type { TopicWay } from "./topic_way.ts";
import type { topicSettings } from "./topic_words.ts";

export interface StoreProcessorOptions {
  readonly place: { readonly name: string; readonly folder: string };
  readonly target: Target;
  readonly values: SettingValues<
    & typeof retryLimitSettings
    & typeof retryPolicySettings
    & typeof retryProcessorSettings
    & typeof retryRedactSettings
    & typeof topicSettings
  >;
  readonly sources: ConfigSources;
  readonly log: RetryLog;
  readonly until: "stopped" | "tried" | "empty";
  /** Null where no topic is named. The caller closes it. */
  readonly topics: TopicWay | null;
  /** From the stop signal to SIGKILL, for the commands of dead letters. */
  readonly killAfterMs: number;
}

/** Between two looks whether other processes have stored something. Milliseconds. */
const lookEveryMs = 100;
/** What a guard may need after the end of a lease, and a busy machine to let it. */
const graceMs = 2000;
const forgetEveryMs = 60_000;

export class StoreProcessor implements AsyncDisposable {
  readonly store: RetryStore;
  readonly counters: RetryCounters;
  readonly #processor: Processor;
  readonly #keepDoneMs: number;
  readonly #log: RetryLog;
  readonly #office: LetterOffice | null;
  readonly #leader: SamplingLeader | null;
  readonly #source: SourceDuty | null;
  /** What is in the source now is taken in before anything is tried, and no more after it. */
  readonly #drainsSource: boolean;
  /** Somebody wants an end. */
  readonly #stopping = new AbortController();
  /** He has said so twice. */
  readonly #rushing = new AbortController();
  readonly #ending = new AbortController();

  private constructor(
    store: RetryStore,
    processor: Processor,
    { log, office, leader, source, drainsSource, keepDoneMs, counters }: {
      readonly log: RetryLog;
      readonly office: LetterOffice | null;
      readonly leader: SamplingLeader | null;
      readonly source: SourceDuty | null;
      readonly drainsSource: boolean;
      readonly keepDoneMs: number;
      readonly counters: RetryCounters;
    },
  ) {
    this.counters = counters;
    this.store = store;
    this.#processor = processor;
    this.#office = office;
    this.#leader = leader;
    this.#source = source;
    this.#drainsSource = drainsSource;
    this.#keepDoneMs = keepDoneMs;
    this.#log = log;
  }

  static async open(options: StoreProcessorOptions): Promise<StoreProcessor> {
    const { place, target, values, sources, log, until } = options;
    const { rate, nextTimeMs } = timesOf(values, sources);
    const openLeader = values.retryElect ? await leaderOpener(options) : null;
    const boot = await machineBoot();
    const counters = new RetryCounters();
    let processor: Processor | null = null;
    const store = await RetryStore.open(place.folder, {
      rules: storeRulesOf(values, sources),
      hooks: {
        changed: () => processor?.notice(),
        broken: (error) => processor?.fail(error),
        damage: (sentence) => sayDamage(log, sentence),
      },
    });
    const office = await letterOffice(options, store, counters);
    const leader = openLeader?.(await store.call("storeName"), () => processor?.notice()) ?? null;
    const onEvent = (event: ProcessorEvent) => {
      sayEvent(log, event);
      counters.count(event);
      if (event.kind === "reclaimed" || (event.kind === "ended" && event.life.state === "dead")) office?.notice();
    };
    processor = new Processor({
      store,
      target,
      clock: systemClock(),
      wallClockMs: () => Date.now(),
      boot,
      pid: process.pid,
      leaseMs: values.retryLease,
      graceMs,
      concurrency: values.retryConcurrency,
      order: values.retryOrder,
      rate,
      sampling: { batch: values.retryBatch ?? null, intervalMs: values.retryInterval, nextTimeMs },
      breaker: { failuresMax: values.retryBreakerFailures, resetMs: values.retryBreakerReset },
      drainMs: values.retryDrainTimeout,
      until,
      leads: leader === null ? undefined : () => leader.leads(),
      onEvent,
    });
    const source = await sourceDuty(options, store, (count) => {
      counters.taken += count;
      processor?.notice();
    });
    const drainsSource = until !== "stopped";
    const keepDoneMs = values.retryKeepDone;
    return new StoreProcessor(store, processor, {
      log,
      office,
      leader,
      source,
      drainsSource,
      keepDoneMs,
      counters,
    });
  }

  /** For calls beside the tries, and what is to be told of them. */
  get processor(): Processor {
    return this.#processor;
  }

  /** It may begin tries; false while another one leads, or nobody knows who does. */
  get leads(): boolean {
    return this.#leader?.leads() ?? true;
  }

  /** What is under way may end; another one may lead meanwhile. A second call ends it. */
  stop(): void {
    if (this.#stopping.signal.aborted) this.#rushing.abort();
    this.#stopping.abort();
    this.#leader?.stop();
    this.#processor.stop();
  }

  async run(): Promise<void> {
    // So that what was begun can be ended on a disk that has become full.
    await this.store.call("reserveLog").catch(() => {});
    const missed = this.#drainsSource ? await this.#drain() : null;
    const sourcing = this.#drainsSource ? undefined : this.#source?.run(this.#ending.signal).catch((error) => {
      this.#processor.fail(asFailure(error));
    });
    const beside = [
      this.#looking(),
      this.#forgetting(),
      this.#office?.run(this.#ending.signal, this.#stopping.signal, this.#rushing.signal),
    ];
    let refused: unknown = null;
    const leading = this.#leader?.run().catch((error) => {
      refused = error;
      this.#processor.stop();
    });
    try {
      await this.#processor.run();
    } finally {
      this.#leader?.stop();
      this.#ending.abort();
      await Promise.all([...beside, leading, sourcing]);
    }
    if (refused !== null) throw refused;
    if (missed !== null) throw missed;
    if (!this.#drainsSource || this.#stopping.signal.aborted) return;
    await this.#checkDamaged();
    await this.#checkLetters();
  }

  /** A run that ends by itself reports messages that could not be tried, as they are damaged. */
  async #checkDamaged(): Promise<void> {
    if (await this.store.call("damages") === 0) return;
    const count = await this.store.call("countDamaged");
    if (count === 0) return;
    const which = counted(count, "message is damaged and was", "messages are damaged and were");
    throw new BatonError(
      "IO",
      `${which} not tried: baton retry-processor verify names what is damaged, cancel gives a message up`,
    );
  }

  /** A run that ends by itself says so when dead letters could not go where they are to go: nobody else watches. */
  async #checkLetters(): Promise<void> {
    if (this.#office === null) return;
    const { count, trouble } = await this.store.call("lettersOwed");
    if (count === 0) return;
    const which = counted(count, "dead letter is", "dead letters are");
    const why = trouble ?? "another process of this store sends dead letters now";
    throw new BatonError("UNREACHABLE", `${which} not delivered to --dead-letter, and still in the store: ${why}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.store.close();
  }

  /** What was in the way, which is told at the end: what the store has is tried all the same. */
  async #drain(): Promise<BatonError | null> {
    try {
      await this.#source?.drain(this.#stopping.signal);
      return null;
    } catch (error) {
      return this.#stopping.signal.aborted ? null : asFailure(error);
    }
  }

  async #looking(): Promise<void> {
    const clock = systemClock();
    const steps = new ClockSteps(clock.now(), Date.now());
    while (await this.#pause(lookEveryMs)) {
      this.store.look();
      clock.noticeSuspend();
      this.#sayStep(steps.since(clock.now(), Date.now()));
    }
  }

  /** Else nobody understands why nothing is tried, or all of it. */
  #sayStep(byMs: number): void {
    if (byMs === 0) return;
    const [way, when] = byMs < 0 ? ["back", "later"] : ["forward", "earlier"];
    const sentence = `the wall clock was set ${way} by ${
      formatDuration(Math.abs(byMs))
    }: what waits is tried so much ${when}`;
    this.#log("warning", "clock_set", sentence, { by_ms: Math.round(byMs) });
  }

  /** Step by step: a million rows at once would hold up everybody who stores something. */
  async #forgetting(): Promise<void> {
    do {
      try {
        while (
          await this.store.call("forget", Date.now() - this.#keepDoneMs) === changesMax && !this.#ending.signal.aborted
        );
      } catch (error) {
        if (!(error instanceof BatonError)) throw error; // the processor meets the same trouble, and tells it
      }
    } while (await this.#pause(forgetEveryMs));
  }

  /** False when it is over. */
  async #pause(milliseconds: number): Promise<boolean> {
    await sleep(systemClock(), milliseconds, this.#ending.signal).catch(() => {});
    return !this.#ending.signal.aborted;
  }
}

/** Throws USAGE or CONFIG, by where the wrong value stands. */
function timesOf({ retryRate, retryCron }: StoreProcessorOptions["values"], sources: ConfigSources) {
  const settings = processorSettings;
  const rate = () => retryRate === undefined ? null : parseRate(retryRate);
  const nextTimeMs = () => retryCron === undefined ? undefined : cronTimes(retryCron);
  return {
    rate: atOrigin("retryRate", settings.retryRate, sources, rate),
    nextTimeMs: atOrigin("retryCron", settings.retryCron, sources, nextTimeMs),
  };
}

function asFailure(error: unknown): BatonError {
  return error instanceof BatonError ? error : new BatonError("INTERNAL", String(error), { cause: error });
}

/** Null where no topic is read. */
async function sourceDuty(
  { values: { retryFromTopic: topic }, topics: way, log }: StoreProcessorOptions,
  store: RetryStore,
  onTaken: (count: number) => void,
): Promise<SourceDuty | null> {
  if (topic === undefined || way === null) return null;
  const { SourceDuty } = await import("./source_duty.ts");
  return new SourceDuty({ way, topic, store, log, onTaken });
}

/** Loaded only where there is an election. Rejects what --servers and its like are refused for, before anything is opened. */
async function leaderOpener({ values, sources, log }: StoreProcessorOptions) {
  const [{ coordinationOf }, { SamplingLeader }] = await Promise.all([
    import("../../src/coordination/connect/coordination_servers.ts"),
    import("./sampling_leader.ts"),
  ]);
  const place = coordinationOf(values, sources);
  return (storeName: string, onChange: () => void) =>
    new SamplingLeader({ storeName, place, clock: systemClock(), log, onChange });
}

/** Null where dead letters have no other place to go than the store. */
async function letterOffice(
  options: StoreProcessorOptions,
  store: RetryStore,
  counters: RetryCounters,
): Promise<LetterOffice | null> {
  const { log } = options;
  const place = await openLetterPlace(options);
  if (place === null) return null;
  return new LetterOffice({
    store,
    place,
    clock: systemClock(),
    wallClockMs: () => Date.now(),
    ...(options.until === "stopped" ? {} : { openMs: checkMs }),
    onSent({ id }) {
      counters.letters++;
      log("info", "letter_sent", `the dead letter ${id} is where --dead-letter says`, { id });
    },
    onTrouble(why, letter) {
      counters.letterTroubles++;
      const sentence = letter === null
        ? `${why}; dead letters stay in the store, and are tried again`
        : `the dead letter ${letter.id} was not sent: ${why}; it stays in the store, and is tried again`;
      log("warning", "letter_kept", sentence, letter === null ? {} : { id: letter.id });
    },
  });
}
