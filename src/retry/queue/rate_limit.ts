/** A rate limit by a token bucket: the most tries in a time, evenly spread. */
import { BatonError } from "../../base/errors.ts";
import { parseDuration } from "../../base/support/duration.ts";

export interface Rate {
  readonly count: number;
  readonly perMs: number;
}

export interface RateBucket {
  /** The number of tokens; may have a fraction. */
  readonly tokens: number;
  readonly atMs: number;
}

/** Parses a rate such as `10/s`, `100/m` or `5/250ms`. Throws USAGE. */
export function parseRate(text: string): Rate {
  const match = /^(\d{1,9})\/(.+)$/.exec(text);
  const count = Number(match?.[1] ?? 0);
  const unit = match?.[2] ?? "";
  if (count < 1) {
    throw new BatonError("USAGE", `"${text}" is not a rate: use a number and a time, such as 10/s or 100/m`);
  }
  const perMs = parseDuration(/^\d/.test(unit) ? unit : `1${unit}`);
  if (perMs < 1) throw new BatonError("USAGE", `"${text}" is not a rate: its time is 0`);
  return { count, perMs };
}

/** The capacity of a bucket: the tokens of one second, but at least one. */
function capacityOf({ count, perMs }: Rate): number {
  return Math.max(1, (count * 1000) / perMs);
}

/** Returns a bucket with only one token. A start after a pause then causes no burst of tries. */
export function initialRateBucket(nowMs: number): RateBucket {
  return { tokens: 1, atMs: nowMs };
}

/** Adds the tokens for the time since `atMs`. */
export function refilledBucket({ tokens, atMs }: RateBucket, rate: Rate, nowMs: number): RateBucket {
  const since = Math.max(0, nowMs - atMs);
  return {
    tokens: Math.min(capacityOf(rate), tokens + (since * rate.count) / rate.perMs),
    atMs: Math.max(atMs, nowMs),
  };
}

/** Returns the time when a whole token is available. */
export function nextRateTokenAtMs(bucket: RateBucket, rate: Rate): number {
  const missing = 1 - bucket.tokens;
  return missing <= 0 ? bucket.atMs : bucket.atMs + Math.ceil((missing * rate.perMs) / rate.count);
}
