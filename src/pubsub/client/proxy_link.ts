/** A client's connection to one proxy. Matches responses to requests. While it is not connected, it sends nothing. */
import { DealerSocket } from "../../protocols/zeromq/dealer_socket.ts";
import type { ZeroMqSocketOptions } from "../../protocols/zeromq/socket_options.ts";
import type { ZmtpError, ZmtpErrorReason } from "../../protocols/zeromq/zmtp/zmtp_error.ts";
import { pubsubSocketLimits } from "../wire/message_limits.ts";
import { OneTimeEvent } from "../../base/support/event.ts";

const nothing = new Uint8Array(0);

/**
 * A hint for a connection that ended without a reason. If a client has a wrong key, the proxy cannot decrypt the
 * handshake, and CURVE has no error response for that.
 */
const wrongKeyHint = "; so does a proxy whose key is not the --service-key that was given";

/** Handshake errors whose cause is a missing key or permission. After such an error, another try is useless. */
const refusals: readonly (ZmtpErrorReason | undefined)[] = ["MECHANISM", "AUTHENTICATION", "REFUSED_BY_PEER"];

export type ProxyLinkState = "connecting" | "connected" | "lost";

export class ProxyLink {
  readonly endpoint: string;
  readonly #onLost: () => void;
  readonly #socket: DealerSocket;
  readonly #pendingRequests = new Map<number, (answer: Uint8Array[] | null) => void>();
  readonly #settled = new OneTimeEvent();
  #state: ProxyLinkState = "connecting";
  #why = "the connection was not established";
  #nextNumber = 1;
  #isRetired = false;
  #isRefused = false;

  /** Throws USAGE for an invalid endpoint. */
  constructor(endpoint: string, options: ZeroMqSocketOptions = {}, onLost: () => void = () => {}) {
    this.endpoint = endpoint;
    this.#onLost = onLost;
    this.#socket = new DealerSocket({
      limits: pubsubSocketLimits,
      ...options,
      onEvent: (event) => {
        if (event.kind === "connected") this.#setState("connected", "");
        else if (event.kind === "connectFailed" || event.kind === "handshakeFailed") {
          const reason = event.kind === "handshakeFailed" ? (event.reason as Partial<ZmtpError>).reason : undefined;
          this.#isRefused = refusals.includes(reason);
          const isEncrypted = options.security !== undefined;
          this.#markLost(`${event.reason.message}${isEncrypted && reason === "CLOSED" ? wrongKeyHint : ""}`);
        } else if (event.kind === "disconnected") {
          this.#markLost(event.reason?.message ?? "the proxy ended the connection");
        }
      },
    });
    this.#socket.connect(endpoint);
    void this.#read();
  }

  get state(): ProxyLinkState {
    return this.#state;
  }

  /** True if the proxy refuses this client because of the client's keys, or because it has none. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  get lostReason(): string {
    return this.#why;
  }

  /** Resolves when the link is connected, or lost. */
  whenSettled(): Promise<void> {
    return this.#settled.wait();
  }

  /**
   * Sends a request. `answered` gets the response's frames after the envelope, or null if the connection was lost.
   * Returns a function that removes `answered`; returns null if the link is not connected or has no room.
   */
  send(frames: readonly Uint8Array[], answered: (answer: Uint8Array[] | null) => void): (() => void) | null {
    if (this.#state !== "connected") return null;
    const number = this.#nextNumber++;
    const envelope = new Uint8Array(8);
    new DataView(envelope.buffer).setFloat64(0, number);
    if (!this.#socket.trySend([envelope, nothing, ...frames])) return null;
    this.#pendingRequests.set(number, answered);
    return () => this.#forget(number);
  }

  /** Closes the link as soon as no request is in flight. The caller must send no more requests over this link. */
  retire(): void {
    this.#isRetired = true;
    if (this.#pendingRequests.size === 0) this.#markLost("another proxy is used");
  }

  async close(): Promise<void> {
    this.#markLost("the client is closed");
    await this.#socket.close({ lingerMs: 0 });
  }

  #forget(number: number): void {
    this.#pendingRequests.delete(number);
    if (this.#isRetired && this.#pendingRequests.size === 0) this.#markLost("another proxy is used");
  }

  #markLost(why: string): void {
    if (this.#state === "lost") return;
    this.#setState("lost", why);
    this.#onLost();
    const waiting = [...this.#pendingRequests.values()];
    this.#pendingRequests.clear();
    for (const answered of waiting) answered(null);
    void this.#socket.close({ lingerMs: 0 });
  }

  #setState(state: ProxyLinkState, why: string): void {
    if (this.#state === "lost") return;
    this.#state = state;
    this.#why = why;
    this.#settled.set();
  }

  async #read(): Promise<void> {
    for await (const batch of this.#socket.batches()) {
      for (const [envelope = nothing, , ...frames] of batch) {
        if (envelope.byteLength !== 8) continue;
        const number = new DataView(envelope.buffer, envelope.byteOffset, 8).getFloat64(0);
        const answered = this.#pendingRequests.get(number);
        this.#forget(number);
        answered?.(frames);
      }
    }
  }
}
