/** Tells a second request to stop from the echo of the first. */
import type { Clock } from "../../support/clock.ts";
import type { SignalSource } from "./signal_source.ts";
import { stopSignals } from "./stopped_by_signal.ts";

/**
 * timeout(1) sends its signal to the process and at once to its whole group, and some supervisors do so as well: that is one
 * request. In milliseconds; who means it twice is slower.
 */
const echoMs = 200;

export interface StopListener {
  readonly first: (signal: NodeJS.Signals) => void;
  /** At each that is more than an echo. */
  readonly again: (signal: NodeJS.Signals) => void;
  /** Those that ask for the end here; all that may, when left out. */
  readonly signals?: readonly NodeJS.Signals[];
}

/** What each of the signals is that ask for the end. */
export class StopRequests {
  readonly #clock: Clock;
  #first: { readonly signal: NodeJS.Signals; readonly atMs: number } | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  heard(signal: NodeJS.Signals): "first" | "echo" | "again" {
    const nowMs = this.#clock.now();
    if (this.#first === null) {
      this.#first = { signal, atMs: nowMs };
      return "first";
    }
    return signal === this.#first.signal && nowMs - this.#first.atMs < echoMs ? "echo" : "again";
  }
}

/** Calls `listener` for the signals that ask for the end. Returns what undoes it. */
export function listenForStops(source: SignalSource, clock: Clock, listener: StopListener): () => void {
  const { first, again, signals = stopSignals } = listener;
  const requests = new StopRequests(clock);
  return source.listen(signals, (signal) => {
    const request = requests.heard(signal);
    if (request === "first") first(signal);
    else if (request === "again") again(signal);
  });
}
