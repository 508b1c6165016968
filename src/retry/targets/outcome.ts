/** Decides what an exit code or an HTTP status means for a message: done, retry or final. */
import { BatonError } from "../../base/errors.ts";
import { optInRedirectStatuses, sameMethodRedirectStatuses } from "../../base/http/redirection.ts";
import type { TryEnd } from "../queue/message_life.ts";

export interface ExitOrStatusRange {
  readonly first: number;
  readonly last: number;
}

/** The codes that the user has configured. They override the defaults, and `noRetryOn` overrides `retryOn`. */
export interface RetryRules {
  readonly retryOn: readonly ExitOrStatusRange[];
  readonly noRetryOn: readonly ExitOrStatusRange[];
}

/**
 * Exit codes that would be the same after another try. sysexits.h: 64 usage, 65 bad data, 77 not permitted, 78 bad
 * configuration; env(1): 126 not executable, 127 not found. EX_TEMPFAIL (75) asks for another try.
 */
const finalExits: ReadonlySet<number> = new Set([64, 65, 77, 78, 126, 127]);

/**
 * The 4xx statuses after which another try may succeed (RFC 9110, RFC 6585): timeout, too early, too many requests. All
 * other 4xx mean that the request is wrong.
 */
const passingStatuses: ReadonlySet<number> = new Set([408, 425, 429]);

/**
 * Returns what an exit code means for the message. If a signal ended the command, the code is 128 plus the number of
 * the signal.
 */
export function outcomeOfExit(code: number, rules: RetryRules): TryEnd["outcome"] {
  if (code === 0) return "done";
  return ruledOutcome(code, rules) ?? (finalExits.has(code) ? "final" : "retry");
}

/**
 * Returns what an HTTP status means for the message. Only 2xx means that the backend has accepted the request. A number
 * that is not a valid status is final.
 */
export function outcomeOfStatus(status: number, rules: RetryRules): TryEnd["outcome"] {
  if (status >= 200 && status < 300) return "done";
  const isTemporary = passingStatuses.has(status) || (status >= 500 && status < 600);
  return ruledOutcome(status, rules) ?? (isTemporary ? "retry" : "final");
}

/**
 * Returns true if a redirection with this status is followed. Returns null if the user has configured the status, so
 * that it is not followed. `follow` is the option --follow.
 */
export function isRedirectionFollowed(status: number, rules: RetryRules, follow: boolean): boolean | null {
  if (!sameMethodRedirectStatuses.has(status) && !optInRedirectStatuses.has(status)) return false;
  return ruledOutcome(status, rules) === null ? follow || sameMethodRedirectStatuses.has(status) : null;
}

function ruledOutcome(code: number, { retryOn, noRetryOn }: RetryRules): TryEnd["outcome"] | null {
  const isIn = (ranges: readonly ExitOrStatusRange[]) =>
    ranges.some(({ first, last }) => code >= first && code <= last);
  if (isIn(noRetryOn)) return "final";
  return isIn(retryOn) ? "retry" : null;
}

/** The kinds of codes that can occur: exit codes of commands, statuses of responses, or both. */
export interface ExitOrStatusKinds {
  readonly exits: boolean;
  readonly statuses: boolean;
}

export const anyExitOrStatus: ExitOrStatusKinds = { exits: true, statuses: true };

/**
 * Parses codes such as `404`, `500-599` and `5xx`. Throws USAGE for text that is not a code, and for codes that have no
 * effect, because success is never retried.
 */
export function parseExitsAndStatuses(
  texts: readonly string[],
  { exits, statuses }: ExitOrStatusKinds = anyExitOrStatus,
): ExitOrStatusRange[] {
  return texts.map((text) => {
    const group = /^([1-5])xx$/.exec(text);
    const match = /^(\d{1,3})(?:-(\d{1,3}))?$/.exec(text);
    const first = group === null ? Number(match?.[1] ?? Number.NaN) : Number(group[1]) * 100;
    const last = group === null ? Number(match?.[2] ?? match?.[1] ?? Number.NaN) : first + 99;
    if (!(first >= 1 && last <= 599 && first <= last)) {
      const wanted = "use exit codes (1 to 255) or HTTP statuses (300 to 599), such as 75, 500-599 or 5xx";
      throw new BatonError("USAGE", `"${text}" is not a code: ${wanted}`);
    }
    const mayBeExit = exits && group === null && first <= 255;
    if (mayBeExit || (statuses && last >= 300)) return { first, last };
    const possible = [
      ...(exits ? ["exit codes are 1 to 255"] : []),
      ...(statuses ? ["failures of HTTP are 300 to 599"] : []),
    ];
    const why = possible.length === 0 ? "neither a command is run nor a request is sent" : possible.join(", and ");
    throw new BatonError("USAGE", `"${text}" can never match: ${why}`);
  });
}
