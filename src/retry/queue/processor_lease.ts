/**
 * A processor's lease on what it has in flight, and the part of it that one try sees. The store's row says on the boot clock when
 * it ends; here the same moment stands on this process's clock. It is counted from before the renewal was asked for.
 */
import { BatonError } from "../../errors.ts";
import { onAbort } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import { newGuid } from "../../support/guid.ts";
import type { Lease } from "../../process/lease.ts";

/** A try's share: it ends with the processor's lease, or earlier, when the processor is asked to end. */
export interface TryLease extends Lease {
  /** Aborts when the try is to end although nothing is lost: the processor leaves. */
  readonly stopped: AbortSignal;
}

export interface ProcessorLeaseOptions {
  readonly clock: Clock;
  /** How long it lasts from a renewal on, in milliseconds. */
  readonly leaseMs: number;
}

export class ProcessorLease {
  readonly owner: number;
  readonly #options: ProcessorLeaseOptions;
  readonly #lost = new AbortController();
  readonly #stopped = new AbortController();
  readonly #listeners = new Set<() => void>();
  #endMs: number;
  #cancel = () => {};

  constructor(owner: number, askedMs: number, holder: ProcessorLeaseOptions) {
    this.owner = owner;
    this.#options = holder;
    this.#endMs = askedMs + holder.leaseMs;
    this.#watch();
  }

  /** Aborts with a BatonError LOCK_LOST. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** A renewal was answered that was asked for at `askedMs` on the clock. */
  renewed(askedMs: number): void {
    if (this.isOver()) return;
    this.#endMs = Math.max(this.#endMs, askedMs + this.#options.leaseMs);
    this.#watch();
    for (const listener of [...this.#listeners]) listener();
  }

  /** The store says that it was given up. */
  lose(why: string): void {
    this.#cancel();
    if (!this.#lost.signal.aborted) this.#lost.abort(new BatonError("LOCK_LOST", why));
  }

  /** Tries that are under way are told to end. */
  stopTries(): void {
    if (!this.#stopped.signal.aborted) this.#stopped.abort(new BatonError("REVOKED", "The processor leaves"));
  }

  /** No timer is left. */
  end(): void {
    this.#cancel();
  }

  isOver(): boolean {
    this.#options.clock.noticeSuspend();
    return this.#lost.signal.aborted || this.#options.clock.now() >= this.#endMs;
  }

  /** For one try: its own name, by which its processes are known. */
  forTry(name: string, fence: number): TryLease {
    const { clock, leaseMs } = this.#options;
    const controller = new AbortController();
    const abort = (reason: unknown) => {
      if (!controller.signal.aborted) controller.abort(reason);
    };
    const offs = [this.#lost.signal, this.#stopped.signal].map((signal) => onAbort(signal, abort));
    return {
      name,
      path: "",
      holderId: newGuid(),
      mode: "exclusive",
      slot: null,
      limit: null,
      fencingToken: BigInt(fence),
      sessionId: BigInt(this.owner),
      sessionTimeoutMs: leaseMs,
      waitedMs: 0,
      lost: controller.signal,
      stopped: this.#stopped.signal,
      isHeld: () => !controller.signal.aborted && clock.now() < this.#endMs,
      endMs: () => this.#endMs,
      inDoubt: () => false,
      subscribe: (listener) => {
        this.#listeners.add(listener);
        return () => void this.#listeners.delete(listener);
      },
      // deno-lint-ignore require-await -- as others, that have somebody to tell
      release: async () => offs.forEach((off) => off()),
      [Symbol.asyncDispose]() {
        return this.release();
      },
    };
  }

  #watch(): void {
    this.#cancel();
    const { clock } = this.#options;
    this.#cancel = clock.after(this.#endMs - clock.now(), () => {
      if (clock.now() >= this.#endMs) {
        this.lose("The lease on the messages has ended: the store was not reached in time");
      } else this.#watch();
    });
  }
}
