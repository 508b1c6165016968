/** Signals that ask baton to stop: the wait for them, a second request, and the end of the process by that signal. */
import { constants } from "node:os";
import process from "node:process";
import type { Clock } from "../../support/clock.ts";
import type { SignalSource } from "./signal_source.ts";

/** The signals that end a waiting baton. */
export const stopSignals = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;

/** Thrown through all code that has something to close; the main program then calls `endBySignal`, so that the parent sees the signal. */
export class StoppedBySignal extends Error {
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(`stopped by ${signal}`);
    this.name = "StoppedBySignal";
    this.signal = signal;
  }
}

/** Aborts with a StoppedBySignal at the first of the signals. Disposing of it restores their default actions. */
export class StopRequest implements Disposable {
  readonly #controller = new AbortController();
  readonly #stopListening: () => void;
  readonly signal = this.#controller.signal;

  constructor(signals: SignalSource) {
    this.#stopListening = signals.listen(stopSignals, (name) => this.#controller.abort(new StoppedBySignal(name)));
  }

  [Symbol.dispose](): void {
    this.#stopListening();
  }
}

/** Ends this process by the signal's own default action. Does not return. */
export async function endBySignal(signal: NodeJS.Signals): Promise<never> {
  // Removing the last listener restores the default action, also of a signal that the runtime ignores, such as SIGPIPE.
  process.on(signal, () => {});
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // The signal arrives now or a moment later; a blocked signal never does.
  await new Promise((resolve) => setTimeout(resolve, 1000));
  process.exit(128 + constants.signals[signal]);
}

/**
 * The time within which a repeated signal belongs to the first request, in milliseconds: timeout(1) and some supervisors signal
 * the process and then its whole group. A user who asks twice is slower.
 */
const echoMs = 200;

export interface StopListener {
  readonly onFirstSignal: (signal: NodeJS.Signals) => void;
  /** Called for each further request that is not an echo of the first one. */
  readonly onLaterSignal: (signal: NodeJS.Signals) => void;
  /** The signals to listen for; `stopSignals` when left out. */
  readonly signals?: readonly NodeJS.Signals[];
}

/** Classifies signals that ask for the end: the first request, its echo, or a further request. */
export class StopRequestClassifier {
  readonly #clock: Clock;
  #first: { readonly signal: NodeJS.Signals; readonly atMs: number } | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  classify(signal: NodeJS.Signals): "first" | "echo" | "again" {
    const nowMs = this.#clock.now();
    if (this.#first === null) {
      this.#first = { signal, atMs: nowMs };
      return "first";
    }
    return signal === this.#first.signal && nowMs - this.#first.atMs < echoMs ? "echo" : "again";
  }
}

/** Calls `listener` for the signals that ask for the end. Returns the function that removes it. */
export function listenForStops(source: SignalSource, clock: Clock, listener: StopListener): () => void {
  const { onFirstSignal, onLaterSignal, signals = stopSignals } = listener;
  const requests = new StopRequestClassifier(clock);
  return source.listen(signals, (signal) => {
    const request = requests.classify(signal);
    if (request === "first") onFirstSignal(signal);
    else if (request === "again") onLaterSignal(signal);
  });
}
