/** The state of an election, which is the state of a lock with the history of the leaders. */
import { BatonError } from "../../base/errors.ts";
import { isUnixTimeMs } from "../../base/support/instant.ts";
import { demandJsonFields } from "../../base/support/json_fields.ts";
import { appendLeaderGrant, fillInLeaderTokens, type Grant, type StoredLeaderGrant } from "./election_history.ts";
import { formatLockState, lockLayout, type LockStateCodec, type StoredLockState } from "../lock/lock_state.ts";

/** Maximum length of a leader's value, in bytes of UTF-8. */
export const leaderValueBytesMax = 1024;

const utf8 = new TextEncoder();

/** Throws USAGE if the value is empty, over 1,024 bytes, contains control characters, or is not valid Unicode. */
export function checkLeaderValue(value: string): void {
  const refuse = (why: string) => new BatonError("USAGE", `Invalid candidate's value ${JSON.stringify(value)}: ${why}`);
  if (value === "") throw refuse("it is empty");
  if (!value.isWellFormed()) throw refuse("it is not valid Unicode");
  // deno-lint-ignore no-control-regex
  if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(value)) throw refuse("it contains a control character");
  const bytes = utf8.encode(value).length;
  if (bytes > leaderValueBytesMax) {
    throw new BatonError(
      "USAGE",
      `A candidate's value of ${bytes} bytes is too long: the maximum is ${leaderValueBytesMax}`,
    );
  }
}

/** Returns the format of the data that a candidate with `value` writes at `path`. */
export function electionStateCodec(value: string, path: string): LockStateCodec {
  const format = (history: readonly StoredLeaderGrant[]) => {
    const entries = history.map((entry) => ({ ...entry, token: entry.token?.toString() ?? null }));
    return formatLockState({ limit: null, history: entries });
  };
  return {
    initial: () => format([]),
    unchanged: (read) => format(parseLeaderGrants(read, path)),
    afterGrant: (read, { guid }) =>
      format(appendLeaderGrant(parseLeaderGrants(read, path), { value, sinceMs: Date.now(), id: guid })),
    // The node is permanent: if the server removed it, the indexes would start again, and a watcher could not tell how
    // many grants it missed.
    permanent: true,
    mayAdvance: false,
  };
}

/** Returns the grants, oldest first. Throws CONFIG for data that no baton with this layout has written. */
export function parseLeaderGrants({ data, mzxid }: Pick<StoredLockState, "data" | "mzxid">, path: string): Grant[] {
  return fillInLeaderTokens(parseHistory(data, path), mzxid);
}

function parseHistory(data: Uint8Array, path: string): StoredLeaderGrant[] {
  if (data.length === 0) return [];
  const refuse = (what: string, cause?: unknown) =>
    new BatonError("CONFIG", `"${path}" is not an election of this version of baton: ${what}`, { cause });
  const { history } = demandJsonFields(data, refuse, lockLayout);
  if (!Array.isArray(history)) throw refuse("its data has no history");
  return history.map((one: unknown) => {
    const entry = entryOf(one);
    if (entry === null) throw refuse(`its history contains the invalid entry ${JSON.stringify(one)}`);
    return entry;
  });
}

function entryOf(value: unknown): StoredLeaderGrant | null {
  if (typeof value !== "object" || value === null) return null;
  const { index, token, value: offered, sinceMs, id } = value as Partial<Record<keyof StoredLeaderGrant, unknown>>;
  if (typeof index !== "number" || !Number.isSafeInteger(index) || index < 1) return null;
  if (typeof offered !== "string" || !isUnixTimeMs(sinceMs) || typeof id !== "string") return null;
  if (token !== null && !(typeof token === "string" && /^\d{1,20}$/.test(token))) return null;
  return { index, token: token === null ? null : BigInt(token), value: offered, sinceMs, id };
}
