/** Decides when to send a PING, and when a silent peer is considered dead. Pure: clock readings in, actions out. */

export interface HeartbeatState {
  readonly nowMs: number;
  /** Time at which the last byte of the peer arrived. */
  readonly heardMs: number;
  /** Time at which the last PING was sent. */
  readonly pingedMs: number;
  /** Milliseconds between PINGs; 0 for never. */
  readonly everyMs: number;
  /** Milliseconds of silence after which the connection ends. No effect without PINGs. */
  readonly timeoutMs: number;
  /** Milliseconds that the peer's own PINGs ask for; 0 for none. */
  readonly ttlMs: number;
}

export type HeartbeatStep =
  | { readonly kind: "dead"; readonly silentMs: number }
  /** Check again after `nextMs`, or never if it is infinite. */
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
