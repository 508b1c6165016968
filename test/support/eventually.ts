/** Waiting in tests: for a condition, never for a time. */

import { QuietTime } from "./quiet_time.ts";

export interface EventuallyOptions {
  /**
   * How long to wait, in milliseconds; 5,000 when left out. Time in which the machine was busy does not count, up to
   * four times this limit.
   */
  readonly withinMs?: number;
  /** If true, all time counts. For conditions that are expected to stay false. */
  readonly isExact?: boolean;
  /** What is waited for, to stand in the sentence "Waited 5000 ms for …". */
  readonly what?: string;
  /** Between two looks, in milliseconds. */
  readonly everyMs?: number;
}

/**
 * The condition's first result that is neither false, null nor undefined. A condition that throws is asked again; what
 * it threw last is the cause.
 */
export async function eventually<T>(
  condition: () => T | Promise<T>,
  options: EventuallyOptions = {},
): Promise<Exclude<T, false | null | undefined>> {
  const withinMs = options.withinMs ?? 5000;
  const quiet = new QuietTime();
  let cause: unknown;
  for (;;) {
    try {
      const result = await condition();
      cause = undefined;
      if (result !== false && result !== null && result !== undefined) {
        return result as Exclude<T, false | null | undefined>;
      }
    } catch (thrown) {
      cause = thrown;
    }
    if ((options.isExact === true ? quiet.elapsedMs : quiet.ms) >= withinMs) {
      const why = cause === undefined
        ? ""
        : `; the last look failed: ${cause instanceof Error ? cause.message : cause}`;
      throw new Error(`Waited ${Math.round(quiet.elapsedMs)} ms for ${options.what ?? "a condition"}, in vain${why}`, {
        cause,
      });
    }
    await new Promise((resolve) => setTimeout(resolve, options.everyMs ?? 5));
  }
}
