/** Follows what a function reads: again after each change, and from time to time in case a watch was lost. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { abortable, onAbort } from "../../support/abort.ts";
import { backoffMs } from "../../support/backoff.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { sleep } from "../../support/deadline.ts";
import { Event } from "../../support/event.ts";
import { isTransient } from "../request_errors.ts";
import { watchReads } from "./watched_reads.ts";

export interface FollowReadsOptions {
  /** Ends the iteration. */
  readonly signal: AbortSignal;
  readonly clock?: Clock;
  /** The maximum time between two reads, in milliseconds. */
  readonly everyMs?: number;
}

const retryWait = { firstMs: 50, maxMs: 1000 };
/** Milliseconds from a change to the next read: changes that come together are read together. */
const gatherMs = 50;
/** Reading takes at most this part of the time, however many changes there are. A server that stood still costs no more than the maximum. */
const readShareMax = 0.25;
const restMsMax = 10_000;
const everyMsDefault = 5000;

/** Yields the first value, and one after each read. Ends with the signal; throws when the session ends, and a refusal of the server. */
export async function* followReads<T>(
  zk: ZooKeeper,
  read: (zk: ZooKeeper) => Promise<T>,
  { signal, clock = systemClock(), everyMs = everyMsDefault }: FollowReadsOptions,
): AsyncGenerator<T, void, void> {
  const { session } = zk;
  let event = new Event();
  const wake = () => event.set();
  const reader = watchReads(zk, wake);
  let connections = session.connections;
  const offs = [
    onAbort(signal, wake),
    onAbort(session.ended, wake),
    session.subscribe((change) => {
      if (change === "state" && session.state === "connected" && session.connections !== connections) wake();
    }),
  ];
  try {
    for (let failures = 0; !signal.aborted;) {
      if (session.ended.aborted) throw session.ended.reason;
      event = new Event();
      connections = session.connections;
      const startMs = clock.now();
      let value: T;
      try {
        value = await abortable(read(reader), signal);
        failures = 0;
      } catch (thrown) {
        if (signal.aborted) return;
        if (session.ended.aborted) throw session.ended.reason;
        if (!isTransient(thrown)) throw thrown;
        await sleep(clock, backoffMs(failures++, retryWait), signal).catch(() => {});
        continue;
      }
      const restMs = Math.min(restMsMax, (clock.now() - startMs) * (1 / readShareMax - 1));
      yield value;
      await waitFor(event, everyMs, clock);
      await sleep(clock, Math.max(gatherMs, restMs), signal).catch(() => {});
    }
  } finally {
    for (const off of offs) off();
  }
}

async function waitFor(event: Event, ms: number, clock: Clock): Promise<void> {
  const cancel = clock.startTimer(ms, event.set);
  await event.wait();
  cancel();
}
