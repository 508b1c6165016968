/** Tells a second request to stop from the echo of the first. */
import type { Clock } from "../support/clock.ts";
import type { SignalSource } from "./child/signal_source.ts";
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
  /** Signals that do not ask for the end here. */
  readonly except?: readonly NodeJS.Signals[];
}

/** Calls `listener` for the signals that ask for the end. Returns what undoes it. */
export function listenForStops(signals: SignalSource, clock: Clock, listener: StopListener): () => void {
  const { first, again, except = [] } = listener;
  let heard: { readonly signal: NodeJS.Signals; readonly atMs: number } | null = null;
  return signals.listen(stopSignals.filter((signal) => !except.includes(signal)), (signal) => {
    if (heard === null) {
      heard = { signal, atMs: clock.now() };
      first(signal);
    } else if (signal !== heard.signal || clock.now() - heard.atMs >= echoMs) again(signal);
  });
}
