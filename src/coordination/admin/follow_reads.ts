/** Follows what a function reads: again after each change, and from time to time in case a watch was lost. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { sleep } from "../../support/deadline.ts";
import type { Event } from "../../support/event.ts";
import { readAgain } from "../read_again.ts";
import { watchReads } from "./watched_reads.ts";

export interface FollowReadsOptions {
  /** Ends the iteration. */
  readonly signal: AbortSignal;
  readonly clock?: Clock;
  /** The maximum time between two reads, in milliseconds. */
  readonly everyMs?: number;
}

/** Milliseconds from a change to the next read: changes that come together are read together. */
const gatherMs = 50;
const readShareMax = 0.25;
const restMsMax = 10_000;
const everyMsDefault = 5000;

/**
 * Returns the rest after a read that took `tookMs`, both in milliseconds: reading takes at most a quarter of the time, unless a read takes
 * very long. Pure.
 */
export const restMsAfter = (tookMs: number): number => Math.min(restMsMax, tookMs * (1 / readShareMax - 1));

/** Yields the first value, and one after each read. Ends with the signal; throws when the session ends, and a refusal of the server. */
export function followReads<T>(
  zk: ZooKeeper,
  read: (zk: ZooKeeper) => Promise<T>,
  { signal, clock = systemClock(), everyMs = everyMsDefault }: FollowReadsOptions,
): AsyncGenerator<T, void, void> {
  let reader: ZooKeeper | null = null;
  return readAgain(zk, (wake) => read(reader ??= watchReads(zk, wake)), {
    signal,
    clock,
    async pause(event, tookMs) {
      await waitFor(event, everyMs, clock);
      await sleep(clock, Math.max(gatherMs, restMsAfter(tookMs)), signal).catch(() => {});
    },
  });
}

async function waitFor(event: Event, ms: number, clock: Clock): Promise<void> {
  const cancel = clock.startTimer(ms, event.set);
  await event.wait();
  cancel();
}
