/**
 * When messages may be taken, beside that they are due: always, so many in each interval (a batch), or at the times of a
 * schedule (cron). Pure.
 */

export interface BatchPacerOptions {
  /** At most so many in each interval, or at each time of the schedule. Null: no such limit. */
  readonly batch: number | null;
  readonly intervalMs: number;
  /** The first time of the schedule after this one; null for none. Wall clock, milliseconds. Left out: no schedule. */
  readonly nextTimeMs?: ((afterMs: number) => number | null) | undefined;
}

export interface BatchPacer {
  /** What may still be taken up to the next time. */
  readonly left: number;
  /** Then it is filled up again; null: never. */
  readonly nextMs: number | null;
}

export function startPacer(options: BatchPacerOptions, nowMs: number): BatchPacer {
  if (options.nextTimeMs !== undefined) return { left: 0, nextMs: options.nextTimeMs(nowMs) };
  const { batch, intervalMs } = options;
  return batch === null ? { left: Infinity, nextMs: null } : { left: batch, nextMs: nowMs + intervalMs };
}

/** As of now. */
export function pacerAt(sampler: BatchPacer, options: BatchPacerOptions, nowMs: number): BatchPacer {
  const { nextMs } = sampler;
  if (nextMs === null || nowMs < nextMs) return sampler;
  const { batch, intervalMs, nextTimeMs } = options;
  const left = batch ?? Infinity;
  // A processor that slept over several times does not make up for them.
  return { left, nextMs: nextTimeMs === undefined ? nowMs + intervalMs : nextTimeMs(nowMs) };
}

/** So many were taken, of so many that were asked for: with a schedule, fewer than asked means that this time is over. */
export function pacerAfterClaim(sampler: BatchPacer, options: BatchPacerOptions, { count, asked }: {
  readonly count: number;
  readonly asked: number;
}): BatchPacer {
  const isOver = options.nextTimeMs !== undefined && count < asked;
  return { ...sampler, left: isOver ? 0 : sampler.left - count };
}
