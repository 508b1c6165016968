/** Provides elections: a program can stand for election, follow the leader, and ask the leader to step down. */
import type { ZooKeeper } from "../protocols/zookeeper/zookeeper.ts";
import type { BrokenLock } from "../coordination/lock/break_lock.ts";
import { campaign as campaignAt, resign as resignAt } from "../coordination/election/campaign.ts";
import { checkLeaderValue } from "../coordination/election/election_state.ts";
import { type LeaderChange, LeaderChanges } from "../coordination/election/election_history.ts";
import { watchLeader as watchLeaderAt } from "../coordination/election/leader_status.ts";
import { BatonError } from "../base/errors.ts";
import { rejectOnAbort } from "../base/support/abort.ts";
import { WaitTimeout } from "../base/support/deadline.ts";
import { checkArgument, type OptionForms, textForm, toggleForm, toPriority } from "./check_arguments.ts";
import type { Held } from "./held_lease.ts";
import { type LockBreakOptions, lockForms, type LockOptions, releaseRequest } from "./lock_functions.ts";
import { findNamedSession, ownInfo, requestForms, waitForms, type WaitOptions } from "./session.ts";

export interface ElectionOptions extends Omit<LockOptions, "shared" | "permits" | "recipe"> {
  /** If true, a leader of worse priority is asked to step down. */
  readonly preempt?: boolean | undefined;
}

const { shared: _shared, permits: _permits, recipe: _recipe, ...queueForms } = lockForms;
const electionForms: OptionForms<ElectionOptions> = { ...queueForms, preempt: toggleForm };

/**
 * Waits until this process leads, and returns the leadership. Other processes can read `value`, such as the leader's
 * address; it has at most 1,024 bytes. Release the leadership to step down. Rejects as `acquireLock` does.
 */
export async function campaign(name: string, value: string, options: ElectionOptions = {}): Promise<Held> {
  checkArgument("campaign", "the value", value, textForm);
  const session = findNamedSession("campaign", { kind: "an election", name }, options, electionForms);
  checkLeaderValue(value);
  const { preempt = false, reason } = options;
  const priority = toPriority(options.priority ?? "foreground");
  return await session.call(`lead "${name}"`, options, async ({ zk, root, clock, waiting, guard }) => {
    const candidate = { value, preempt, priority, info: ownInfo(reason) };
    return session.hold(await campaignAt(zk, name, { ...waiting, ...guard(options), root, clock, ...candidate }));
  });
}

/**
 * Yields the current leader, and then every change of the leader, even across reconnects and new sessions. If more than
 * 64 changes wait for the caller, one `missed` takes their place. Ends when the signal aborts, or when nothing has
 * changed for the time `wait`. Rejects with UNREACHABLE if no server responds in time at the start. The session is in
 * use only while the caller waits for a change.
 */
export async function* watchLeader(
  name: string,
  options: WaitOptions = {},
): AsyncGenerator<LeaderChange, void, void> {
  const session = findNamedSession("watchLeader", { kind: "an election", name }, options, waitForms);
  const { wait, signal } = options;
  const isLook = typeof wait === "number" && wait <= 0;
  const stopped = new AbortController();
  const changes = new LeaderChanges();
  let source: { readonly zk: ZooKeeper; readonly reading: AsyncGenerator<LeaderChange, void, void> } | null = null;
  const next = () =>
    session.call(
      `read election "${name}"`,
      isLook ? { signal } : { wait, signal },
      async ({ zk, root, clock, waiting }) => {
        if (source?.zk !== zk) {
          source = { zk, reading: watchLeaderAt(zk, name, { root, clock, changes, signal: stopped.signal }) };
        }
        return (await rejectOnAbort(source.reading.next(), waiting.signal)).value ?? null;
      },
    );
  try {
    for (let isFirst = true; isFirst || !isLook;) {
      const change = await next().catch((thrown: unknown) => {
        if (session.stopSignal(signal).aborted) return null;
        if (!(thrown instanceof BatonError)) throw thrown;
        if (thrown.cause instanceof WaitTimeout && !isFirst) return null;
        if (thrown.code === "SESSION_EXPIRED") return "again";
        throw thrown;
      });
      if (change === null) return;
      if (change === "again") continue;
      isFirst = false;
      yield change;
    }
  } finally {
    stopped.abort();
  }
}

export interface LeaderResignOptions extends Omit<LockBreakOptions, "holder" | "force"> {
  /** The ID of the leader to ask; by default the current leader. */
  readonly leader?: string | undefined;
}

const resignForms: OptionForms<LeaderResignOptions> = { ...requestForms, leader: textForm, reason: textForm };

/** Asks the leader to step down. Rejects with NOT_FOUND if there is no leader, or if the leader has another ID. */
export async function resign(name: string, options: LeaderResignOptions = {}): Promise<BrokenLock> {
  const session = findNamedSession("resign", { kind: "an election", name }, options, resignForms);
  const { leader, signal } = options;
  return await session.call(
    `ask the leader of "${name}" to step down`,
    { signal },
    ({ zk, root }) =>
      resignAt(zk, name, { root, ...releaseRequest(options), ...(leader === undefined ? {} : { leader }) }),
  );
}
