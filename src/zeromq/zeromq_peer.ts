/**
 * One peer of a socket: the messages that wait to go to it and those that have come from it (RFC 28: "double queue"). The peer of
 * a `connect` lives from there to `disconnect`, through all its connections; one that came to a bound endpoint as long as
 * its connection.
 */
import { setImmediate } from "node:timers";
import { FifoQueue } from "../support/fifo_queue.ts";
import { frameCostBytes } from "../wire/zmtp/zmtp_limits.ts";
import type { PeerDescription } from "../wire/zmtp/zmtp_peer.ts";
import type { Inbox } from "./inbound_fair_queue.ts";
import type { Link } from "./zeromq_link.ts";
import type { ResolvedOptions } from "./socket_options.ts";
import { Waiting } from "./waiting_senders.ts";

/** Messages of one peer, about, that are read before timers and other connections have their turn. */
const messagesPerTurn = 1000;

export class Peer implements Inbox {
  readonly endpoint: string;
  /** What a ROUTER knows it by, as bytes that are nobody else's and as the key of a map; empty before. */
  identity: Uint8Array = new Uint8Array(0);
  key = "";
  /** What its messages begin with at the ROUTER's program, while it is known by that. */
  frame: Uint8Array | null = null;
  /** How often its handshake has succeeded. */
  connections = 0;
  /** As of its last handshake. */
  description: PeerDescription | null = null;
  /** Those who wait for room in this queue. */
  readonly senders = new Waiting();
  /** Called each time when nothing received is left to be taken. */
  whenRead: (() => void) | null = null;
  readonly #options: ResolvedOptions;
  #link: Link | null = null;
  readonly #outbox = new FifoQueue<readonly Uint8Array[]>();
  #outboxBytes = 0;
  #inbox = new FifoQueue<Uint8Array[]>();
  #inboxBytes = 0;
  #isHeldBack = false;
  /** Messages taken since others were last given a turn. */
  #taken = 0;
  #isFeeding = false;

  constructor(endpoint: string, options: ResolvedOptions) {
    this.endpoint = endpoint;
    this.#options = options;
  }

  /** Its connection, handshake done; null while there is none. */
  get link(): Link | null {
    return this.#link;
  }

  /** Messages, not yet sent as far as is known. */
  get unsent(): number {
    return this.#outbox.length + (this.#link?.inFlight ?? 0);
  }

  /** Messages received and not yet taken. */
  get length(): number {
    return this.#inbox.length;
  }

  /** No message is wanted until more were taken. */
  get isHeldBack(): boolean {
    return this.#isHeldBack;
  }

  /** A new connection. What earlier ones have brought, and nobody has taken, counts: otherwise each would bring more. */
  attach(link: Link): void {
    this.#link = link;
    this.#isHeldBack = this.#isAtMark();
    this.feed();
  }

  /** The connection is lost. Returns how many messages may be lost with it. */
  detach(): number {
    const lost = this.#link?.inFlight ?? 0;
    this.#link = null;
    this.#isHeldBack = false;
    return lost;
  }

  /** Takes a message, or says that there is no room. */
  offer(frames: readonly Uint8Array[]): boolean {
    const link = this.#link;
    // Of what travels, not of what the program gave: an identity does not go along, an envelope does.
    const bytes = costOf(frames);
    if (this.#isFull()) {
      // What is only waiting for the end of the turn takes room that it does not need.
      link?.flush();
      if (this.#isFull()) return false;
    }
    if (link !== null && this.#outbox.length === 0 && link.takesMore) link.send(frames, bytes);
    else {
      this.#outbox.push(frames);
      this.#outboxBytes += bytes;
    }
    return true;
  }

  /** Hands over to the connection what it takes. */
  feed(): void {
    const link = this.#link;
    // What the link writes at once makes room at once, and would call for this again from within: as deep as the queue is long.
    if (link === null || this.#isFeeding) return;
    this.#isFeeding = true;
    try {
      while (this.#outbox.length > 0 && link.takesMore) {
        const frames = this.#outbox.shift() as readonly Uint8Array[];
        const bytes = costOf(frames);
        this.#outboxBytes -= bytes;
        link.send(frames, bytes);
      }
    } finally {
      this.#isFeeding = false;
    }
  }

  /** Throws away what waits to be sent. Returns how many messages that were. */
  dropOutbox(): number {
    this.#outboxBytes = 0;
    return this.#outbox.drain().length;
  }

  /** A message has come. False when no more are wanted. */
  receive(frames: Uint8Array[]): boolean {
    this.#inbox.push(frames);
    this.#inboxBytes += costOf(frames);
    if (!this.#isAtMark()) return true;
    this.#isHeldBack = true;
    return false;
  }

  /** Takes the oldest message; reading goes on when half of the queue is free. */
  shift(): Uint8Array[] | undefined {
    const frames = this.#inbox.shift();
    if (frames === undefined) return undefined;
    this.#inboxBytes -= costOf(frames);
    this.#taken++;
    if (this.#inbox.length === 0) this.whenRead?.();
    if (this.#isHeldBack) {
      const { receiveHighWater, receiveHighWaterBytes } = this.#options;
      if (this.#inbox.length <= receiveHighWater / 2 && this.#inboxBytes <= receiveHighWaterBytes / 2) {
        this.#isHeldBack = false;
        this.#resume();
      }
    }
    return frames;
  }

  /** Takes over what an earlier connection of the same peer has brought. Only while nothing else is unread here. */
  inherit(before: Peer): void {
    this.#inbox = before.#inbox;
    this.#inboxBytes = before.#inboxBytes;
    before.#inbox = new FifoQueue();
    before.#inboxBytes = 0;
    before.whenRead?.();
  }

  /** Throws away what has come. Returns how many messages that were. */
  dropInbox(): number {
    this.#inboxBytes = 0;
    const { length } = this.#inbox.drain();
    this.whenRead?.();
    return length;
  }

  /** Not from within the loop of whoever takes messages; and a heap of them must not keep everybody else waiting. */
  #resume(): void {
    const resume = () => this.#link?.resume();
    if (this.#taken < messagesPerTurn) return queueMicrotask(resume);
    this.#taken = 0;
    setImmediate(resume);
  }

  #isAtMark(): boolean {
    const { receiveHighWater, receiveHighWaterBytes } = this.#options;
    return this.#inbox.length >= receiveHighWater || this.#inboxBytes >= receiveHighWaterBytes;
  }

  #isFull(): boolean {
    const { sendHighWater, sendHighWaterBytes } = this.#options;
    return this.unsent >= sendHighWater || this.#outboxBytes + (this.#link?.inFlightBytes ?? 0) >= sendHighWaterBytes;
  }
}

/** What a message costs in memory, its frames themselves included, in bytes. */
export function costOf(frames: readonly Uint8Array[]): number {
  return bytesOf(frames) + frames.length * frameCostBytes;
}

/** The length of all frames of a message. */
export function bytesOf(frames: readonly Uint8Array[]): number {
  let bytes = 0;
  for (let index = 0; index < frames.length; index++) bytes += (frames[index] as Uint8Array).byteLength;
  return bytes;
}
