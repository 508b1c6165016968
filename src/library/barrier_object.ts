/** A barrier as an object: parties that meet, work, and leave together, again and again. */
import { enterBarrier, type EnterBarrierOptions } from "../coordination/barrier/enter_barrier.ts";
import type { BarrierMembership } from "../coordination/barrier/barrier_membership.ts";
import { encodeLockName } from "../coordination/lock/lock_name.ts";
import { throwIfAborted } from "../support/abort.ts";
import { systemClock } from "../support/clock.ts";
import { waitLimit } from "../support/deadline.ts";
import { ownInfo } from "./own_info.ts";
import { type SessionPlace, SessionSource } from "./session_source.ts";

export interface BarrierOptions extends Pick<EnterBarrierOptions, "onMemberLost" | "root" | "acl" | "clock" | "info"> {
  /** What it is for, in a few words. */
  readonly reason?: string;
}

export type BarrierEnterOptions = Pick<EnterBarrierOptions, "wait" | "signal" | "onWaiting">;

export class Barrier implements AsyncDisposable {
  readonly name: string;
  /** How many start together. */
  readonly parties: number;
  readonly #options: BarrierOptions;
  readonly #sessions: SessionSource;
  readonly #closed = new AbortController();
  readonly #entering = new Set<Promise<unknown>>();
  readonly #members = new Set<BarrierMembership>();
  #closing: Promise<void> | null = null;

  /** Nothing is sent before the first `enter`. Throws USAGE for an impossible name. */
  constructor(place: SessionPlace, name: string, parties: number, options: BarrierOptions = {}) {
    encodeLockName(name, "a barrier");
    this.name = name;
    this.parties = parties;
    this.#options = options;
    this.#sessions = new SessionSource(place);
  }

  /**
   * Waits until all parties are there, at most for `wait`, the opening of the session included. Every call is a party of its own. What it returns is a lease: stop when its `lost`
   * aborts, and call `leave()` when the work is done, which waits for the others. Rejects as `enterBarrier` does, and with
   * an AbortError once the object is closed.
   */
  async enter(options: BarrierEnterOptions = {}): Promise<BarrierMembership> {
    throwIfAborted(this.#closed.signal);
    const entering = this.#enter(options);
    this.#entering.add(entering);
    try {
      const membership = await entering;
      for (const one of this.#members) if (!one.isHeld()) this.#members.delete(one);
      this.#members.add(membership);
      return membership;
    } finally {
      this.#entering.delete(entering);
    }
  }

  /** Enters, works, leaves: resolves when all the others have left too. Work that fails is a member that is gone. */
  async pass<T>(
    work: (membership: BarrierMembership) => Promise<T> | T,
    options: BarrierEnterOptions = {},
  ): Promise<T> {
    await using membership = await this.enter(options);
    const result = await work(membership);
    await membership.leave(options.signal === undefined ? {} : { signal: options.signal });
    return result;
  }

  /** Gives up every place that was taken here, ends every wait, and closes the connection if it was opened here. */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #enter({ signal, wait, ...telling }: BarrierEnterOptions): Promise<BarrierMembership> {
    const { reason = "", info = ownInfo(reason), ...rest } = this.#options;
    const { parties } = this;
    const stop = signal === undefined ? this.#closed.signal : AbortSignal.any([this.#closed.signal, signal]);
    // A barrier has no tries: 0 is a time like any other.
    const sinceMs = rest.clock?.now();
    const limit = waitLimit(rest.clock ?? systemClock(), typeof wait === "number" ? wait : undefined, { signal: stop });
    try {
      const zk = await this.#sessions.get(limit.signal);
      const waiting = { signal: limit.signal, ...(sinceMs === undefined ? {} : { sinceMs }) };
      return await enterBarrier(zk, this.name, { ...rest, ...telling, ...waiting, info, parties });
    } finally {
      limit.cancel();
    }
  }

  async #close(): Promise<void> {
    const reason = new DOMException(`Barrier "${this.name}" was closed`, "AbortError");
    this.#closed.abort(reason);
    await Promise.allSettled(this.#entering);
    const held = [...this.#members].filter((one) => one.isHeld());
    const released = await Promise.allSettled(held.map((one) => one.release()));
    await this.#sessions.close(reason);
    for (const outcome of released) if (outcome.status === "rejected") throw outcome.reason;
  }
}
