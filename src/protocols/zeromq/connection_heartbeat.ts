/** Sends heartbeats on one ZeroMQ connection, and reports a peer that is silent for too long. */
import type { Clock } from "../../base/support/clock.ts";

export interface ConnectionHeartbeatHost {
  /** Sends a PING. `ttlMs` tells the peer after which silence it may give up the connection. */
  sendPing(ttlMs: number): void;
  onDead(why: string): void;
}

/**
 * The delay of a timer, in milliseconds, that means that this process was held up. The peer's bytes may then be unread,
 * although they have arrived.
 */
const lateMsMax = 1000;

export class ConnectionHeartbeat {
  /** True while this side does not read. Silence then says nothing about the peer. */
  ignoresSilence = false;
  readonly #host: ConnectionHeartbeatHost;
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #timeoutMs: number;
  #ttlMs = 0;
  #lastReceivedMs = 0;
  #lastPingMs = 0;
  #dueMs = 0;
  #isBeating = false;
  #peerKnowsPing = false;
  #cancel: (() => void) | null = null;

  constructor(
    { clock, heartbeat }: {
      readonly clock: Clock;
      readonly heartbeat: { readonly everyMs: number; readonly timeoutMs: number };
    },
    host: ConnectionHeartbeatHost,
  ) {
    this.#clock = clock;
    this.#host = host;
    this.#everyMs = heartbeat.everyMs;
    this.#timeoutMs = heartbeat.timeoutMs;
  }

  /**
   * Starts the heartbeats; called after the handshake. `isUnderstood` is false for a peer with ZMTP 3.0: it gets no
   * PING until it has sent a PING itself, as older versions of libzmq do.
   */
  start(isUnderstood: boolean): void {
    this.#isBeating = true;
    this.#peerKnowsPing ||= isUnderstood;
    this.#lastReceivedMs = this.#lastPingMs = this.#clock.now();
    this.#checkSilence();
  }

  noteReceived(): void {
    if (this.#isBeating) this.#lastReceivedMs = this.#clock.now();
  }

  /**
   * Sets the silence in milliseconds after which this side may consider the peer dead, as the peer has asked; 0 for
   * never.
   */
  setPeerTtl(ttlMs: number): void {
    if (ttlMs === this.#ttlMs && this.#peerKnowsPing) return;
    this.#peerKnowsPing = true;
    this.#ttlMs = ttlMs;
    if (this.#isBeating) this.#checkSilence();
  }

  stop(): void {
    this.#isBeating = false;
    this.#cancel?.();
    this.#cancel = null;
  }

  #checkSilence(): void {
    this.#cancel?.();
    this.#cancel = null;
    const nowMs = this.#clock.now();
    if (this.ignoresSilence || (this.#dueMs > 0 && nowMs - this.#dueMs > lateMsMax)) this.#lastReceivedMs = nowMs;
    const step = planZeroMqHeartbeat({
      nowMs,
      lastReceivedMs: this.#lastReceivedMs,
      lastPingMs: this.#lastPingMs,
      everyMs: this.#peerKnowsPing ? this.#everyMs : 0,
      timeoutMs: this.#timeoutMs,
      ttlMs: this.#ttlMs,
    });
    if (step.kind === "dead") {
      return this.#host.onDead(`Nothing was heard of the peer for ${Math.round(step.silentMs)} ms`);
    }
    if (step.kind === "ping") {
      this.#lastPingMs = nowMs;
      this.#host.sendPing(this.#timeoutMs);
    }
    this.#dueMs = 0;
    if (step.nextMs === Infinity || !this.#isBeating) return;
    this.#dueMs = nowMs + step.nextMs;
    this.#cancel = this.#clock.startTimer(step.nextMs, () => this.#checkSilence());
  }
}

export interface ZeroMqHeartbeatState {
  readonly nowMs: number;
  /** Time at which the last byte of the peer arrived. */
  readonly lastReceivedMs: number;
  readonly lastPingMs: number;
  /** Milliseconds between PINGs; 0 for never. */
  readonly everyMs: number;
  /** Milliseconds of silence after which the connection ends. Has no effect if `everyMs` is 0. */
  readonly timeoutMs: number;
  /**
   * The silence in milliseconds after which this side may consider the peer dead, as the peer has asked; 0 for never.
   */
  readonly ttlMs: number;
}

export type ZeroMqHeartbeatStep =
  | { readonly kind: "dead"; readonly silentMs: number }
  /** The heartbeat must be planned again after `nextMs`; never if `nextMs` is infinite. */
  | { readonly kind: "ping" | "rest"; readonly nextMs: number };

/** Decides when to send a PING, and when a silent peer is considered dead. Pure. */
export function planZeroMqHeartbeat(
  { nowMs, lastReceivedMs, lastPingMs, everyMs, timeoutMs, ttlMs }: ZeroMqHeartbeatState,
): ZeroMqHeartbeatStep {
  const silentMs = nowMs - lastReceivedMs;
  const silentMsMax = Math.min(everyMs > 0 && timeoutMs > 0 ? timeoutMs : Infinity, ttlMs > 0 ? ttlMs : Infinity);
  if (silentMs >= silentMsMax) return { kind: "dead", silentMs };
  const untilDeadMs = silentMsMax - silentMs;
  if (everyMs <= 0) return { kind: "rest", nextMs: untilDeadMs };
  const untilPingMs = lastPingMs + everyMs - nowMs;
  if (untilPingMs <= 0) return { kind: "ping", nextMs: Math.min(everyMs, untilDeadMs) };
  return { kind: "rest", nextMs: Math.min(untilPingMs, untilDeadMs) };
}
