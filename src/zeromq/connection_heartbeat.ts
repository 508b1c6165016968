/** Heartbeats of one connection. */
import type { Clock } from "../support/clock.ts";

export interface HeartHost {
  /** Sends a PING with this time to live. */
  ping(ttlMs: number): void;
  /** The peer was silent for too long. */
  dead(why: string): void;
}

/** A late timer means that this process was held up: bytes of the peer may be unread. */
const lateMsMax = 1000;

export class Heart {
  /** This side does not read at present, so silence means nothing. */
  isDeaf = false;
  readonly #host: HeartHost;
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #timeoutMs: number;
  #ttlMs = 0;
  #heardMs = 0;
  #pingedMs = 0;
  #dueMs = 0;
  #isBeating = false;
  /** The peer knows PING. */
  #isUnderstood = false;
  #cancel: (() => void) | null = null;

  constructor(
    { clock, heartbeat }: {
      readonly clock: Clock;
      readonly heartbeat: { readonly everyMs: number; readonly timeoutMs: number };
    },
    host: HeartHost,
  ) {
    this.#clock = clock;
    this.#host = host;
    this.#everyMs = heartbeat.everyMs;
    this.#timeoutMs = heartbeat.timeoutMs;
  }

  /**
   * Starts after the handshake. A peer with ZMTP 3.0 gets no PING until it has sent one itself, as older versions of
   * libzmq do.
   */
  start(isUnderstood: boolean): void {
    this.#isBeating = true;
    this.#isUnderstood ||= isUnderstood;
    this.#heardMs = this.#pingedMs = this.#clock.now();
    this.#beat();
  }

  heard(): void {
    if (this.#isBeating) this.#heardMs = this.#clock.now();
  }

  /** The peer wants to be considered dead after this time; 0 cancels that. */
  limit(ttlMs: number): void {
    if (ttlMs === this.#ttlMs && this.#isUnderstood) return;
    this.#isUnderstood = true;
    this.#ttlMs = ttlMs;
    if (this.#isBeating) this.#beat();
  }

  stop(): void {
    this.#isBeating = false;
    this.#cancel?.();
    this.#cancel = null;
  }

  #beat(): void {
    this.#cancel?.();
    this.#cancel = null;
    const nowMs = this.#clock.now();
    if (this.isDeaf || (this.#dueMs > 0 && nowMs - this.#dueMs > lateMsMax)) this.#heardMs = nowMs;
    const step = heartbeatPlan({
      nowMs,
      heardMs: this.#heardMs,
      pingedMs: this.#pingedMs,
      everyMs: this.#isUnderstood ? this.#everyMs : 0,
      timeoutMs: this.#timeoutMs,
      ttlMs: this.#ttlMs,
    });
    if (step.kind === "dead") {
      return this.#host.dead(`Nothing was heard of the peer for ${Math.round(step.silentMs)} ms`);
    }
    if (step.kind === "ping") {
      this.#pingedMs = nowMs;
      this.#host.ping(this.#timeoutMs);
    }
    this.#dueMs = 0;
    if (step.nextMs === Infinity || !this.#isBeating) return;
    this.#dueMs = nowMs + step.nextMs;
    this.#cancel = this.#clock.startTimer(step.nextMs, () => this.#beat());
  }
}

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

/** Decides when to send a PING, and when a silent peer is considered dead. Pure. */
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
