/** Follows the leaders of an election across lost connections, expired sessions and unreachable servers. */
import { electionPath } from "../../../src/coordination/nodes/node_paths.ts";
import { type LeaderChange, LeaderChanges } from "../../../src/coordination/election/election_history.ts";
import { watchLeader } from "../../../src/coordination/election/leader_status.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import type { CoordinationCommandCall } from "../../coordination_session.ts";
import { followSessions } from "../../follow_sessions.ts";

export interface FollowedLeaderChange {
  readonly change: LeaderChange;
  /** The path of the election's node. */
  readonly path: string;
}

/** Yields the current leader, then each later change exactly once. Rejects with the signal's reason. */
export async function* followLeader(
  call: CoordinationCommandCall,
  name: string,
  { signal = new AbortController().signal, waitsForServer = false }: {
    readonly signal?: AbortSignal;
    /** If true, waits for the servers until the signal aborts, even for the first session. */
    readonly waitsForServer?: boolean;
  } = {},
): AsyncGenerator<FollowedLeaderChange, void, void> {
  const { root } = call.values;
  const path = electionPath(name, root).lock;
  const changes = new LeaderChanges();
  const options = { root, clock: systemClock(), changes, signal };
  const what = `the leader of "${name}"`;
  const following = followSessions(call, (zk) => watchLeader(zk, name, options), { what, signal, waitsForServer });
  for await (const change of following) yield { change, path };
}
