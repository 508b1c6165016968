/** A process that was told to stop while it had nothing to give back dies of that signal, so that its parent can tell. */
import { constants } from "node:os";
import process from "node:process";
import type { SignalSource } from "./signal_source.ts";

/** The signals a waiting baton obeys. */
export const stopSignals = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;

/** Thrown through everything that has something to close; who owns the process then calls `dieOf`. */
export class StoppedBySignal extends Error {
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(`stopped by ${signal}`);
    this.name = "StoppedBySignal";
    this.signal = signal;
  }
}

/** Aborts with a StoppedBySignal at the first of the signals, until it is disposed of; then they do what they always do. */
export class StopRequest implements Disposable {
  readonly #controller = new AbortController();
  readonly #stopListening: () => void;

  constructor(signals: SignalSource) {
    this.#stopListening = signals.listen(stopSignals, (name) => this.#controller.abort(new StoppedBySignal(name)));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    this.#stopListening();
  }
}

/** Ends this process by the signal's own default action. Does not return. */
export async function dieOf(signal: NodeJS.Signals): Promise<never> {
  // Removing the last listener brings the default back, also of a signal that the runtime ignores, as SIGPIPE.
  process.on(signal, () => {});
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // It is delivered at once or a moment later; a signal that somebody blocked never is.
  await new Promise((resolve) => setTimeout(resolve, 1000));
  process.exit(128 + constants.signals[signal]);
}
