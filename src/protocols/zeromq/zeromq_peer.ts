/**
 * One peer of a socket, with the queues of its outgoing and incoming messages (RFC 28: "double queue"). The peer of a
 * `connect` outlives its connections; a peer at a bound endpoint exists as long as its connection.
 */
import { FifoQueue } from "../../base/support/fifo_queue.ts";
import { totalByteLength } from "../../base/wire/bytes.ts";
import { zmtpFrameOverheadBytes } from "./zmtp/zmtp_limits.ts";
import type { ZmtpPeerDescription } from "./zmtp/zmtp_peer.ts";
import type { ResolvedZeroMqSocketOptions } from "./socket_options.ts";
import { WaitQueue } from "./wait_queue.ts";

/** The approximate number of messages of one peer that are read before timers and other connections can continue. */
const messagesPerTurn = 1000;

/** The methods that a peer calls on its connection. */
export interface ZeroMqPeerLink {
  readonly hasRoomToSend: boolean;
  /** The number and the bytes of messages that may not have left this process. */
  readonly inFlight: number;
  readonly inFlightBytes: number;
  send(frames: readonly Uint8Array[], bytes: number): void;
  flush(): void;
  resume(): void;
}

export class ZeroMqPeer {
  /** The peer's identity at a ROUTER, as bytes and as the key of a map; empty before the handshake. */
  identity: Uint8Array = new Uint8Array(0);
  key = "";
  /**
   * The frame with the peer's identity that the ROUTER puts before the peer's messages; null while the peer has no
   * identity.
   */
  frame: Uint8Array | null = null;
  connections = 0;
  description: ZmtpPeerDescription | null = null;
  /** Callers that wait for room to send to this peer. */
  readonly senders = new WaitQueue();
  /** Called whenever the program has taken the last received message. */
  onAllRead: (() => void) | null = null;
  readonly #options: ResolvedZeroMqSocketOptions;
  #link: ZeroMqPeerLink | null = null;
  readonly #outbox = new FifoQueue<readonly Uint8Array[]>();
  #outboxBytes = 0;
  #inbox = new FifoQueue<Uint8Array[]>();
  #inboxBytes = 0;
  #isHeldBack = false;
  /** The number of messages taken since other connections could last continue. */
  #takenInTurn = 0;
  #isFeeding = false;

  constructor(options: ResolvedZeroMqSocketOptions) {
    this.#options = options;
  }

  /** The connection, from its handshake on; null while there is no connection. */
  get link(): ZeroMqPeerLink | null {
    return this.#link;
  }

  /** The number of accepted messages that may not have left this process. */
  get unsent(): number {
    return this.#outbox.length + (this.#link?.inFlight ?? 0);
  }

  /** The number of received messages that the program has not taken. */
  get length(): number {
    return this.#inbox.length;
  }

  /** True if reading from the peer waits until the program has taken more messages. */
  get isHeldBack(): boolean {
    return this.#isHeldBack;
  }

  /**
   * Attaches a new connection. Unread messages of earlier connections count towards the limit; otherwise each
   * connection could add more.
   */
  attach(link: ZeroMqPeerLink): void {
    this.#link = link;
    this.#isHeldBack = this.#isAtHighWater();
    this.sendQueued();
  }

  /** Detaches the lost connection. Returns how many messages may be lost. */
  detach(): number {
    const lost = this.#link?.inFlight ?? 0;
    this.#link = null;
    this.#isHeldBack = false;
    return lost;
  }

  /** Accepts a message to send. Returns false if there is no room. */
  offer(frames: readonly Uint8Array[]): boolean {
    const link = this.#link;
    // Counts the frames as they are sent: without a ROUTER's identity frame, and with an envelope.
    const bytes = countMessageMemoryBytes(frames);
    if (this.#isFull()) {
      // Makes room by writing messages that only wait for the end of the event-loop turn.
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

  /** Passes as many waiting messages to the connection as it accepts. */
  sendQueued(): void {
    const link = this.#link;
    // A link that writes immediately calls this method again; without this check, the recursion could be as deep as the
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

  /** Adds a message that has arrived. Returns false if this side must stop receiving. */
  receive(frames: Uint8Array[]): boolean {
    this.#inbox.push(frames);
    this.#inboxBytes += countMessageMemoryBytes(frames);
    if (!this.#isAtHighWater()) return true;
    this.#isHeldBack = true;
    return false;
  }

  /** Removes and returns the oldest message. Resumes reading when half of the inbox is free. */
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

  /** Takes over the unread messages of an earlier connection of the same peer. The inbox must be empty. */
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
   * Resumes reading soon, after the loop in which the program takes messages. After many messages, lets other
   * connections continue first.
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
  return totalByteLength(frames) + frames.length * zmtpFrameOverheadBytes;
}
