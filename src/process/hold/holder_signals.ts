/**
 * The signals of a holder. It takes no orders by signals: the script's life decides, and who means the script sends them to
 * the script. What `baton lock` hears as a signal while it waits is here that nobody waits any more.
 */
import { onAbort } from "../../support/abort.ts";
import type { SignalSource } from "../supervise/signal_source.ts";
import { stopSignals } from "../supervise/stopped_by_signal.ts";

export class HolderSignals implements SignalSource, Disposable {
  readonly hangUpIgnored = true;
  readonly #real: SignalSource;
  readonly #stop: AbortSignal;
  readonly #swallow: () => void;

  /** From now on none of them ends this process. */
  constructor(real: SignalSource, stop: AbortSignal) {
    this.#real = real;
    this.#stop = stop;
    this.#swallow = real.listen([...stopSignals, "SIGCONT", "SIGTSTP"], () => {});
  }

  /** Calls `listener` after a pause, and, if it listens for the end, when nobody waits for the lock any more. */
  listen(signals: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void): () => void {
    const offs = [this.#real.listen(signals.filter((signal) => signal === "SIGCONT"), listener)];
    if (signals.includes("SIGTERM")) offs.push(onAbort(this.#stop, () => listener("SIGTERM")));
    return () => offs.forEach((off) => off());
  }

  [Symbol.dispose](): void {
    this.#swallow();
  }
}
