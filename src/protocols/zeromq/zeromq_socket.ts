/**
 * The common part of all ZeroMQ sockets: endpoints, waiting, closing. Socket types differ in two points: which peer
 * gets a message, and whether messages start with an identity.
 */
import { BatonError } from "../../base/errors.ts";
import { throwIfAborted } from "../../base/support/abort.ts";
import type { ZeroMqSocketType } from "./zmtp/socket_type.ts";
import type { ZmtpError } from "./zmtp/zmtp_error.ts";
import type { ZmtpPeerDescription } from "./zmtp/zmtp_peer.ts";
import { ZeroMqConnections } from "./zeromq_connections.ts";
import { totalByteLength } from "../../base/wire/bytes.ts";
import type { ZeroMqPeer } from "./zeromq_peer.ts";
import type { ZeroMqPeerCandidate, ZeroMqPeersHost } from "./zeromq_link.ts";
import { newZeroMqSocketCounters, type ZeroMqSocketCounters, type ZeroMqSocketLoad } from "./socket_event.ts";
import {
  type ResolvedZeroMqSocketOptions,
  resolveZeroMqSocketOptions,
  type ZeroMqSocketOptions,
} from "./socket_options.ts";
import { WaitQueue } from "./wait_queue.ts";

export interface ZeroMqSocketWaitOptions {
  /** Ends the wait when it aborts; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** How long `close` waits by default for messages to be sent, in milliseconds. */
const lingerMsDefault = 1000;

export abstract class ZeroMqSocket implements ZeroMqPeersHost, AsyncDisposable {
  abstract readonly type: ZeroMqSocketType;
  readonly counters: ZeroMqSocketCounters = newZeroMqSocketCounters();
  readonly options: ResolvedZeroMqSocketOptions;
  protected readonly connections: ZeroMqConnections;
  /** The peers that have unread messages. */
  protected readonly inbound = new InboundFairQueue();
  readonly #readers = new WaitQueue();
  #isClosed = false;
  #closing: Promise<void> | null = null;

  /** Throws USAGE. */
  constructor(options: ZeroMqSocketOptions = {}) {
    this.options = resolveZeroMqSocketOptions(options);
    this.connections = new ZeroMqConnections(this);
  }

  get load(): ZeroMqSocketLoad {
    return { connections: this.connections.acceptedCount, inputBytes: this.connections.inputBytes };
  }

  /**
   * Accepts connections at `tcp://address:port` or `ipc:///path`. The address `*` means every address; for port 0, the
   * system chooses a port. Resolves with the actual endpoint. Rejects with USAGE, CANNOT_CREATE or the signal's reason.
   */
  async bind(endpoint: string, { signal }: ZeroMqSocketWaitOptions = {}): Promise<string> {
    this.requireOpen();
    return await this.connections.bind(endpoint, signal);
  }

  /**
   * Keeps a connection to `tcp://host:port` or `ipc:///path`, and reconnects after each loss. Returns immediately.
   * Throws USAGE.
   */
  connect(endpoint: string): void {
    this.requireOpen();
    this.connections.connect(endpoint);
  }

  /**
   * Sends a message if there is room. Returns false if the peer's queue is full or there is no peer. The frames must
   * not be changed after they were sent. Throws BAD_DATA if the message exceeds a limit, ZMTP_STATE if sending is not
   * allowed now.
   */
  trySend(frames: readonly Uint8Array[]): boolean {
    this.requireOpen();
    this.check(frames);
    if (!this.offer(frames)) return false;
    this.counters.sent++;
    return true;
  }

  /**
   * Sends a message, and waits for room. Rejects with the errors of `trySend`, or with the signal's reason. After a
   * rejection the message was not accepted.
   */
  async send(frames: readonly Uint8Array[], { signal }: ZeroMqSocketWaitOptions = {}): Promise<void> {
    throwIfAborted(signal);
    if (this.trySend(frames)) return;
    await this.waitToOffer(frames, signal);
    this.counters.sent++;
  }

  /**
   * Waits for the next message and returns it. Rejects with the signal's reason, or ZMTP_STATE if the socket is closed.
   */
  async receive({ signal }: ZeroMqSocketWaitOptions = {}): Promise<Uint8Array[]> {
    throwIfAborted(signal);
    this.requireOpen();
    if (this.#readers.length === 0) {
      const message = this.#take();
      if (message !== undefined) return message;
    }
    return await this.#readers.wait(() => this.#take(), signal);
  }

  /**
   * Returns the messages that have arrived, the oldest first and at most `max`, without waiting. Throws ZMTP_STATE like
   * `receive`.
   */
  receiveReady(max = Infinity): Uint8Array[][] {
    this.requireOpen();
    const messages: Uint8Array[][] = [];
    while (messages.length < max) {
      const message = this.#take();
      if (message === undefined) break;
      messages.push(message);
    }
    return messages;
  }

  /** Yields arrays of messages that have arrived, until the socket is closed. */
  async *batches(): AsyncGenerator<Uint8Array[][], void, void> {
    while (!this.#isClosed) {
      let batch = this.receiveReady();
      if (batch.length === 0) {
        const some = () => {
          const ready = this.receiveReady();
          return ready.length === 0 ? undefined : ready;
        };
        try {
          batch = await this.#readers.wait(some, undefined);
        } catch (error) {
          if (this.#isClosed) return;
          throw error;
        }
      }
      yield batch;
    }
  }

  /**
   * Closes the socket. Waiting callers get ZMTP_STATE, and received messages are dropped. Waits up to `lingerMs` (1000
   * by default) until messages have been sent, plus at most one second. Never rejects.
   */
  close({ lingerMs = lingerMsDefault }: { readonly lingerMs?: number } = {}): Promise<void> {
    if (this.#closing !== null) return this.#closing;
    this.#isClosed = true;
    this.#readers.fail(this.closedError());
    this.failSenders(this.closedError());
    this.inbound.clear();
    this.#closing = this.connections.close(lingerMs);
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * Throws BAD_DATA if a peer with the same limits would refuse the message, or ZMTP_STATE if sending is not allowed
   * now.
   */
  protected check(frames: readonly Uint8Array[]): void {
    this.checkLimits(frames.length, totalByteLength(frames));
  }

  /** Throws BAD_DATA unless a message may have this many frames and bytes. */
  protected checkLimits(count: number, bytes: number): void {
    const { messageBytesMax, framesMax } = this.options.limits;
    if (count > 0 && count <= framesMax && bytes <= messageBytesMax) return;
    if (count === 0) throw new BatonError("BAD_DATA", "Cannot send a message without a frame");
    const message = `Cannot send a message of ${count} frames and ${bytes} bytes: ` +
      `1 to ${framesMax} frames and ${messageBytesMax} bytes are allowed`;
    throw new BatonError("BAD_DATA", message);
  }

  /** Gives a message to a peer. Returns false if there is no room or no peer. */
  protected abstract offer(frames: readonly Uint8Array[]): boolean;
  /** Waits behind earlier callers until `offer` succeeds. Rejects with the signal's reason. */
  protected abstract waitToOffer(frames: readonly Uint8Array[], signal?: AbortSignal): Promise<void>;
  /** Ends the waits of all senders, because the socket is closed. */
  protected abstract failSenders(reason: unknown): void;
  protected take(): Uint8Array[] | undefined {
    return this.inbound.take();
  }

  /** `ZeroMqConnections` calls the following methods. */
  acceptPeer(_newcomer: ZeroMqPeerCandidate): ZmtpError | null {
    return null;
  }
  onPeerAdded(_peer: ZeroMqPeer): void {}
  onPeerReady(_peer: ZeroMqPeer, _description: ZmtpPeerDescription): Uint8Array | null {
    return null;
  }
  onPeerRemoved(_peer: ZeroMqPeer): void {}
  onRoom(_peer: ZeroMqPeer): void {}
  onFirstMessage(peer: ZeroMqPeer): void {
    if (this.#isClosed) peer.dropInbox();
    else this.inbound.add(peer);
  }
  /** Wakes the callers that wait for a message. */
  onBatchEnd(): void {
    if (this.#readers.length > 0) this.#readers.pump();
  }

  protected requireOpen(): void {
    if (this.#isClosed) throw this.closedError();
  }

  protected closedError(): BatonError {
    return new BatonError("ZMTP_STATE", `The ${this.type} socket is closed`);
  }

  #take(): Uint8Array[] | undefined {
    const message = this.take();
    if (message !== undefined) this.counters.received++;
    return message;
  }
}

/** Takes messages from many peers, one message of each peer in turn. RFC 28: "fair-queuing". */
class InboundFairQueue {
  /** The peers with messages, in the order in which they are served. */
  readonly #ring: ZeroMqPeer[] = [];
  #at = 0;
  #last: ZeroMqPeer | null = null;

  /** The peer whose message the last `take` returned. */
  get last(): ZeroMqPeer | null {
    return this.#last;
  }

  /** Adds a peer that has just got its first message. */
  add(peer: ZeroMqPeer): void {
    this.#ring.push(peer);
  }

  /** Returns the first peer with messages for which `isMeant` returns true. */
  find(isMeant: (peer: ZeroMqPeer) => boolean): ZeroMqPeer | undefined {
    return this.#ring.find(isMeant);
  }

  replace(before: ZeroMqPeer, next: ZeroMqPeer): void {
    const index = this.#ring.indexOf(before);
    if (index >= 0) this.#ring[index] = next;
  }

  take(): Uint8Array[] | undefined {
    const peer = this.#ring[this.#at];
    if (peer === undefined) return undefined;
    const message = peer.shift();
    if (peer.length === 0) this.#ring.splice(this.#at, 1);
    else this.#at++;
    if (this.#at >= this.#ring.length) this.#at = 0;
    this.#last = peer;
    return message;
  }

  clear(): void {
    this.#ring.length = 0;
    this.#at = 0;
  }
}
