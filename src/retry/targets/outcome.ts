/** Maps exit codes and HTTP statuses to outcomes: done, retry or final. Pure. */
import { BatonError } from "../../errors.ts";
import type { TryEnd } from "../queue/message_life.ts";

export interface CodeRange {
  readonly first: number;
  readonly last: number;
}

/** Codes that the user configured; they override the defaults, and `noRetryOn` overrides `retryOn`. */
export interface RetryRules {
  readonly retryOn: readonly CodeRange[];
  readonly noRetryOn: readonly CodeRange[];
}

/**
 * Exit codes that do not improve by repetition. sysexits.h: 64 usage, 65 bad data, 77 not permitted, 78 bad configuration; env(1): 126
 * not executable, 127 not found. 75, EX_TEMPFAIL, explicitly asks for another try.
 */
const finalExits: ReadonlySet<number> = new Set([64, 65, 77, 78, 126, 127]);

/** Temporary 4xx statuses (RFC 9110, RFC 6585): timeout, too early, too many requests. Other 4xx mean that the request is wrong. */
const passingStatuses: ReadonlySet<number> = new Set([408, 425, 429]);

/** The outcome of an exit code; a signal is 128 and its number. */
export function outcomeOfExit(code: number, rules: RetryRules): TryEnd["outcome"] {
  if (code === 0) return "done";
  return ruledOutcome(code, rules) ?? (finalExits.has(code) ? "final" : "retry");
}

/** The outcome of an HTTP status. With 2xx and 3xx the backend has processed the request. */
export function outcomeOfStatus(status: number, rules: RetryRules): TryEnd["outcome"] {
  if (status >= 200 && status < 400) return "done";
  const isFinal = status >= 400 && status < 500 && !passingStatuses.has(status);
  return ruledOutcome(status, rules) ?? (isFinal ? "final" : "retry");
}

function ruledOutcome(code: number, { retryOn, noRetryOn }: RetryRules): TryEnd["outcome"] | null {
  const isIn = (ranges: readonly CodeRange[]) => ranges.some(({ first, last }) => code >= first && code <= last);
  if (isIn(noRetryOn)) return "final";
  return isIn(retryOn) ? "retry" : null;
}

/** Parses `404`, `500-599` and `5xx`. Throws USAGE. */
export function parseCodes(texts: readonly string[]): CodeRange[] {
  return texts.map((text) => {
    const group = /^([1-5])xx$/.exec(text);
    if (group?.[1] !== undefined) return { first: Number(group[1]) * 100, last: Number(group[1]) * 100 + 99 };
    const match = /^(\d{1,3})(?:-(\d{1,3}))?$/.exec(text);
    const first = Number(match?.[1] ?? Number.NaN);
    const last = Number(match?.[2] ?? match?.[1] ?? Number.NaN);
    if (first >= 1 && last <= 599 && first <= last) return { first, last };
    throw new BatonError(
      "USAGE",
      `"${text}" is not a code: use exit codes (1 to 255) or HTTP statuses (100 to 599), such as 75, 500-599 or 5xx`,
    );
  });
}
