/**
 * The lease of a processor on its messages in flight, and the share of the lease for each try. The store knows the end
 * of the lease on the boot clock; this object knows it on the clock of this process. A lease is measured from before
 * its renewal was requested.
 */
import { BatonError } from "../../base/errors.ts";
import { CleanupScope, onAbort } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { newGuid } from "../../base/support/guid.ts";
import type { Lease } from "../../base/process/lease.ts";
import { ListenerSet } from "../../base/support/event.ts";

/** The share of one try. It ends with the lease; if the processor stops, it ends earlier. */
export interface TryLease extends Lease {
  /** Aborts when the try must end because the processor stops. The lease itself is not lost. */
  readonly stopped: AbortSignal;
}

export interface ProcessorLeaseOptions {
  readonly clock: Clock;
  /** Duration of the lease from a renewal, in milliseconds. */
  readonly leaseMs: number;
}

const endedByClock =
  "The lease on the messages ended, because the store did not respond in time, or the machine was suspended";

export class ProcessorLease {
  readonly owner: number;
  readonly #options: ProcessorLeaseOptions;
  readonly #lost = new AbortController();
  readonly #stopped = new AbortController();
  readonly #changes = new ListenerSet();
  /** The time when the last successful renewal was requested. */
  renewedMs: number;
  #endMs: number;
  #cancel = () => {};

  constructor(owner: number, askedMs: number, holder: ProcessorLeaseOptions) {
    this.owner = owner;
    this.#options = holder;
    this.renewedMs = askedMs;
    this.#endMs = askedMs + holder.leaseMs;
    this.#scheduleEnd();
  }

  /** Aborts with a BatonError LOCK_LOST when the lease is lost. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Records a successful renewal that was requested at the time `askedMs`. */
  extend(askedMs: number): void {
    if (this.isOver()) return;
    this.renewedMs = Math.max(this.renewedMs, askedMs);
    this.#endMs = this.renewedMs + this.#options.leaseMs;
    this.#scheduleEnd();
    this.#changes.notify();
  }

  /** Ends the lease for the reason `why`. */
  lose(why: string): void {
    this.#cancel();
    if (!this.#lost.signal.aborted) this.#lost.abort(new BatonError("LOCK_LOST", why));
  }

  stopTries(): void {
    if (!this.#stopped.signal.aborted) this.#stopped.abort(new BatonError("REVOKED", "The processor stops"));
  }

  /** Cancels the timer. */
  end(): void {
    this.#cancel();
  }

  /** Returns true if the lease has ended. After a suspend, this call also ends the tries in flight. */
  isOver(): boolean {
    this.#options.clock.noticeSuspend();
    if (this.#options.clock.now() >= this.#endMs) this.lose(endedByClock);
    return this.#lost.signal.aborted;
  }

  /** Makes the lease of one try. `name` identifies the processes of the try. */
  makeTryLease(name: string, fence: number): TryLease {
    const { clock, leaseMs } = this.#options;
    const controller = new AbortController();
    const abort = (reason: unknown) => {
      if (!controller.signal.aborted) controller.abort(reason);
    };
    const ends = new CleanupScope(onAbort(this.#lost.signal, abort), onAbort(this.#stopped.signal, abort));
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
      subscribe: this.#changes.subscribe,
      // deno-lint-ignore require-await -- other leases release asynchronously
      release: async () => ends[Symbol.dispose](),
      [Symbol.asyncDispose]() {
        return this.release();
      },
    };
  }

  #scheduleEnd(): void {
    this.#cancel();
    const { clock } = this.#options;
    this.#cancel = clock.startTimer(this.#endMs - clock.now(), () => {
      if (!this.isOver()) this.#scheduleEnd();
    });
  }
}
