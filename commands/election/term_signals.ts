/** The signals that baton is sent from one campaign to the end of its term. */
import type { SignalSource } from "../../src/process/supervise/signal_source.ts";
import { StoppedBySignal, stopSignals } from "../../src/process/supervise/stopped_by_signal.ts";

/** `signal` aborts with a StoppedBySignal at the first: nothing is begun any more. What runs gets each of them by itself. */
export class TermSignals implements Disposable {
  readonly heard = new Set<string>();
  readonly #controller = new AbortController();
  readonly #stopListening: () => void;

  constructor(signals: SignalSource) {
    this.#stopListening = signals.listen(stopSignals, (name) => {
      this.heard.add(name);
      this.#controller.abort(new StoppedBySignal(name));
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    this.#stopListening();
  }
}
