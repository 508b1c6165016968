/** REP: one request, then its response, which goes back the way the request came. RFC 28. */
import { BatonError } from "../../src/base/errors.ts";
import type { ZeroMqSocketType } from "../../src/protocols/zeromq/zmtp/socket_type.ts";
import { totalByteLength } from "../../src/base/wire/bytes.ts";
import type { ZeroMqPeer } from "../../src/protocols/zeromq/zeromq_peer.ts";
import type { ZeroMqSocketOptions } from "../../src/protocols/zeromq/socket_options.ts";
import { ZeroMqSocket, type ZeroMqSocketWaitOptions } from "../../src/protocols/zeromq/zeromq_socket.ts";

interface OpenRequest {
  readonly peer: ZeroMqPeer;
  /** The connection of the peer on which the request arrived. */
  readonly connection: number;
  /** All frames up to and including the empty one. */
  readonly envelope: readonly Uint8Array[];
}

export class ReplySocket extends ZeroMqSocket {
  readonly type: ZeroMqSocketType = "REP";
  /** Requests without an envelope, which are dropped. */
  discarded = 0;
  #request: OpenRequest | null = null;

  constructor(options: ZeroMqSocketOptions = {}) {
    super({
      ...options,
      onEvent: (event) => {
        options.onEvent?.(event);
        if (event.kind === "disconnected") this.#request?.peer.senders.pump();
      },
    });
  }

  override async receive(options?: ZeroMqSocketWaitOptions): Promise<Uint8Array[]> {
    this.requireOpen();
    if (this.#request === null) return await super.receive(options);
    throw new BatonError("ZMTP_STATE", "Cannot receive by a REP socket: the request before is not answered yet");
  }

  protected override check(frames: readonly Uint8Array[]): void {
    const { envelope } = this.#requireRequest();
    super.check(frames);
    this.checkLimits(frames.length + envelope.length, totalByteLength([...envelope, ...frames]));
  }

  protected override offer(frames: readonly Uint8Array[]): boolean {
    const { peer, connection, envelope } = this.#requireRequest();
    if (peer.link === null || peer.connections !== connection) {
      this.counters.unroutable++;
      this.#answered();
      return true;
    }
    if (!peer.offer([...envelope, ...frames])) return false;
    this.#answered();
    return true;
  }

  protected override async waitToOffer(
    frames: readonly Uint8Array[],
    signal?: AbortSignal,
  ): Promise<void> {
    await this.#requireRequest().peer.senders.wait(() => this.offer(frames) || undefined, signal);
  }

  protected override failSenders(reason: unknown): void {
    this.#request?.peer.senders.fail(reason);
  }

  protected override take(): Uint8Array[] | undefined {
    if (this.#request !== null) return undefined;
    for (let message = super.take(); message !== undefined; message = super.take()) {
      const end = message.findIndex((frame) => frame.byteLength === 0) + 1;
      if (end > 0 && end < message.length) {
        const peer = this.inbound.last as ZeroMqPeer;
        this.#request = { peer, connection: peer.connections, envelope: message.slice(0, end) };
        return message.slice(end);
      }
      this.discarded++;
    }
    return undefined;
  }

  override onRoom(peer: ZeroMqPeer): void {
    if (peer.senders.length > 0) peer.senders.pump();
  }

  /** A caller may have waited while a request was open and got nothing: now there may be another request. */
  #answered(): void {
    this.#request = null;
    this.onBatchEnd();
  }

  #requireRequest(): OpenRequest {
    if (this.#request !== null) return this.#request;
    throw new BatonError("ZMTP_STATE", "Cannot send by a REP socket: there is no request to answer");
  }
}
