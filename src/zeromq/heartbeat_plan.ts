/** When to send a PING, and when a silent peer is taken for dead. Pure: readings of a clock in, what to do out. */

export interface HeartbeatState {
  readonly nowMs: number;
  /** When the last byte came from the peer. */
  readonly heardMs: number;
  /** When the last PING was sent. */
  readonly pingedMs: number;
  /** A PING every so often; 0 for never. */
  readonly everyMs: number;
  /** The end after so long without a byte; asked for by PINGs only, so without effect when there are none. */
  readonly timeoutMs: number;
  /** What the peer's own PINGs ask for; 0 for nothing. */
  readonly ttlMs: number;
}

export type HeartbeatStep =
  | { readonly kind: "dead"; readonly silentMs: number }
  /** Look again after `nextMs`, or never when it is infinite. */
  | { readonly kind: "ping" | "rest"; readonly nextMs: number };

export function heartbeatPlan({ nowMs, heardMs, pingedMs, everyMs, timeoutMs, ttlMs }: HeartbeatState): HeartbeatStep {
  const silentMs = nowMs - heardMs;
  const silentMsMax = Math.min(everyMs > 0 && timeoutMs > 0 ? timeoutMs : Infinity, ttlMs > 0 ? ttlMs : Infinity);
  if (silentMs >= silentMsMax) return { kind: "dead", silentMs };
  const untilDeadMs = silentMsMax - silentMs;
  if (everyMs <= 0) return { kind: "rest", nextMs: untilDeadMs };
  const untilPingMs = pingedMs + everyMs - nowMs;
  if (untilPingMs <= 0) return { kind: "ping", nextMs: Math.min(everyMs, untilDeadMs) };
  return { kind: "rest", nextMs: Math.min(untilPingMs, untilDeadMs) };
}
