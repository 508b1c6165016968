/** Writes the log of a server or a proxy about its connection to the coordination service, and about its stop. */
import { BatonError, errorMessage } from "../../src/base/errors.ts";
import { endProcessBySignal, stopSignals } from "../../src/base/process/supervise/signal_source.ts";
import type { Clock } from "../../src/base/support/clock.ts";
import type { Log } from "../../src/base/support/log.ts";
import type { Io } from "../../src/base/terminal/io.ts";
import { stopRequestLogger, TwoStageStopListener } from "../../src/base/process/supervise/two_stage_stop.ts";
import { createProcessLog } from "../../src/base/terminal/process_log.ts";

/** Opens the log of a server or a proxy. `values` contains the values of `logSettings`, and --quiet. */
export function openPubsubServiceLog(
  role: string,
  io: Io,
  values: { readonly log: "text" | "json"; readonly quiet: boolean },
): Log {
  return createProcessLog(io, {
    who: `baton pubsub ${role}`,
    labels: { role },
    format: values.log,
    quiet: values.quiet,
  });
}

/** Returns a function that logs an error which does not end the service. */
export function serviceProblemLogger(log: Log): (thrown: unknown) => void {
  return (thrown) => {
    const code = thrown instanceof BatonError ? thrown.code : "INTERNAL";
    log("warning", "problem", errorMessage(thrown), { code });
  };
}

/**
 * Listens for the signals that stop a service. The first signal makes the service finish its requests; the second one
 * ends it immediately.
 */
export function openPubsubServiceStop(
  log: Log,
  signals: readonly NodeJS.Signals[] = stopSignals,
): TwoStageStopListener {
  const onFirst = stopRequestLogger(log, "finishing requests; a second signal ends it immediately");
  return new TwoStageStopListener({ signals, onFirst, onSecond: (signal) => void endProcessBySignal(signal) });
}

const checkEveryMs = 500;

export interface CoordinationConnectionState {
  isConnected(): boolean;
  /** Returns what a lost connection means and why it was lost. The text follows the name in a sentence. */
  describeLoss(): string;
  readonly foundSentence: string;
}

export class CoordinationConnectionLog implements Disposable {
  readonly #log: Log;
  readonly #id: string;
  readonly #presence: CoordinationConnectionState;
  readonly #clock: Clock;
  /** When the connection was lost, in milliseconds of the clock; null if it is established. */
  #lostAtMs: number | null = null;
  /** True if the last check found a state that has not been logged yet. */
  #wasOther = false;
  #cancel: () => void = () => {};

  /** Starts the checks. The connection must be established when this is called. */
  constructor(log: Log, id: string, presence: CoordinationConnectionState, clock: Clock) {
    this.#log = log;
    this.#id = id;
    this.#presence = presence;
    this.#clock = clock;
    this.#scheduleCheck();
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }

  #scheduleCheck(): void {
    this.#cancel = this.#clock.startTimer(checkEveryMs, () => {
      this.#check();
      this.#scheduleCheck();
    });
  }

  #check(): void {
    const isThere = this.#presence.isConnected();
    const isOther = isThere !== (this.#lostAtMs === null);
    // A client that switches to another ZooKeeper server is disconnected for a moment, which is not logged.
    const isLasting = isOther && this.#wasOther;
    this.#wasOther = isOther && !isLasting;
    if (!isLasting) return;
    const id = this.#id;
    if (this.#lostAtMs === null) {
      this.#lostAtMs = this.#clock.now();
      this.#log("warning", "disconnected", `"${id}" ${this.#presence.describeLoss()}`, { id });
      return;
    }
    const seconds = Math.max(1, Math.round((this.#clock.now() - this.#lostAtMs) / 1000));
    this.#lostAtMs = null;
    this.#log("info", "reconnected", `"${id}" ${this.#presence.foundSentence}, after ${seconds} s`, {
      id,
      seconds,
    });
  }
}
