/** One connection to a proxy: requests out, each with a number of its own in the envelope, answers matched by it. Never sends while it is not connected. */
import { DealerSocket } from "../../zeromq/dealer_socket.ts";
import type { SocketOptions } from "../../zeromq/socket_options.ts";
import type { ZmtpError, ZmtpErrorReason } from "../../wire/zmtp/zmtp_error.ts";
import { socketLimits } from "../../wire/pubsub/message_limits.ts";

const nothing = new Uint8Array(0);

/** A proxy that cannot read what it is sent goes without a word: CURVE has no answer for that. */
const wrongKeyHint = "; so does a proxy whose key is not the --service-key that was given";

/** What ends a handshake for want of a key or a right. Of the other reasons some last as well: that the peer is no proxy. */
const refusals: readonly (ZmtpErrorReason | undefined)[] = ["MECHANISM", "AUTHENTICATION", "REFUSED_BY_PEER"];

export type ProxyLinkState = "connecting" | "connected" | "lost";

export class ProxyLink {
  readonly endpoint: string;
  readonly #socket: DealerSocket;
  readonly #waiting = new Map<number, (answer: Uint8Array[] | null) => void>();
  readonly #changed = new Set<() => void>();
  #state: ProxyLinkState = "connecting";
  #why = "the connection has not come about";
  #next = 1;
  #isRetired = false;
  #isRefused = false;

  /** Throws USAGE for an endpoint that is none. */
  constructor(endpoint: string, options: SocketOptions = {}) {
    this.endpoint = endpoint;
    this.#socket = new DealerSocket({
      limits: socketLimits,
      ...options,
      onEvent: (event) => {
        if (event.kind === "connected") this.#become("connected", "");
        else if (event.kind === "connectFailed" || event.kind === "handshakeFailed") {
          const reason = event.kind === "handshakeFailed" ? (event.reason as Partial<ZmtpError>).reason : undefined;
          this.#isRefused = refusals.includes(reason);
          const isEncrypted = options.security !== undefined;
          this.#lose(`${event.reason.message}${isEncrypted && reason === "CLOSED" ? wrongKeyHint : ""}`);
        } else if (event.kind === "disconnected") this.#lose(event.reason?.message ?? "the proxy ended the connection");
      },
    });
    this.#socket.connect(endpoint);
    void this.#read();
  }

  get state(): ProxyLinkState {
    return this.#state;
  }

  /** The proxy does not let this client in, with these keys or without any. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** Why it is not connected. */
  get lostReason(): string {
    return this.#why;
  }

  /** Called at each change of the state. Returns what takes it off. */
  onChange(listener: () => void): () => void {
    this.#changed.add(listener);
    return () => void this.#changed.delete(listener);
  }

  /**
   * Sends, if it is connected and has room. `answered` gets the frames behind the envelope, or null when the connection was
   * lost; not both, and nothing any more once the returned function was called.
   */
  send(frames: readonly Uint8Array[], answered: (answer: Uint8Array[] | null) => void): (() => void) | null {
    if (this.#state !== "connected") return null;
    const number = this.#next++;
    const envelope = new Uint8Array(8);
    new DataView(envelope.buffer).setFloat64(0, number);
    if (!this.#socket.trySend([envelope, nothing, ...frames])) return null;
    this.#waiting.set(number, answered);
    return () => this.#forget(number);
  }

  /** Nothing more is sent here; it is closed when what is under way has been answered or given up. */
  retire(): void {
    this.#isRetired = true;
    if (this.#waiting.size === 0) this.#lose("another proxy is used");
  }

  async close(lingerMs = 0): Promise<void> {
    this.#lose("the client is closed");
    await this.#socket.close({ lingerMs });
  }

  #forget(number: number): void {
    this.#waiting.delete(number);
    if (this.#isRetired && this.#waiting.size === 0) this.#lose("another proxy is used");
  }

  #lose(why: string): void {
    if (this.#state === "lost") return;
    this.#become("lost", why);
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const answered of waiting) answered(null);
    void this.#socket.close({ lingerMs: 0 });
  }

  #become(state: ProxyLinkState, why: string): void {
    if (this.#state === "lost") return;
    this.#state = state;
    this.#why = why;
    for (const listener of [...this.#changed]) listener();
  }

  async #read(): Promise<void> {
    for await (const batch of this.#socket.batches()) {
      for (const [envelope = nothing, , ...frames] of batch) {
        if (envelope.byteLength !== 8) continue;
        const number = new DataView(envelope.buffer, envelope.byteOffset, 8).getFloat64(0);
        const answered = this.#waiting.get(number);
        this.#forget(number);
        answered?.(frames);
      }
    }
  }
}
