/** Asks a server or a proxy to stop: by a signal, or because the other role of the same process has ended. */
import {
  endProcessBySignal,
  listenForStopSignals,
  processSignals,
  stopSignals,
} from "../../src/base/process/supervise/signal_source.ts";
import { BatonError } from "../../src/base/errors.ts";
import { onAbort, TaskScope } from "../../src/base/support/abort.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import type { Log } from "../../src/base/support/log.ts";

export class ServiceStopSignals implements Disposable {
  readonly #stopping = new AbortController();
  readonly #listeners: TaskScope;

  /** A second signal ends the process immediately. */
  constructor(log: Log, { until, signals = stopSignals }: {
    readonly until: AbortSignal | undefined;
    readonly signals?: readonly NodeJS.Signals[];
  }) {
    const ask = (why: string) => this.#stopping.abort(new BatonError("NOT_HELD", why));
    this.#listeners = new TaskScope(
      onAbort(until, () => ask("the other role has ended")),
      listenForStopSignals(processSignals(), systemClock(), {
        onFirstSignal: (signal) => {
          const sentence = `${signal}: finishing requests; a second signal ends it immediately`;
          log("info", "stopping", sentence, { signal });
          ask(`${signal} came`);
        },
        onLaterSignal: (signal) => void endProcessBySignal(signal),
        signals,
      }),
    );
  }

  /** Aborts when the service has to stop. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  [Symbol.dispose](): void {
    this.#listeners[Symbol.dispose]();
  }
}
