/**
 * Decides when due messages may be claimed: always, at most N in each interval (a batch), or at the times of a schedule
 * (cron). Pure.
 */

export interface BatchPacerOptions {
  /** Maximum number of messages in each interval, or at each time of the schedule. Null: no limit. */
  readonly batch: number | null;
  readonly intervalMs: number;
  /**
   * The first time of the schedule after the given one; null: there is none. Wall clock, milliseconds. Left out: no
   * schedule.
   */
  readonly nextTimeMs?: ((afterMs: number) => number | null) | undefined;
}

export interface BatchPacer {
  /** Messages that may still be claimed before the next time. */
  readonly messagesLeft: number;
  /** The time when the batch is refilled; null: never. */
  readonly nextMs: number | null;
  /** The last reading of the wall clock; an earlier one means that the clock was set back. */
  readonly seenMs: number;
}

export function startPacer(options: BatchPacerOptions, nowMs: number): BatchPacer {
  if (options.nextTimeMs !== undefined) return { messagesLeft: 0, nextMs: options.nextTimeMs(nowMs), seenMs: nowMs };
  const { batch, intervalMs } = options;
  return batch === null
    ? { messagesLeft: Infinity, nextMs: null, seenMs: nowMs }
    : { messagesLeft: batch, nextMs: nowMs + intervalMs, seenMs: nowMs };
}

/** The pacer as of now. */
export function pacerAt(sampler: BatchPacer, options: BatchPacerOptions, nowMs: number): BatchPacer {
  const { nextMs, seenMs, messagesLeft } = sampler;
  if (nextMs === null) return sampler;
  if (nowMs < seenMs) return { ...startPacer(options, nowMs), messagesLeft };
  if (nowMs < nextMs) return { ...sampler, seenMs: nowMs };
  const { batch, intervalMs, nextTimeMs } = options;
  const left = batch ?? Infinity;
  // A processor that was suspended for several times of the schedule does not make up for them.
  const next = nextTimeMs === undefined ? nowMs + intervalMs : nextTimeMs(nowMs);
  return { messagesLeft: left, nextMs: next, seenMs: nowMs };
}

/** The pacer after a claim. With a schedule, fewer messages than asked for end the current time. */
export function pacerAfterClaim(sampler: BatchPacer, options: BatchPacerOptions, { count, asked }: {
  readonly count: number;
  readonly asked: number;
}): BatchPacer {
  const isOver = options.nextTimeMs !== undefined && count < asked;
  return { ...sampler, messagesLeft: isOver ? 0 : sampler.messagesLeft - count };
}
