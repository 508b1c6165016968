/**
 * Listens for two requests to stop. After the first request, running work is finished; after the second, it is ended
 * immediately.
 */
import { type Clock, systemClock } from "../../support/clock.ts";
import type { Log } from "../../support/log.ts";
import { ownSignalSource, type SignalSource, StoppedBySignal, stopSignals } from "./signal_source.ts";

/**
 * How long the same signal counts as part of the first request, in milliseconds. timeout(1) and some supervisors signal
 * the process and then its whole group; a user who asks twice is slower.
 */
const echoMs = 200;

interface TwoStageStopOptions {
  /** Where the signals come from; by default, the signals of this process. */
  readonly source?: SignalSource;
  readonly clock?: Clock;
  readonly signals?: readonly NodeJS.Signals[];
  /** Called at the first request, before `finish` aborts. */
  readonly onFirst?: (signal: NodeJS.Signals) => void;
  readonly onSecond?: (signal: NodeJS.Signals) => void;
}

/** Listens for two stop signals, as long as this object exists. Its abort signals abort with a StoppedBySignal. */
export class TwoStageStopListener implements Disposable {
  readonly #finish = new AbortController();
  readonly #now = new AbortController();
  readonly #stopListening: () => void;
  /** Aborts at the first request. */
  readonly finish = this.#finish.signal;
  /** Aborts at the second request. */
  readonly now = this.#now.signal;

  constructor(options: TwoStageStopOptions = {}) {
    const { source = ownSignalSource(), clock = systemClock(), signals = stopSignals, onFirst, onSecond } = options;
    let first: { readonly signal: NodeJS.Signals; readonly atMs: number } | null = null;
    this.#stopListening = source.listen(signals, (signal) => {
      const nowMs = clock.now();
      if (first === null) {
        first = { signal, atMs: nowMs };
        onFirst?.(signal);
        this.#finish.abort(new StoppedBySignal(signal));
      } else if (!this.now.aborted && (signal !== first.signal || nowMs >= first.atMs + echoMs)) {
        onSecond?.(signal);
        this.#now.abort(new StoppedBySignal(signal));
      }
    });
  }

  [Symbol.dispose](): void {
    this.#stopListening();
  }
}

/**
 * Returns an `onFirst` function for a service. The function logs `what`: what the service does until a second request.
 */
export function stopRequestLogger(log: Log, what: string): (signal: NodeJS.Signals) => void {
  return (signal) => log("info", "stopping", `${signal}: ${what}`, { signal });
}
