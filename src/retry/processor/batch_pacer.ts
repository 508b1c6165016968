/**
 * Decides when due messages may be claimed: always, a batch of messages in each interval, or at the times of a cron
 * schedule.
 */

export interface BatchPacerOptions {
  /** The most messages in each interval, or at each time of the schedule; null for no limit. */
  readonly batch: number | null;
  readonly intervalMs: number;
  /**
   * Returns the first time of the schedule after `afterMs`; null if there is none. Undefined if there is no schedule.
   */
  readonly nextTimeMs?: ((afterMs: number) => number | null) | undefined;
}

export interface BatchPacer {
  /** The number of messages that may still be claimed before `nextMs`. */
  readonly messagesLeft: number;
  /** The time at which the batch is refilled; null for never. */
  readonly nextMs: number | null;
  /** The last reading of the wall clock. It reveals when the clock is set back. */
  readonly seenMs: number;
}

export function startPacer(options: BatchPacerOptions, nowMs: number): BatchPacer {
  if (options.nextTimeMs !== undefined) return { messagesLeft: 0, nextMs: options.nextTimeMs(nowMs), seenMs: nowMs };
  const { batch, intervalMs } = options;
  return batch === null
    ? { messagesLeft: Infinity, nextMs: null, seenMs: nowMs }
    : { messagesLeft: batch, nextMs: nowMs + intervalMs, seenMs: nowMs };
}

export function batchPacerAtTime(sampler: BatchPacer, options: BatchPacerOptions, nowMs: number): BatchPacer {
  const { nextMs, seenMs, messagesLeft } = sampler;
  if (nextMs === null) return sampler;
  if (nowMs < seenMs) return { ...startPacer(options, nowMs), messagesLeft };
  if (nowMs < nextMs) return { ...sampler, seenMs: nowMs };
  const { batch, intervalMs, nextTimeMs } = options;
  const left = batch ?? Infinity;
  // A suspended processor does not make up for missed times of the schedule.
  const next = nextTimeMs === undefined ? nowMs + intervalMs : nextTimeMs(nowMs);
  return { messagesLeft: left, nextMs: next, seenMs: nowMs };
}

/**
 * Returns the pacer after a claim. If a claim at a time of the schedule found fewer messages than it asked for, the
 * next claim waits for the next time.
 */
export function pacerAfterClaim(sampler: BatchPacer, options: BatchPacerOptions, { count, asked }: {
  readonly count: number;
  readonly asked: number;
}): BatchPacer {
  const isOver = options.nextTimeMs !== undefined && count < asked;
  return { ...sampler, messagesLeft: isOver ? 0 : sampler.messagesLeft - count };
}
