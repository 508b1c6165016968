/** A barrier as an object: participants that start together and leave together, as often as needed. */
import { enterBarrier, type EnterBarrierOptions } from "../coordination/barrier/enter_barrier.ts";
import type { BarrierMembership } from "../coordination/barrier/barrier_membership.ts";
import { encodeLockName } from "../coordination/nodes/node_paths.ts";
import { systemClock } from "../base/support/clock.ts";
import { checkWaitTime, startCallDeadline } from "../base/support/deadline.ts";
import { ownInfo, type SessionPlace, SessionSource } from "./session_source.ts";

export interface BarrierOptions extends Pick<EnterBarrierOptions, "onMemberLost" | "root" | "acl" | "clock" | "info"> {
  /** Purpose, in a few words. */
  readonly reason?: string;
}

export type BarrierEnterOptions = Pick<EnterBarrierOptions, "wait" | "signal" | "onWaiting">;

export class Barrier implements AsyncDisposable {
  readonly name: string;
  /** Number of participants that start together. */
  readonly parties: number;
  readonly #options: BarrierOptions;
  readonly #sessions: SessionSource;

  /** Sends nothing before the first `enter`. Throws USAGE for an invalid name. */
  constructor(place: SessionPlace, name: string, parties: number, options: BarrierOptions = {}) {
    encodeLockName(name, "a barrier");
    this.name = name;
    this.parties = parties;
    this.#options = options;
    this.#sessions = new SessionSource(place);
  }

  /**
   * Waits until all participants have entered, at most for `wait`, which includes opening the session. Each call is one
   * participant. Returns a lease: stop the work when its `lost` aborts, and call `leave()` when the work is done, which
   * waits for the others. Rejects as `enterBarrier` does, and with an AbortError after the object is closed.
   */
  async enter(options: BarrierEnterOptions = {}): Promise<BarrierMembership> {
    return await this.#sessions.run(async () => this.#sessions.hold(await this.#enter(options)));
  }

  /**
   * Enters, works, leaves: resolves when all participants have left. If the work fails, the participant counts as lost.
   */
  async pass<T>(
    work: (membership: BarrierMembership) => Promise<T> | T,
    options: BarrierEnterOptions = {},
  ): Promise<T> {
    await using membership = await this.enter(options);
    const result = await work(membership);
    await membership.leave(options.signal === undefined ? {} : { signal: options.signal });
    return result;
  }

  /** Releases all memberships of this object, ends all waits, and closes the connection if this object opened it. */
  close(): Promise<void> {
    return this.#sessions.close(`Barrier "${this.name}" was closed`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #enter({ signal, wait, ...reporting }: BarrierEnterOptions): Promise<BarrierMembership> {
    const { reason = "", info = ownInfo(reason), ...rest } = this.#options;
    const { parties } = this;
    const stop = this.#sessions.stopSignal(signal);
    // 0 has no special meaning for a barrier.
    const sinceMs = rest.clock?.now();
    checkWaitTime(wait);
    using limit = startCallDeadline(rest.clock ?? systemClock(), typeof wait === "number" ? wait : undefined, {
      signal: stop,
    });
    const zk = await this.#sessions.get(limit.signal);
    const waiting = { signal: limit.signal, ...(sinceMs === undefined ? {} : { sinceMs }) };
    return await enterBarrier(zk, this.name, { ...rest, ...reporting, ...waiting, info, parties });
  }
}
