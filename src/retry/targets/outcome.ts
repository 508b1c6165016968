/** What an exit code or an HTTP status means for a message: it is done, worth another try, or final. Pure. */
import { BatonError } from "../../errors.ts";

export type TryOutcome = "done" | "retry" | "final";

export interface CodeRange {
  readonly first: number;
  readonly last: number;
}

/** What the user has said about codes; both go before the defaults, and `noRetryOn` before `retryOn`. */
export interface RetryRules {
  readonly retryOn: readonly CodeRange[];
  readonly noRetryOn: readonly CodeRange[];
}

export const noRules: RetryRules = { retryOn: [], noRetryOn: [] };

/**
 * sysexits.h: 64 usage, 65 bad data, 77 not permitted, 78 bad configuration; 126 and 127 are env(1)'s: not executable, not
 * found. None of them gets better by itself. 75, EX_TEMPFAIL, asks for another try in so many words.
 */
const finalExits: ReadonlySet<number> = new Set([64, 65, 77, 78, 126, 127]);

/** RFC 9110 and RFC 6585: timeout, too early, too many requests. All other 4xx say that the request itself is wrong. */
const passingStatuses: ReadonlySet<number> = new Set([408, 425, 429]);

/** Of an exit code, 128 and the signal's number for a signal. */
export function outcomeOfExit(code: number, rules: RetryRules): TryOutcome {
  if (code === 0) return "done";
  return ruledOutcome(code, rules) ?? (finalExits.has(code) ? "final" : "retry");
}

/** Of an HTTP status. 2xx and 3xx are answers: the other side has dealt with the request. */
export function outcomeOfStatus(status: number, rules: RetryRules): TryOutcome {
  if (status >= 200 && status < 400) return "done";
  const isFinal = status >= 400 && status < 500 && !passingStatuses.has(status);
  return ruledOutcome(status, rules) ?? (isFinal ? "final" : "retry");
}

function ruledOutcome(code: number, { retryOn, noRetryOn }: RetryRules): TryOutcome | null {
  const isIn = (ranges: readonly CodeRange[]) => ranges.some(({ first, last }) => code >= first && code <= last);
  if (isIn(noRetryOn)) return "final";
  return isIn(retryOn) ? "retry" : null;
}

/** `404`, `500-599`, or 5xx, one or several. Throws USAGE. */
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
      `"${text}" is no code: write exit codes (1 to 255) or HTTP statuses (100 to 599), such as 75, 500-599 or 5xx`,
    );
  });
}
