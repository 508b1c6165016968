/** When a put that was told to end is over, whatever is under way. */
import { processSignals } from "../../src/process/supervise/signal_source.ts";
import { listenForStops, StoppedBySignal } from "../../src/process/supervise/stop_signals.ts";
import { onAbort } from "../../src/support/abort.ts";
import { systemClock } from "../../src/support/clock.ts";

/** After a signal what is under way is waited for so long, in milliseconds; a second signal ends that. */
const endingMsMax = 5000;

/** From the first signal on there is an end to it: the second one, or a time. */
export class PutStop implements Disposable {
  readonly #over = new AbortController();
  readonly #offs: (() => void)[] = [];

  constructor(until: AbortSignal) {
    const clock = systemClock();
    // It may have come already: then this is called at once.
    const offTime = onAbort(until, (reason) => {
      this.#offs.push(clock.after(endingMsMax, () => this.#over.abort(reason)));
    });
    const offSignals = listenForStops(processSignals(), clock, {
      first: () => {}, // it is what `until` aborts with
      again: (name) => this.#over.abort(new StoppedBySignal(name)),
    });
    this.#offs.push(offTime, offSignals);
  }

  /** Aborts when nothing is waited for any more. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  [Symbol.dispose](): void {
    for (const off of this.#offs) off();
  }
}
