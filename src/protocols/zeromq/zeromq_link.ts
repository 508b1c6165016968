/**
 * One connection that speaks ZMTP. Moves bytes between the connection and the ZMTP state machine, sends the messages of
 * one event-loop turn in one write, watches handshake and heartbeats, and attaches the peer to its socket. Owns the
 * connection; a dialer makes a new link after a loss.
 */
import type { Connection, ConnectionHandlers } from "../../base/sockets/connection.ts";
import type { ZmtpMetadata } from "./zmtp/zmtp_metadata.ts";
import type { ZeroMqSocketType } from "./zmtp/socket_type.ts";
import { ZmtpError } from "./zmtp/zmtp_error.ts";
import { ZmtpPeer, type ZmtpPeerDescription, type ZmtpPeerEvents, type ZmtpReceiveOptions } from "./zmtp/zmtp_peer.ts";
import { ConnectionHeartbeat } from "./connection_heartbeat.ts";
import type { ZeroMqSocketCounters } from "./socket_event.ts";
import type { ResolvedZeroMqSocketOptions } from "./socket_options.ts";
import { ZeroMqPeer } from "./zeromq_peer.ts";

/** A peer whose handshake is not complete, for the decision whether to accept it. */
export interface ZeroMqPeerCandidate {
  /** The peer of a `connect`; null for an accepted connection. */
  readonly peer: ZeroMqPeer | null;
  readonly properties: ZmtpMetadata;
  readonly userId: string;
}

/** The methods that links and connections call on their socket. */
export interface ZeroMqPeersHost {
  readonly type: ZeroMqSocketType;
  readonly options: ResolvedZeroMqSocketOptions;
  readonly counters: ZeroMqSocketCounters;
  /** Decides whether to accept a peer. Returns null to accept the peer, or the reason to refuse it. */
  acceptPeer(candidate: ZeroMqPeerCandidate): ZmtpError | null;
  /**
   * Called when a peer begins to exist: after `connect`, even if the peer is not connected yet, or with an accepted
   * connection.
   */
  onPeerAdded(peer: ZeroMqPeer): void;
  /**
   * Called when the peer's handshake is complete. Returns a frame to put before each of the peer's messages, or null.
   * Throws ZmtpError to refuse the peer.
   */
  onPeerReady(peer: ZeroMqPeer, description: ZmtpPeerDescription): Uint8Array | null;
  /** Called when the peer will not come back. The program can still take its received messages. */
  onPeerRemoved(peer: ZeroMqPeer): void;
  /** Called when a message has arrived and the peer's inbox was empty. */
  onFirstMessage(peer: ZeroMqPeer): void;
  /** Called when all messages that arrived together were passed on. */
  onBatchEnd(): void;
  /** Called when the peer may have room for more messages. */
  onRoom(peer: ZeroMqPeer): void;
}

/** The methods that links call on their owner. */
export interface ZeroMqLinkOwner {
  readonly host: ZeroMqPeersHost;
  /** Called when a link was created and is being connected. */
  onDial(link: ZeroMqLink): void;
  /** Called when a waiting message was sent, or will never be sent. */
  onSettled(): void;
  /** Called when a peer has connected to a bound endpoint. */
  add(peer: ZeroMqPeer): void;
  /** Called when an accepted peer has left and will not come back. */
  remove(peer: ZeroMqPeer): void;
  /**
   * Called after each chunk with the number of bytes of an incomplete message that an accepted connection holds.
   * `isNext` is true if a new message has begun since the previous call.
   */
  onHeldBytes(link: ZeroMqLink, bytes: number, isNext: boolean): void;
  /** Called when the handshake of an accepted connection is complete or has failed. */
  onHandshakeEnd(link: ZeroMqLink): void;
  /** Called once when the connection is closed. */
  onClosed(link: ZeroMqLink): void;
}

export interface ZeroMqLinkOptions {
  readonly endpoint: string;
  /** The peer of a `connect`; null for an accepted connection. */
  readonly dialed: DialedZeroMqPeer | null;
}

/** The peer of a `connect`, as its links see it. */
export interface DialedZeroMqPeer {
  readonly peer: ZeroMqPeer;
  /** Called when the link's connection was lost. `wasReady` is true if its handshake had succeeded. */
  handleLoss(wasReady: boolean): void;
}

/** The number of bytes that may wait for the end of the event-loop turn. If more wait, they are written immediately. */
const corkBytesMax = 32 << 10;
/**
 * While this many bytes have not left the process, further messages wait in the queue. They are then not lost with the
 * connection.
 */
const congestedBytes = 256 << 10;
/**
 * The number of microtasks without a send after which waiting bytes are written. A program that sends after an `await`
 * needs up to three microtasks. If each message gets one response, waiting has no advantage and costs a tenth of the
 * round trip.
 */
const idleTurns = { ofMany: 6, ofOne: 1 };
/** How long sending the last bytes of a connection may take, in milliseconds. */
const lastBytesMsMax = 1000;

export class ZeroMqLink implements ConnectionHandlers, ZmtpPeerEvents {
  /** Null for an accepted connection whose handshake has not ended. */
  peer: ZeroMqPeer | null;
  readonly #owner: ZeroMqLinkOwner;
  readonly #host: ZeroMqPeersHost;
  readonly #options: ZeroMqLinkOptions;
  readonly #zmtp: ZmtpPeer;
  readonly #heartbeat: ConnectionHeartbeat;
  #connection: Connection | null = null;
  #stopDeadline: (() => void) | null = null;
  #wasReady = false;
  /** True if this side ends the connection. The end is then not reported as a loss. */
  #isLeaving = false;
  #over = false;
  #closed = false;
  /** Bytes that were received but not read yet. */
  #unread: Uint8Array | null = null;
  /** True if reading is stopped because the peer's inbox is full. */
  #isFull = false;
  /** True if reading is stopped because memory for incomplete messages is short. */
  #isStopped = false;
  /** True if the current chunk has completed a message. */
  #hasCompleted = false;
  #isCorked = false;
  #corkedBytes = 0;
  #idleTurns = 0;
  /**
   * The number of messages sent since bytes were last received. `#sendsMany` is true if the previous such number was
   * above one.
   */
  #sentSinceHeard = 0;
  #sendsMany = false;
  #inFlight = 0;
  #inFlightBytes = 0;

  constructor(owner: ZeroMqLinkOwner, options: ZeroMqLinkOptions) {
    const { host } = owner;
    this.#owner = owner;
    this.#host = host;
    this.#options = options;
    this.peer = options.dialed?.peer ?? null;
    this.#zmtp = new ZmtpPeer({
      ...host.options,
      socketType: host.type,
      acceptPeer: (properties, userId) => host.acceptPeer({ peer: this.peer, properties, userId }),
    }, this);
    this.#heartbeat = new ConnectionHeartbeat(host.options, {
      sendPing: (ttlMs) => {
        this.#zmtp.ping(ttlMs);
        this.flush();
      },
      onDead: (why) => this.#fail(new ZmtpError("SILENT", why)),
    });
  }

  get isAccepted(): boolean {
    return this.#options.dialed === null;
  }

  get address(): string {
    return this.#connection?.peer ?? "";
  }

  /** True if messages can be sent now. False while too many bytes wait for a peer that does not read. */
  get hasRoomToSend(): boolean {
    return this.#zmtp.isReady && !this.#over && this.#unsentBytes < congestedBytes;
  }

  /** The number of sent messages that may not have left this process. */
  get inFlight(): number {
    return this.#inFlight;
  }

  get inFlightBytes(): number {
    return this.#inFlightBytes;
  }

  /** Takes over an established connection: sends the greeting and starts the timer of the handshake. */
  attach(connection: Connection): void {
    if (this.#closed) return connection.destroy(); // the peer left before the link was attached
    const { clock, handshakeMsMax } = this.#host.options;
    this.#connection = connection;
    const fail = () => {
      this.#fail(new ZmtpError("SILENT", `The peer did not complete the handshake within ${handshakeMsMax} ms`));
    };
    // A second timer of 0 ms, before the handshake fails, lets a process that was suspended read the bytes that have
    // arrived.
    this.#stopDeadline = clock.startTimer(handshakeMsMax, () => this.#stopDeadline = clock.startTimer(0, fail));
    this.flush();
  }

  /**
   * Sends a message. The caller must check `hasRoomToSend` first. `bytes` is the memory that the message uses. The
   * frames must not be changed afterwards.
   */
  send(frames: readonly Uint8Array[], bytes: number): void {
    this.#zmtp.send(frames);
    this.#sentSinceHeard++;
    this.#inFlight++;
    this.#inFlightBytes += bytes;
    this.#cork();
  }

  flush(): void {
    const connection = this.#connection;
    if (connection === null || this.#closed) return;
    if (this.#zmtp.output.pendingBytes > 0) {
      this.#zmtp.output.flush((bytes) => {
        connection.write(bytes);
        return connection.bufferedBytes > 0;
      });
    }
    if (connection.bufferedBytes === 0) this.#noteAllSent();
  }

  /** Reads again after the peer's inbox was full. */
  resume(): void {
    this.#isFull = false;
    this.#readUnread();
  }

  /** Stops reading until `resumeReading` is called. */
  stopReading(): void {
    this.#isStopped = true;
    if (!this.#over) this.#pause();
  }

  resumeReading(): void {
    this.#isStopped = false;
    this.#readUnread();
  }

  /** Ends the connection because this side wants to: in an orderly way, or immediately. */
  leave(how: "end" | "destroy"): void {
    this.#isLeaving = true;
    this[how]();
  }

  /** Sends the waiting bytes and closes the connection, within a limited time. */
  end(reason: Error | null = null): void {
    const connection = this.#connection;
    if (connection === null) return this.onClosed(reason);
    if (this.#closed) return;
    this.flush();
    this.#finish(reason);
    connection.resume();
    connection.end();
    this.#stopDeadline?.();
    this.#stopDeadline = this.#host.options.clock.startTimer(lastBytesMsMax, () => connection.destroy());
  }

  destroy(reason: Error | null = null): void {
    if (this.#connection === null) return this.onClosed(reason);
    this.#finish(reason);
    this.#connection.destroy();
  }

  /** The connection calls the following methods. */
  onData(chunk: Uint8Array): void {
    if (this.#over) return;
    this.#heartbeat.noteReceived();
    this.#sendsMany = this.#sentSinceHeard > 1;
    this.#sentSinceHeard = 0;
    if (this.#unread !== null) return this.#keepUnread(chunk); // these bytes were on their way when reading was stopped
    const rest = this.#read(chunk);
    if (rest !== null) this.#keepUnread(rest);
  }

  onDrained(): void {
    this.#noteAllSent();
  }

  onClosed(error: Error | null): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#finish(error);
    this.#stopDeadline?.();
    this.#owner.onClosed(this);
  }

  /** The ZMTP state machine calls the following methods. */
  onReady(description: ZmtpPeerDescription): ZmtpReceiveOptions {
    this.#stopDeadline?.();
    this.#stopDeadline = null;
    const { options, counters } = this.#host;
    const { endpoint, dialed } = this.#options;
    const peer = this.peer ?? new ZeroMqPeer(options);
    const prefix = this.#host.onPeerReady(peer, description);
    peer.description = description;
    this.#wasReady = true;
    if (dialed === null) {
      this.peer = peer;
      this.#owner.onHandshakeEnd(this);
      this.#owner.add(peer);
    } else if (peer.connections > 0) counters.reconnects++;
    peer.connections++;
    peer.attach(this);
    options.onEvent({ kind: "connected", endpoint, address: this.address, peer: description });
    this.#host.onRoom(peer);
    if (peer.isHeldBack) this.#isFull = true;
    if (!this.#over) this.#heartbeat.start(description.knowsHeartbeats);
    return { prefix, wantsMore: !peer.isHeldBack };
  }

  onMessage(frames: Uint8Array[]): boolean {
    this.#hasCompleted = true;
    if (!this.#over) {
      const peer = this.peer as ZeroMqPeer;
      const wasEmpty = peer.length === 0;
      const wantsMore = peer.receive(frames);
      if (wasEmpty) this.#host.onFirstMessage(peer);
      if (wantsMore) return true;
    }
    this.#isFull = true;
    return false;
  }

  onPing(ttlMs: number): boolean {
    this.#heartbeat.setPeerTtl(ttlMs);
    return this.#unsentBytes < congestedBytes;
  }

  get #mayRead(): boolean {
    return !this.#isFull && !this.#isStopped;
  }

  get #unsentBytes(): number {
    return this.#zmtp.output.pendingBytes + (this.#connection?.bufferedBytes ?? 0);
  }

  /** Reads a chunk. Returns a view of the bytes that must be read later; null if all bytes were read. */
  #read(chunk: Uint8Array): Uint8Array | null {
    let at = 0;
    let failure: Error | null = null;
    try {
      at = this.#zmtp.push(chunk);
    } catch (error) {
      failure = error as Error;
    }
    this.#host.onBatchEnd();
    if (this.#over) return null;
    if (failure !== null) {
      this.#fail(failure);
      return null;
    }
    if (this.#zmtp.output.pendingBytes > 0) this.#cork();
    if (this.#isFull) this.#pause();
    const isNext = this.#hasCompleted;
    this.#hasCompleted = false;
    if (this.isAccepted) this.#owner.onHeldBytes(this, this.#zmtp.heldBytes, isNext);
    return at < chunk.byteLength ? chunk.subarray(at) : null;
  }

  #pause(): void {
    this.#heartbeat.ignoresSilence = true;
    this.#connection?.pause();
  }

  /** Appends a copy of the bytes, which belong to the caller, to the unread bytes. */
  #keepUnread(bytes: Uint8Array): void {
    const before = this.#unread;
    const keptBytes = before?.byteLength ?? 0;
    this.#unread = new Uint8Array(keptBytes + bytes.byteLength);
    if (before !== null) this.#unread.set(before);
    this.#unread.set(bytes, keptBytes);
  }

  #readUnread(): void {
    if (this.#over || !this.#mayRead) return;
    const unread = this.#unread;
    this.#unread = null;
    // A view of the rest is enough, because these bytes belong to this side.
    if (unread !== null) this.#unread = this.#read(unread);
    if (this.#over || !this.#mayRead) return;
    this.#heartbeat.ignoresSilence = false;
    this.#connection?.resume();
  }

  /**
   * Delays writing to the end of this event-loop turn. Waiting for a single microtask would be too short: a program
   * that sends, awaits and sends again would need one write for each message.
   */
  #cork(): void {
    if (this.#zmtp.output.pendingBytes >= corkBytesMax) return this.flush();
    if (this.#isCorked) return;
    this.#isCorked = true;
    this.#corkedBytes = 0;
    queueMicrotask(this.#flushIfIdle);
  }

  readonly #flushIfIdle = (): void => {
    const { pendingBytes: bytes } = this.#zmtp.output;
    if (bytes === this.#corkedBytes) this.#idleTurns++;
    else {
      this.#corkedBytes = bytes;
      this.#idleTurns = 0;
    }
    const patience = this.#sendsMany || this.#sentSinceHeard > 1 ? idleTurns.ofMany : idleTurns.ofOne;
    if (bytes > 0 && this.#idleTurns < patience) return queueMicrotask(this.#flushIfIdle);
    this.#isCorked = false;
    this.flush();
  };

  #noteAllSent(): void {
    const { pendingBytes: bytes } = this.#zmtp.output;
    if (bytes > 0) return;
    this.#inFlight = 0;
    this.#inFlightBytes = 0;
    const { peer } = this;
    if (this.#over || peer === null || peer.link !== this) return;
    peer.sendQueued();
    this.#host.onRoom(peer);
    if (peer.unsent === 0) this.#owner.onSettled();
  }

  #fail(reason: Error): void {
    if (!this.#over) this.end(reason);
  }

  #finish(reason: Error | null): void {
    if (this.#over) return;
    this.#over = true;
    this.#stopDeadline?.();
    this.#stopDeadline = null;
    this.#heartbeat.stop();
    this.#zmtp.destroy();
    this.#unread = null;
    if (this.isAccepted) {
      this.#owner.onHandshakeEnd(this);
      this.#owner.onHeldBytes(this, 0, true);
    }
    if (this.#wasReady) this.#losePeer(reason);
    else if (!this.#isLeaving) this.#reportFailedHandshake(reason);
    if (!this.#isLeaving) this.#options.dialed?.handleLoss(this.#wasReady);
    this.#owner.onSettled();
  }

  #losePeer(reason: Error | null): void {
    const peer = this.peer as ZeroMqPeer;
    this.#host.counters.dropped += peer.detach();
    const { endpoint } = this.#options;
    this.#host.options.onEvent({ kind: "disconnected", endpoint, address: this.address, reason });
    if (this.isAccepted) this.#owner.remove(peer);
  }

  #reportFailedHandshake(error: Error | null): void {
    const { counters, options } = this.#host;
    const reason = error ?? new ZmtpError("CLOSED", "The peer closed the connection before the end of the handshake");
    counters.handshakesFailed++;
    const { endpoint } = this.#options;
    options.onEvent({ kind: "handshakeFailed", endpoint, address: this.address, reason });
  }
}
