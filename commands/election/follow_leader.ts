/** Follows an election over lost connections, expired sessions and unreachable servers. */
import { connect, type ConnectOptions } from "../../src/zookeeper/zookeeper_client.ts";
import { isSessionEnd } from "../../src/zookeeper/zookeeper_error.ts";
import { electionPath } from "../../src/coordination/election/election_state.ts";
import { type LeaderChange, LeaderChanges } from "../../src/coordination/election/election_history.ts";
import { watchLeader } from "../../src/coordination/election/watch_leader.ts";
import { systemClock } from "../../src/support/clock.ts";
import { CandidateSession } from "../../src/coordination/connect/candidate_session.ts";
import { announceCoordination, type ConnectedCall } from "../coordination/connected.ts";
import { openSession } from "../../src/coordination/connect/command_session.ts";
import { reportOutages } from "../job/wait_display.ts";

export interface FollowedChange {
  readonly change: LeaderChange;
  /** Path of the election's node. */
  readonly path: string;
}

/** Yields the current leader and every later change once. Rejects with the signal's reason. */
export async function* followLeader(
  { values, sources, io }: ConnectedCall,
  name: string,
  { signal = new AbortController().signal, waitsForServer = false }: {
    readonly signal?: AbortSignal;
    /** True: wait for the servers until the signal aborts, also for the first session. */
    readonly waitsForServer?: boolean;
  } = {},
): AsyncGenerator<FollowedChange, void, void> {
  const clock = systemClock();
  const path = electionPath(name, values.root).lock;
  const { quiet } = values;
  const place = announceCoordination({ values, sources, quiet }, io, {});
  const what = `the leader of "${name}"`;
  const open = (options: ConnectOptions) => connect({ ...options, clock });
  const opening = { isPatient: waitsForServer, io, clock, quiet, what };
  const session = new CandidateSession({
    connect: (options) => openSession(open, options, opening),
    options: place.connect,
    clock,
    isPatient: true,
    onUnreachable: (why) => quiet || io.err(`baton: ${why}; retrying\n`),
  });
  const changes = new LeaderChanges();
  try {
    for (;;) {
      const zk = await session.openSession(signal);
      using _outage = reportOutages(zk, what, { io, clock, quiet });
      try {
        const options = { root: values.root, clock, changes, signal };
        for await (const change of watchLeader(zk, name, options)) yield { change, path };
        throw signal.reason; // only the signal ends the loop
      } catch (thrown) {
        if (signal.aborted || !isSessionEnd(zk.session.ended.reason)) throw thrown;
      }
    }
  } finally {
    await session.close(signal);
  }
}
