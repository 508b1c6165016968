/** REQ: one request to the next peer, then its response. RFC 28. */
import { BatonError } from "../../src/base/errors.ts";
import { totalByteLength } from "../../src/base/wire/bytes.ts";
import type { ZeroMqSocketType } from "../../src/protocols/zeromq/zmtp/socket_type.ts";
import { DealerSocket } from "../../src/protocols/zeromq/dealer_socket.ts";
import type { ZeroMqPeer } from "../../src/protocols/zeromq/zeromq_peer.ts";
import type { ZeroMqSocketOptions } from "../../src/protocols/zeromq/socket_options.ts";
import type { ZeroMqSocketWaitOptions } from "../../src/protocols/zeromq/zeromq_socket.ts";

export interface RequestOptions extends ZeroMqSocketOptions {
  /**
   * Each request has a number that its response has to repeat (libzmq: REQ_CORRELATE); the peer has to be a REP or
   * behave as one.
   */
  readonly correlate?: boolean;
  /** A request may follow another one without a response; the late response is dropped (libzmq: REQ_RELAXED). */
  readonly relaxed?: boolean;
}

interface Asked {
  readonly peer: ZeroMqPeer;
  /** Null without correlation. */
  readonly id: Uint8Array | null;
  /** The connection is gone, and the request with it. */
  isLost: boolean;
}

const idBytes = 4;
const delimiter = new Uint8Array(0);

/**
 * `receive` returns the response, or rejects with OUTCOME_UNKNOWN if the connection of the request is lost: the request
 * may have been received or not, and may be sent again. A request that was not sent yet goes out on the next
 * connection. Use `correlate` with an identity: a late response of a ROUTER to a lost request arrives on the next
 * connection.
 */
export class RequestSocket extends DealerSocket {
  override readonly type: ZeroMqSocketType = "REQ";
  readonly #correlates: boolean;
  readonly #isRelaxed: boolean;
  /** Responses that belong to no open request, which are dropped. */
  discarded = 0;
  #asked: Asked | null = null;
  #nextId = Math.floor(Math.random() * 2 ** 32);

  constructor(options: RequestOptions = {}) {
    super({
      ...options,
      onEvent: (event) => {
        options.onEvent?.(event);
        const peer = this.#asked?.peer;
        // A message that has not left the queue is sent on the next connection.
        if (event.kind === "disconnected" && peer?.link === null && peer.unsent === 0) this.#lose(peer);
      },
    });
    this.#correlates = options.correlate ?? false;
    this.#isRelaxed = options.relaxed ?? false;
  }

  protected override check(frames: readonly Uint8Array[]): void {
    this.#requireTurn();
    super.check(frames);
    const [envelopeFrames, envelopeBytes] = this.#correlates ? [2, idBytes] : [1, 0];
    this.checkLimits(frames.length + envelopeFrames, totalByteLength(frames) + envelopeBytes);
  }

  protected override offer(frames: readonly Uint8Array[]): boolean {
    this.#requireTurn();
    return super.offer(frames);
  }

  protected override sendToAny(frames: readonly Uint8Array[]): ZeroMqPeer | null {
    this.#requireTurn();
    const id = this.#correlates ? this.#newId() : null;
    const envelope = id === null ? [delimiter] : [id, delimiter];
    const peer = super.sendToAny([...envelope, ...frames]);
    if (peer === null) return null;
    // A response to an earlier request must not be taken for the response to this one.
    this.#asked = null;
    while (super.take() !== undefined) this.discarded++;
    this.#asked = { peer, id, isLost: false };
    return peer;
  }

  override async receive(options?: ZeroMqSocketWaitOptions): Promise<Uint8Array[]> {
    this.requireOpen();
    if (this.#asked !== null) return await super.receive(options);
    throw new BatonError("ZMTP_STATE", "Cannot receive by a REQ socket: no request was sent that is not answered");
  }

  protected override take(): Uint8Array[] | undefined {
    for (let message = super.take(); message !== undefined; message = super.take()) {
      const asked = this.#asked;
      const start = asked !== null && this.inbound.last === asked.peer ? bodyStart(message, asked.id) : 0;
      if (start > 0) {
        this.#asked = null;
        return message.slice(start);
      }
      this.discarded++;
    }
    if (this.#asked?.isLost !== true) return undefined;
    this.#asked = null;
    const message = "No answer will come: the connection that the request was sent by is lost";
    throw new BatonError("OUTCOME_UNKNOWN", message);
  }

  override onPeerRemoved(peer: ZeroMqPeer): void {
    super.onPeerRemoved(peer);
    this.#lose(peer);
  }

  #lose(peer: ZeroMqPeer): void {
    if (this.#asked?.peer !== peer) return;
    this.#asked.isLost = true;
    this.onBatchEnd();
  }

  #requireTurn(): void {
    if (this.#asked === null || this.#asked.isLost || this.#isRelaxed) return;
    throw new BatonError("ZMTP_STATE", "Cannot send by a REQ socket: the request before is not answered yet");
  }

  #newId(): Uint8Array {
    const id = new Uint8Array(idBytes);
    new DataView(id.buffer).setUint32(0, this.#nextId);
    this.#nextId = (this.#nextId + 1) >>> 0;
    return id;
  }
}

/** Returns where a response begins after its envelope; 0 if the envelope is not that of the request. */
function bodyStart(message: readonly Uint8Array[], id: Uint8Array | null): number {
  const at = id === null ? 0 : 1;
  if (message.length < at + 2 || message[at]?.byteLength !== 0) return 0;
  const first = message[0] as Uint8Array;
  if (id !== null && (first.byteLength !== id.byteLength || !id.every((byte, place) => first[place] === byte))) {
    return 0;
  }
  return at + 1;
}
