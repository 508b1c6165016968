/** Follows an election: tells each grant once, over reconnects, and over sessions when it is given what was told before. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { abortable, onAbort } from "../../support/abort.ts";
import { backoffMs } from "../../support/backoff.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { sleep } from "../../support/deadline.ts";
import { Event } from "../../support/event.ts";
import { electionPath } from "./election_path.ts";
import { type LeaderChange, LeaderChanges } from "./leader_changes.ts";
import { type LeaderReading, readLeader } from "./leader_status.ts";
import { isTransient } from "../request_errors.ts";

export interface WatchLeaderOptions {
  /** "/baton" when left out. */
  readonly root?: string;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
  /** Where another session left off: pass the same one again. */
  readonly changes?: LeaderChanges;
  /** The client's own. */
  readonly clock?: Clock;
}

const retryWait = { firstMs: 50, maxMs: 1000 };

/**
 * Begins with who leads now. Up to 64 grants behind it misses none; what is lost beyond is one `missed`. Ends with the
 * signal; throws the reason when the session ends, and what a server refuses.
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
  const wake = () => event.set(); // one function for every time it is armed: the client keeps a set
  let connections = session.connections;
  const offs = [
    onAbort(signal, wake),
    onAbort(session.ended, wake),
    // After a reconnect: do not rely on a watch that the client has armed again.
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
      yield* changes.after(reading);
      await event.wait();
    }
  } finally {
    for (const off of offs) off();
  }
}
