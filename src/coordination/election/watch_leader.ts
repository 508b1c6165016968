/** Follows an election: reports each grant once, also after reconnects, and after a new session if given its `changes`. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { abortable, onAbort } from "../../support/abort.ts";
import { backoffMs } from "../../support/backoff.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { sleep } from "../../support/deadline.ts";
import { Event } from "../../support/event.ts";
import { electionPath } from "./election_state.ts";
import { type LeaderChange, LeaderChanges, type LeaderReading } from "./election_history.ts";
import { readLeader } from "./leader_status.ts";
import { isTransient } from "../request_errors.ts";

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

const retryWait = { firstMs: 50, maxMs: 1000 };

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
  const { session } = zk;
  const path = electionPath(name, root);
  let event = new Event();
  const wake = () => event.set(); // the same function for every watch: the client keeps a set of them
  let connections = session.connections;
  const offs = [
    onAbort(signal, wake),
    onAbort(session.ended, wake),
    // A watch that the client has armed again after a reconnect is not reliable.
    session.subscribe((change) => {
      if (change === "state" && session.state === "connected" && session.connections !== connections) wake();
    }),
  ];
  try {
    for (let failures = 0; !signal?.aborted;) {
      if (session.ended.aborted) throw session.ended.reason;
      event = new Event();
      connections = session.connections;
      let reading: LeaderReading;
      try {
        reading = await abortable(readLeader(zk, path, wake), signal);
        failures = 0;
      } catch (thrown) {
        if (signal?.aborted) return;
        if (session.ended.aborted) throw session.ended.reason;
        if (!isTransient(thrown)) throw thrown;
        await sleep(clock, backoffMs(failures++, retryWait), signal).catch(() => {});
        continue;
      }
      yield* changes.changesAfter(reading);
      await event.wait();
    }
  } finally {
    for (const off of offs) off();
  }
}
