/** The signals of the holder process of `baton hold`. */
import { onAbort, TaskScope } from "../../base/support/abort.ts";
import { type SignalSource, stopSignals } from "../../base/process/supervise/signal_source.ts";

/**
 * The holder process obeys no signal: the life of the script decides, and users signal the script. To the code that
 * waits for the lock, the end of `baton hold` is a SIGTERM.
 */
export class HolderSignals implements SignalSource, Disposable {
  readonly hangUpIgnored = true;
  readonly #real: SignalSource;
  readonly #stop: AbortSignal;
  readonly #unlisten: () => void;

  /** Catches the signals, so that none of them ends this process. */
  constructor(real: SignalSource, stop: AbortSignal) {
    this.#real = real;
    this.#stop = stop;
    this.#unlisten = real.listen([...stopSignals, "SIGCONT", "SIGTSTP"], () => {});
  }

  /** Calls `listener` for SIGCONT, and with SIGTERM when `stop` aborts. */
  listen(signals: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void): () => void {
    const listeners = new TaskScope(this.#real.listen(signals.filter((signal) => signal === "SIGCONT"), listener));
    if (signals.includes("SIGTERM")) listeners.add(onAbort(this.#stop, () => listener("SIGTERM")));
    return () => listeners[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    this.#unlisten();
  }
}
