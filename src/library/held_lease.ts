/** Gives programs the leases that they hold: on a lock, a leadership, or a place in a barrier. */
import type { Lease } from "../base/process/lease.ts";
import { CleanupScope, onAbort } from "../base/support/abort.ts";

/**
 * A lock, a leadership, or a place in a barrier that this process holds. It ends with `release()`, with the scope of
 * `await using`, or when it is lost. Stop the work when `signal` aborts. The signal's reason is a BatonError with
 * LOCK_LOST, or REVOKED if an operator broke the lock, or an AbortError if the session was closed.
 */
export interface Held extends AsyncDisposable {
  readonly name: string;
  /** The ID of the holder, as `baton who` shows it. */
  readonly holderId: string;
  /**
   * The fencing token, which increases with each grant of the lock. A store that remembers the highest token can
   * therefore reject requests of an older holder.
   */
  readonly token: bigint;
  readonly signal: AbortSignal;
  /**
   * A number from 0 to `permits` - 1 that no other holder has at the same time; null if the option `permits` was not
   * given.
   */
  readonly slot: number | null;
  /** Returns true if, by the clock, no server can have given the lock to another process yet. */
  isHeld(): boolean;
  /**
   * Releases the lease. Rejects with LOCK_LOST if the lease was lost before. Rejects with OUTCOME_UNKNOWN if no server
   * confirmed the release in time; the release then takes effect when a server responds, or when the session ends. A
   * second call has no effect.
   */
  release(): Promise<void>;
}

export class HeldLease implements Held {
  readonly name: string;
  readonly holderId: string;
  readonly token: bigint;
  readonly signal: AbortSignal;
  readonly slot: number | null;
  readonly #lease: Lease;
  readonly #stop = new AbortController();
  readonly #ended: () => void;
  readonly #onLoss: (() => void)[] = [];
  readonly #subscriptions = new CleanupScope();
  #released: Promise<void> | null = null;
  #isLost = false;

  /**
   * Watches a lease. Calls `ended` once, when the lease is released or lost. `closed` aborts when the session of the
   * lease is closed.
   */
  constructor(lease: Lease, { closed, ended }: { readonly closed: AbortSignal; readonly ended: () => void }) {
    this.name = lease.name;
    this.holderId = lease.holderId;
    this.token = lease.fencingToken;
    this.signal = this.#stop.signal;
    this.slot = lease.slot;
    this.#lease = lease;
    this.#ended = ended;
    this.#subscriptions.add(
      onAbort(lease.lost, (reason) => this.#stop.abort(reason)),
      onAbort(closed, (reason) => this.#stop.abort(reason)),
      lease.subscribe(() => this.#noticeLoss()),
      onAbort(lease.lost, () => this.#noticeLoss()),
    );
  }

  // The functions are bound to the object, because a program may take them out of it.
  readonly isHeld = (): boolean => this.#lease.isHeld();

  readonly release = (): Promise<void> => this.#released ??= this.#release();

  /** Calls the listener when the lease is lost, or immediately if it is lost already. */
  onLoss(listener: () => void): void {
    if (this.#isLost) listener();
    else this.#onLoss.push(listener);
  }

  /**
   * Releases the lease at the end of a scope. Rejects like `release`, but not for a lost lock, because the failure of
   * the work in the scope says more.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch((thrown: unknown) => {
      if (!this.#isLost) throw thrown;
    });
  }

  async #release(): Promise<void> {
    this.#noticeLoss();
    if (this.#isLost) throw this.#lease.lost.reason;
    this.#subscriptions[Symbol.dispose]();
    try {
      await this.#lease.release();
    } finally {
      this.#ended();
    }
  }

  /**
   * Releases a lost lock, so that other processes need not wait for the end of the session, which may continue. If an
   * operator broke the lock, the lock is held until its work has ended.
   */
  #noticeLoss(): void {
    if (this.#isLost || this.#lease.isHeld()) return;
    this.#isLost = true;
    this.#subscriptions[Symbol.dispose]();
    this.#lease.release().catch(() => {}).finally(this.#ended); // goes on in the background if no server responds
    for (const listener of this.#onLoss.splice(0)) listener();
  }
}
