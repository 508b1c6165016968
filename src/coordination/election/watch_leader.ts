/** Follows an election: reports each grant once, also after reconnects, and after a new session if given its `changes`. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import type { Event } from "../../support/event.ts";
import { electionPath } from "./election_state.ts";
import { type LeaderChange, LeaderChanges } from "./election_history.ts";
import { readLeader } from "./leader_status.ts";
import { readAgain } from "../read_again.ts";

export interface WatchLeaderOptions {
  /** "/baton" when left out. */
  readonly root?: string;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
  /** State of an earlier session, to continue after it. */
  readonly changes?: LeaderChanges;
  /** The client's own clock. */
  readonly clock?: Clock;
}

/**
 * Starts with the current leader. Misses no grant while it is at most 64 behind; more are reported as one `missed`. Ends with
 * the signal; throws the reason when the session ends, and a refusal of the server.
 */
export async function* watchLeader(
  zk: ZooKeeper,
  name: string,
  options: WatchLeaderOptions = {},
): AsyncGenerator<LeaderChange, void, void> {
  const { root, signal, changes = new LeaderChanges(), clock = systemClock() } = options;
  const path = electionPath(name, root);
  const pause = (event: Event) => event.wait();
  for await (const reading of readAgain(zk, (wake) => readLeader(zk, path, wake), { signal, clock, pause })) {
    yield* changes.changesAfter(reading);
  }
}
