/** Changes many messages for an operator, in small transactions, so that other processes can write in between. */
import type { Clock } from "../../base/support/clock.ts";
import { sleep } from "../../base/support/deadline.ts";
import type { MessageChange } from "./message_life.ts";
import { initialRateBucket, nextRateTokenAtMs, type Rate, refilledBucket } from "./rate_limit.ts";
import { operatorChangesMax } from "./retry_store_limits.ts";
import type { ChangeRefusal, CommandStore, MessageConditions } from "./store_methods.ts";

export interface MessageChanges {
  readonly changed: number;
  readonly refused: { readonly id: string; readonly state: ChangeRefusal }[];
}

/** Changes messages by their IDs, each in a separate transaction. */
export async function changeMessagesById(
  store: CommandStore,
  ids: readonly string[],
  change: MessageChange,
): Promise<MessageChanges> {
  const refused: MessageChanges["refused"] = [];
  for (const id of ids) {
    const state = await store.call("change", id, change, Date.now());
    if (state !== null) refused.push({ id, state });
  }
  return { changed: ids.length - refused.length, refused };
}

/** Changes all waiting messages that match a filter. Returns their number. */
export async function changeWaiting(
  store: CommandStore,
  conditions: MessageConditions,
  change: MessageChange,
  onChanged: (count: number) => void,
): Promise<number> {
  let changed = 0;
  for (let afterSeq = 0;;) {
    const found = await store.read("list", { states: ["waiting"], ...conditions }, {
      afterSeq,
      max: operatorChangesMax,
    });
    if (found.length === 0) return changed;
    const count = (await changeMessagesById(store, found.map(({ id }) => id), change)).changed;
    changed += count;
    onChanged(count);
    afterSeq = found.at(-1)?.seq ?? afterSeq;
  }
}

/** Purges all dead letters that match a filter. Returns their number. */
export async function purgeDeadLetters(
  store: CommandStore,
  conditions: MessageConditions,
  onPurged: (count: number) => void,
): Promise<number> {
  let purged = 0;
  for (let count = -1; count !== 0; purged += count) {
    count = await store.call("purge", conditions, Date.now());
    onPurged(count);
  }
  return purged;
}

/**
 * Redrives all dead letters that match a filter, each at most once, even if it dies again. Returns their number.
 * Rejects with the reason of the signal.
 */
export async function redriveDeadLetters(
  store: CommandStore,
  conditions: MessageConditions,
  { rate, clock, signal, onRedriven }: {
    /** The most redrives in a time; null for no limit. */
    readonly rate: Rate | null;
    readonly clock: Clock;
    readonly signal: AbortSignal;
    readonly onRedriven: (count: number) => void;
  },
): Promise<number> {
  const number = await store.call("startRedrive");
  let bucket = initialRateBucket(clock.now());
  for (let redriven = 0;;) {
    if (rate !== null) bucket = refilledBucket(bucket, rate, clock.now());
    const max = rate === null ? operatorChangesMax : Math.floor(bucket.tokens);
    if (max > 0) {
      const count = await store.call("redrive", number, conditions, max, Date.now());
      redriven += count;
      onRedriven(count);
      bucket = { ...bucket, tokens: bucket.tokens - count };
      if (count < Math.min(max, operatorChangesMax)) return redriven;
    }
    // Waits at least one turn of the event loop, so that signals are handled.
    await sleep(clock, rate === null ? 0 : Math.max(0, nextRateTokenAtMs(bucket, rate) - clock.now()), signal);
  }
}
