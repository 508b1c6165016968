/** An election as an object: stand for election, read the leader, follow its changes, over any number of sessions. */
import type { ZooKeeper } from "../protocols/zookeeper/zookeeper.ts";
import { isSessionEndError } from "../protocols/zookeeper/zookeeper_error.ts";
import {
  campaign,
  type CampaignOptions,
  type Leadership,
  resign,
  type ResignOptions,
} from "../coordination/election/campaign.ts";
import { checkLeaderValue } from "../coordination/election/election_state.ts";
import { type LeaderChange, LeaderChanges } from "../coordination/election/election_history.ts";
import { type LeaderStatus, leaderStatus, watchLeader } from "../coordination/election/leader_status.ts";
import { encodeLockName } from "../coordination/nodes/node_paths.ts";
import { throwIfAborted } from "../base/support/abort.ts";
import { namedPriorities, type PriorityName } from "../base/support/priority.ts";
import {
  callLimit,
  ownInfo,
  releasedWhenLost,
  sessionExpiredError,
  type SessionPlace,
  SessionSource,
} from "./session_source.ts";

export interface ElectionOptions extends Pick<CampaignOptions, "preempt" | "root" | "acl" | "clock" | "info"> {
  /** Priority as for a lock: the lowest number leads first; 100 when left out. */
  readonly priority?: PriorityName | number;
  /** Purpose, in a few words. */
  readonly reason?: string;
}

export type ElectionCampaignOptions = Pick<CampaignOptions, "wait" | "signal" | "onWaiting" | "progressMs">;

export class Election implements AsyncDisposable {
  readonly name: string;
  readonly #options: ElectionOptions;
  readonly #sessions: SessionSource;

  /** Sends nothing before it is used. Throws USAGE for an invalid name. */
  constructor(place: SessionPlace, name: string, options: ElectionOptions = {}) {
    encodeLockName(name);
    this.name = name;
    this.#options = options;
    this.#sessions = new SessionSource(place);
  }

  /**
   * Waits until this process leads, at most for `wait`, which includes opening the session. Others read `value` (1,024
   * bytes at most). Release the leadership to step down; stop the work when its `lost` aborts. Rejects as `campaign`
   * does, SESSION_EXPIRED when the servers have ended the session (campaign again), and an AbortError after the object
   * is closed.
   */
  async campaign(value: string, { signal, wait, ...reporting }: ElectionCampaignOptions = {}): Promise<Leadership> {
    checkLeaderValue(value);
    const { priority = "foreground", reason = "", info = ownInfo(reason), ...rest } = this.#options;
    const stop = this.#sessions.stopSignal(signal);
    throwIfAborted(stop);
    using limit = callLimit(wait, { clock: rest.clock, signal: stop });
    let zk: ZooKeeper | null = null;
    try {
      zk = await this.#sessions.get(limit.signal);
      const leadership = await campaign(zk, this.name, {
        ...rest,
        ...reporting,
        ...limit.waiting,
        value,
        info,
        priority: typeof priority === "number" ? priority : namedPriorities[priority],
      });
      return this.#sessions.hold(releasedWhenLost(leadership));
    } catch (thrown) {
      if (stop.aborted || zk === null) throw thrown;
      throw sessionExpiredError(`lead "${this.name}"`, zk, thrown) ?? thrown;
    }
  }

  /** Returns the current leader and the last grants. */
  async leader(): Promise<LeaderStatus> {
    return await leaderStatus(await this.#sessions.get(), this.name, this.#options);
  }

  /**
   * Yields the current leader and then every change. Misses no grant over reconnects (and over sessions, if this object
   * opens them) while it is at most 64 behind; more are one `missed`. Ends with the signal, or when the object is
   * closed.
   */
  async *changes(options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<LeaderChange, void, void> {
    const signal = this.#sessions.stopSignal(options.signal);
    const changes = new LeaderChanges();
    while (!signal.aborted) {
      try {
        const zk = await this.#sessions.get(signal);
        yield* watchLeader(zk, this.name, { ...this.#options, signal, changes });
      } catch (thrown) {
        if (signal.aborted) return;
        if (!isSessionEndError(thrown) || !this.#sessions.canReopen) throw thrown;
      }
    }
  }

  /** Asks the leader to step down. Throws NOT_FOUND when there is no leader. */
  async resign(options: Omit<ResignOptions, "root"> = {}) {
    const { root } = this.#options;
    return await resign(await this.#sessions.get(), this.name, root === undefined ? options : { ...options, root });
  }

  /** Releases all leaderships of this object, ends all waits, and closes the connection if this object opened it. */
  close(): Promise<void> {
    return this.#sessions.close(`Election "${this.name}" was closed`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
