/** A stored message as programs and people are shown it. Pure. */
import type { StoredMessage } from "../../src/retry/queue/stored_message.ts";
import { formatDuration } from "../../src/support/duration.ts";
import type { RetryMessageJson } from "../json_shapes/retry_shapes.ts";

export function messageJson(message: StoredMessage, name: string): RetryMessageJson {
  const { id, state, key, tries, crashes, reason, error, bytes, letter, letterError } = message;
  return {
    id,
    name,
    state,
    key,
    tries,
    crashes,
    reason: reason === null ? null : reason,
    lastError: error,
    firstAt: new Date(message.firstMs).toISOString(),
    lastAt: message.lastMs === null ? null : new Date(message.lastMs).toISOString(),
    nextAt: message.nextMs === null ? null : new Date(message.nextMs).toISOString(),
    bytes,
    letter,
    letterError,
  };
}

export const listHead = ["ID", "STATE", "TRIES", "AGE", "NEXT", "KEY", "LAST ERROR"] as const;

/** A row below `listHead`. */
export function messageRow(message: StoredMessage, nowMs: number): string[] {
  const { id, state, key, tries, crashes, reason, error, nextMs, firstMs, letter } = message;
  const next = nextMs === null ? "" : nextMs <= nowMs ? "due" : `in ${formatDuration(nextMs - nowMs)}`;
  const why = reason === null ? "" : ` (${reason}${letter === "none" ? "" : `, letter ${letter}`})`;
  return [
    id,
    `${state}${why}`,
    crashes === 0 ? String(tries) : `${tries}+${crashes}`,
    formatDuration(Math.max(0, nowMs - firstMs)),
    next,
    key ?? "",
    error ?? "",
  ];
}
