/**
 * Distributes the signals of `baton pool` to its jobs. The first stop signal also ends the claiming of items. With
 * --drain, running commands do not get this first signal. Handlers stay installed until the end of the pool.
 */
import type { SignalSource } from "../../base/process/supervise/signal_source.ts";
import { TwoStageStopListener } from "../../base/process/supervise/two_stage_stop.ts";
import type { Clock } from "../../base/support/clock.ts";
import { CleanupScope } from "../../base/support/abort.ts";

const stopSignals: readonly NodeJS.Signals[] = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"];
const drained: readonly NodeJS.Signals[] = ["SIGTERM", "SIGINT", "SIGHUP"];

interface PoolSignalListener {
  readonly signals: readonly NodeJS.Signals[];
  readonly call: (signal: NodeJS.Signals) => void;
  readonly isDrained: boolean;
}

export class PoolSignals implements SignalSource, Disposable {
  readonly hangUpIgnored: boolean;
  readonly #source: SignalSource;
  readonly #drains: boolean;
  readonly #listeners = new Set<PoolSignalListener>();
  readonly #subscribed = new Set<NodeJS.Signals>();
  readonly #stop: TwoStageStopListener;
  readonly #subscriptions = new CleanupScope();
  readonly #forwarded = new AbortController();

  constructor(source: SignalSource, { drains, clock }: { readonly drains: boolean; readonly clock: Clock }) {
    this.#source = source;
    this.#drains = drains;
    this.#stop = new TwoStageStopListener({ source, clock, signals: stopSignals }); // gets each signal before #onSignal
    this.hangUpIgnored = source.hangUpIgnored;
    this.#subscribe(stopSignals);
  }

  /** Aborts when a stop signal reaches running commands. */
  get forwarded(): AbortSignal {
    return this.#forwarded.signal;
  }

  /** Aborts with a StoppedBySignal at the first stop signal. */
  get stop(): AbortSignal {
    return this.#stop.finish;
  }

  listen(signals: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void): () => void {
    return this.#listen({ signals, call: listener, isDrained: this.#drains });
  }

  /** Returns the stop signals for the query. `--drain` has no effect on a query. */
  forClaiming(): SignalSource {
    const listen: SignalSource["listen"] = (signals, call) => this.#listen({ signals, call, isDrained: false });
    return { hangUpIgnored: this.hangUpIgnored, listen };
  }

  [Symbol.dispose](): void {
    this.#subscriptions[Symbol.dispose]();
    this.#stop[Symbol.dispose]();
  }

  #listen(listener: PoolSignalListener): () => void {
    this.#subscribe(listener.signals);
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #subscribe(signals: readonly NodeJS.Signals[]): void {
    const unheard = signals.filter((signal) => !this.#subscribed.has(signal));
    if (unheard.length === 0) return;
    for (const signal of unheard) this.#subscribed.add(signal);
    this.#subscriptions.add(this.#source.listen(unheard, (signal) => this.#onSignal(signal)));
  }

  #onSignal(signal: NodeJS.Signals): void {
    const isHeldBack = drained.includes(signal) && !this.#stop.now.aborted;
    if (stopSignals.includes(signal) && !(this.#drains && isHeldBack)) this.#forwarded.abort();
    for (const { signals, call, isDrained } of [...this.#listeners]) {
      if (signals.includes(signal) && !(isDrained && isHeldBack)) call(signal);
    }
  }
}
