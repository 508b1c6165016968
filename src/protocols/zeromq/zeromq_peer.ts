/**
 * One peer of a socket: its outgoing and incoming messages (RFC 28: "double queue"). The peer of a `connect` exists
 * through all its connections; a peer at a bound endpoint exists as long as its connection.
 */
import { FifoQueue } from "../../base/support/fifo_queue.ts";
import { totalByteLength } from "../../base/wire/bytes.ts";
import { frameCostBytes } from "./zmtp/zmtp_limits.ts";
import type { ZmtpPeerDescription } from "./zmtp/zmtp_peer.ts";
import type { ResolvedSocketOptions } from "./socket_options.ts";
import { WaitQueue } from "./wait_queue.ts";

/** Approximate number of messages of one peer that are read before timers and other connections are served. */
const messagesPerTurn = 1000;

/** The part of a connection that its peer uses. */
export interface ZeroMqPeerLink {
  readonly hasRoomToSend: boolean;
  /** Messages, and their bytes, that may not have left this process. */
  readonly inFlight: number;
  readonly inFlightBytes: number;
  send(frames: readonly Uint8Array[], bytes: number): void;
  flush(): void;
  resume(): void;
}

export class ZeroMqPeer {
  /** The identity at a ROUTER, as unique bytes and as the key of a map; empty before. */
  identity: Uint8Array = new Uint8Array(0);
  key = "";
  /** The first frame of its messages at the ROUTER's program, while it has this identity. */
  frame: Uint8Array | null = null;
  /** Number of successful handshakes. */
  connections = 0;
  /** Description from its last handshake. */
  description: ZmtpPeerDescription | null = null;
  /** Callers that wait for room in this queue. */
  readonly senders = new WaitQueue();
  /** Called each time when no received message is left. */
  onAllRead: (() => void) | null = null;
  readonly #options: ResolvedSocketOptions;
  #link: ZeroMqPeerLink | null = null;
  readonly #outbox = new FifoQueue<readonly Uint8Array[]>();
  #outboxBytes = 0;
  #inbox = new FifoQueue<Uint8Array[]>();
  #inboxBytes = 0;
  #isHeldBack = false;
  /** Messages taken since other connections were served. */
  #takenInTurn = 0;
  #isFeeding = false;

  constructor(options: ResolvedSocketOptions) {
    this.#options = options;
  }

  /** Connection after the handshake; null while there is none. */
  get link(): ZeroMqPeerLink | null {
    return this.#link;
  }

  /** The number of messages that are not known to be sent. */
  get unsent(): number {
    return this.#outbox.length + (this.#link?.inFlight ?? 0);
  }

  /** Number of received messages that were not taken. */
  get length(): number {
    return this.#inbox.length;
  }

  /** Whether the peer must wait until the program has taken more messages. */
  get isHeldBack(): boolean {
    return this.#isHeldBack;
  }

  /** Attaches a new connection. Unread messages of earlier ones count; otherwise each connection would add more. */
  attach(link: ZeroMqPeerLink): void {
    this.#link = link;
    this.#isHeldBack = this.#isAtHighWater();
    this.sendQueued();
  }

  /** Detaches the lost connection. Returns how many messages may be lost with it. */
  detach(): number {
    const lost = this.#link?.inFlight ?? 0;
    this.#link = null;
    this.#isHeldBack = false;
    return lost;
  }

  /** Accepts a message, or returns false if there is no room. */
  offer(frames: readonly Uint8Array[]): boolean {
    const link = this.#link;
    // The cost of the frames that are sent, not of those that the program gave: without an identity, with an envelope.
    const bytes = countMessageMemoryBytes(frames);
    if (this.#isFull()) {
      // Messages that only wait for the end of the turn use room unnecessarily.
      link?.flush();
      if (this.#isFull()) return false;
    }
    if (link !== null && this.#outbox.length === 0 && link.hasRoomToSend) link.send(frames, bytes);
    else {
      this.#outbox.push(frames);
      this.#outboxBytes += bytes;
    }
    return true;
  }

  /** Passes as many messages to the connection as it accepts. */
  sendQueued(): void {
    const link = this.#link;
    // A link that writes immediately makes room immediately, and would call this method recursively, as deep as the
    // queue is long.
    if (link === null || this.#isFeeding) return;
    this.#isFeeding = true;
    try {
      while (this.#outbox.length > 0 && link.hasRoomToSend) {
        const frames = this.#outbox.shift() as readonly Uint8Array[];
        const bytes = countMessageMemoryBytes(frames);
        this.#outboxBytes -= bytes;
        link.send(frames, bytes);
      }
    } finally {
      this.#isFeeding = false;
    }
  }

  /** Drops the messages that wait to be sent. Returns their number. */
  dropOutbox(): number {
    this.#outboxBytes = 0;
    return this.#outbox.drain().length;
  }

  /** A message has arrived. Returns false to stop receiving. */
  receive(frames: Uint8Array[]): boolean {
    this.#inbox.push(frames);
    this.#inboxBytes += countMessageMemoryBytes(frames);
    if (!this.#isAtHighWater()) return true;
    this.#isHeldBack = true;
    return false;
  }

  /** Takes the oldest message; reading continues when half of the queue is free. */
  shift(): Uint8Array[] | undefined {
    const frames = this.#inbox.shift();
    if (frames === undefined) return undefined;
    this.#inboxBytes -= countMessageMemoryBytes(frames);
    this.#takenInTurn++;
    if (this.#inbox.length === 0) this.onAllRead?.();
    if (this.#isHeldBack) {
      const { receiveHighWater, receiveHighWaterBytes } = this.#options;
      if (this.#inbox.length <= receiveHighWater / 2 && this.#inboxBytes <= receiveHighWaterBytes / 2) {
        this.#isHeldBack = false;
        this.#resume();
      }
    }
    return frames;
  }

  /** Takes over the messages of an earlier connection of the same peer. Only while nothing else is unread here. */
  inherit(before: ZeroMqPeer): void {
    this.#inbox = before.#inbox;
    this.#inboxBytes = before.#inboxBytes;
    before.#inbox = new FifoQueue();
    before.#inboxBytes = 0;
    before.onAllRead?.();
  }

  /** Drops the received messages. Returns their number. */
  dropInbox(): number {
    this.#inboxBytes = 0;
    const { length } = this.#inbox.drain();
    this.onAllRead?.();
    return length;
  }

  /**
   * Resumes reading after the program's loop that takes messages. Many messages must not delay all other connections.
   */
  #resume(): void {
    const resume = () => this.#link?.resume();
    if (this.#takenInTurn < messagesPerTurn) return queueMicrotask(resume);
    this.#takenInTurn = 0;
    setImmediate(resume);
  }

  #isAtHighWater(): boolean {
    const { receiveHighWater, receiveHighWaterBytes } = this.#options;
    return this.#inbox.length >= receiveHighWater || this.#inboxBytes >= receiveHighWaterBytes;
  }

  #isFull(): boolean {
    const { sendHighWater, sendHighWaterBytes } = this.#options;
    return this.unsent >= sendHighWater || this.#outboxBytes + (this.#link?.inFlightBytes ?? 0) >= sendHighWaterBytes;
  }
}

/** Returns the bytes of memory that a message uses, including its frame objects. */
export function countMessageMemoryBytes(frames: readonly Uint8Array[]): number {
  return totalByteLength(frames) + frames.length * frameCostBytes;
}
