/** Follows an object on the servers, even if connections are lost, sessions expire or servers cannot be reached. */
import { connectToZooKeeper, type ZooKeeperConnectOptions } from "../src/protocols/zookeeper/zookeeper_client.ts";
import { isSessionEndError } from "../src/protocols/zookeeper/zookeeper_error.ts";
import type { ZooKeeper } from "../src/protocols/zookeeper/zookeeper.ts";
import { systemClock } from "../src/base/support/clock.ts";
import { CandidateSession } from "../src/coordination/connect/candidate_session.ts";
import type { CoordinationServers } from "../src/coordination/connect/coordination_servers.ts";
import { openCoordinationSession, reportServerOutages } from "../src/coordination/connect/command_session.ts";
import { chooseCoordinationServers, type CoordinationCommandCall } from "./coordination_session.ts";

export interface FollowSessionsOptions {
  /** The subject of messages, such as `the leader of "echo"`. */
  readonly what: string;
  readonly signal: AbortSignal;
  /** If true, the first session also waits for servers that cannot be reached, until the signal aborts. */
  readonly waitsForServer?: boolean;
  /** How long changes are gathered before they are reported, in milliseconds. */
  readonly gatherEventsMs?: number;
}

/**
 * Yields the values of `follow`, which is called again for each new session. When the signal aborts, rejects with its
 * reason.
 */
export async function* followSessions<T>(
  { values, sources, io }: CoordinationCommandCall,
  follow: (zk: ZooKeeper, place: CoordinationServers) => AsyncIterable<T>,
  { what, signal, waitsForServer = false, gatherEventsMs = 0 }: FollowSessionsOptions,
): AsyncGenerator<T, never, void> {
  const clock = systemClock();
  const { quiet, verbose } = values;
  const place = chooseCoordinationServers({ values, sources, quiet, verbose }, io, {});
  const open = (options: ZooKeeperConnectOptions) => connectToZooKeeper({ ...options, clock, gatherEventsMs });
  const opening = { isPatient: waitsForServer, io, clock, quiet, what };
  const say = (sentence: string) => quiet || io.err(`baton: ${sentence}\n`);
  const session = new CandidateSession({
    connect: (options, isRetry) => isRetry ? open(options) : openCoordinationSession(open, options, opening),
    options: { ...place.connect, onSlow: say },
    clock,
    isPatient: true,
    onUnreachable: (why) => say(`${why}; retrying`),
  });
  try {
    for (;;) {
      const zk = await session.openSession(signal);
      using _outage = reportServerOutages(zk, what, { io, clock, quiet });
      try {
        yield* follow(zk, place);
        throw signal.reason; // `follow` ends only if the signal aborts
      } catch (thrown) {
        if (signal.aborted || !isSessionEndError(zk.session.ended.reason)) throw thrown;
      }
    }
  } finally {
    await session.close(signal);
  }
}
