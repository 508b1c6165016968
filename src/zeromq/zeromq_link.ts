/**
 * One connection that speaks ZMTP: moves bytes between a stream and the state machine, sends the messages of one turn
 * in one write, and watches handshake and heartbeats. Owns the connection; the host decides what happens to the peer
 * after a loss.
 */
import type { Connection, ConnectionHandlers } from "../sockets/connection.ts";
import type { Metadata } from "../wire/zmtp/zmtp_metadata.ts";
import type { SocketType } from "../wire/zmtp/socket_type.ts";
import { ZmtpError } from "../wire/zmtp/zmtp_error.ts";
import { type PeerDescription, type ReceiveOptions, ZmtpPeer, type ZmtpPeerEvents } from "../wire/zmtp/zmtp_peer.ts";
import { ConnectionHeartbeat } from "./connection_heartbeat.ts";
import type { ResolvedOptions } from "./socket_options.ts";

/** The owner of a link. After `onEnd` only `onClosed` is called. */
export interface LinkHost {
  /** Returns null if a peer with these properties is accepted, or why not. */
  acceptPeer(properties: Metadata, userId: string): ZmtpError | null;
  /** Messages can be sent and received. Throws ZmtpError to refuse the peer. */
  onReady(peer: PeerDescription): ReceiveOptions;
  /** Returns false to stop receiving until `resume`. */
  onMessage(frames: Uint8Array[]): boolean;
  /**
   * Called after each chunk with the bytes of memory of the incomplete message. `isNext`: of another message than
   * before.
   */
  onHeldBytes(bytes: number, isNext: boolean): void;
  /** All messages that arrived together were delivered. */
  onBatchEnd(): void;
  /** There may be room to send more. */
  onRoom(): void;
  /** No more messages in either direction; null after an orderly end by the peer. Called once. */
  onEnd(reason: Error | null): void;
  /** The connection is closed. Called once. */
  onClosed(): void;
}

export interface LinkOptions {
  readonly socketType: SocketType;
  readonly settings: ResolvedOptions;
}

/** Bytes: from this amount on, waiting messages of one turn are written immediately. */
const corkBytesMax = 32 << 10;
/**
 * While more bytes than this have not left the process, messages wait unencoded, and are not lost with the connection.
 */
const congestedBytes = 256 << 10;
/**
 * Turns of the microtask queue without a send before corked bytes are written: an `await` takes up to three. If each
 * message gets one response, waiting has no use and costs a tenth of the round trip.
 */
const idleTurns = { ofMany: 6, ofOne: 1 };
/** Milliseconds that the last bytes have to be sent. */
const lastBytesMsMax = 1000;

export class Link implements ConnectionHandlers, ZmtpPeerEvents {
  readonly #host: LinkHost;
  readonly #options: LinkOptions;
  readonly #zmtp: ZmtpPeer;
  readonly #heartbeat: ConnectionHeartbeat;
  #connection: Connection | null = null;
  #stopDeadline: (() => void) | null = null;
  #over = false;
  #closed = false;
  /** Bytes received and not read yet: the host has stopped. */
  #unread: Uint8Array | null = null;
  /** The host wants no messages at present. */
  #isFull = false;
  /** Memory for incomplete messages is short. */
  #isStopped = false;
  /** The current chunk has completed a message. */
  #hasCompleted = false;
  #isCorked = false;
  #corkedBytes = 0;
  #idleTurns = 0;
  /** Messages sent since something was received, and whether there were several the last time. */
  #sentSinceHeard = 0;
  #sendsMany = false;
  #inFlight = 0;
  #inFlightBytes = 0;

  constructor(host: LinkHost, options: LinkOptions) {
    this.#host = host;
    this.#options = options;
    const { socketType, settings } = options;
    this.#zmtp = new ZmtpPeer({
      socketType,
      identity: settings.identity,
      mechanism: settings.mechanism,
      limits: settings.limits,
      acceptPeer: (properties, userId) => host.acceptPeer(properties, userId),
    }, this);
    this.#heartbeat = new ConnectionHeartbeat(settings, {
      sendPing: (ttlMs) => {
        this.#zmtp.ping(ttlMs);
        this.flush();
      },
      onDead: (why) => this.#fail(new ZmtpError("SILENT", why)),
    });
  }

  /** Address of the peer, for messages. */
  get address(): string {
    return this.#connection?.peer ?? "";
  }

  get isReady(): boolean {
    return this.#zmtp.isReady && !this.#over;
  }

  /** True if messages can be sent without accumulating in front of a peer that does not read. */
  get hasRoomToSend(): boolean {
    return this.isReady && this.#unsentBytes < congestedBytes;
  }

  /** Messages, and their bytes, that may not have left this process. */
  get inFlight(): number {
    return this.#inFlight;
  }

  get inFlightBytes(): number {
    return this.#inFlightBytes;
  }

  /** The connection is established: sends the greeting and starts the timer of the handshake. */
  attach(connection: Connection): void {
    if (this.#closed) return connection.destroy(); // the peer left before the link was attached
    const { clock, handshakeMsMax } = this.#options.settings;
    this.#connection = connection;
    const fail = () => {
      this.#fail(new ZmtpError("SILENT", `The peer did not complete the handshake within ${handshakeMsMax} ms`));
    };
    // If this process was suspended, bytes that arrived meanwhile are read before the next timer.
    this.#stopDeadline = clock.startTimer(handshakeMsMax, () => this.#stopDeadline = clock.startTimer(0, fail));
    this.flush();
  }

  /** Sends a message. Only while `isReady`. `bytes` is its cost. The frames must not be changed afterwards. */
  send(frames: readonly Uint8Array[], bytes: number): void {
    this.#zmtp.send(frames);
    this.#sentSinceHeard++;
    this.#inFlight++;
    this.#inFlightBytes += bytes;
    this.#cork();
  }

  /** Writes corked bytes. */
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

  /** The host accepts messages again. */
  resume(): void {
    this.#isFull = false;
    this.#readUnread();
  }

  /** Reads nothing more before `resumeReading`. */
  stopReading(): void {
    this.#isStopped = true;
    if (!this.#over) this.#pause();
  }

  resumeReading(): void {
    this.#isStopped = false;
    this.#readUnread();
  }

  /** Sends what is left and closes, after a limited time in any case. */
  end(reason: Error | null = null): void {
    const connection = this.#connection;
    if (connection === null) return this.onClosed(reason);
    if (this.#closed) return;
    this.flush();
    this.#finish(reason);
    connection.resume();
    connection.end();
    this.#stopDeadline?.();
    this.#stopDeadline = this.#options.settings.clock.startTimer(lastBytesMsMax, () => connection.destroy());
  }

  /** Closes immediately. */
  destroy(reason: Error | null = null): void {
    if (this.#connection === null) return this.onClosed(reason);
    this.#finish(reason);
    this.#connection.destroy();
  }

  /** The following methods are called by the connection. */
  onData(chunk: Uint8Array): void {
    if (this.#over) return;
    this.#heartbeat.noteReceived();
    this.#sendsMany = this.#sentSinceHeard > 1;
    this.#sentSinceHeard = 0;
    if (this.#unread !== null) return this.#keepUnread(chunk); // bytes that were on their way when reading was stopped
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
    this.#host.onClosed();
  }

  /** … and by the state machine. */
  onReady(peer: PeerDescription): ReceiveOptions {
    this.#stopDeadline?.();
    this.#stopDeadline = null;
    const receiving = this.#host.onReady(peer);
    if (!receiving.wantsMore) this.#isFull = true;
    if (!this.#over) this.#heartbeat.start(peer.knowsHeartbeats);
    return receiving;
  }

  onMessage(frames: Uint8Array[]): boolean {
    this.#hasCompleted = true;
    if (!this.#over && this.#host.onMessage(frames)) return true;
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

  /** Returns the bytes to read later, as a view; null for none. */
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
    this.#host.onHeldBytes(this.#zmtp.heldBytes, isNext);
    return at < chunk.byteLength ? chunk.subarray(at) : null;
  }

  #pause(): void {
    this.#heartbeat.ignoresSilence = true;
    this.#connection?.pause();
  }

  /** Copies bytes that belong to the caller after the kept ones. */
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
    // These bytes belong to this side, so a view is enough; each copy of the rest would be as long as all of it.
    if (unread !== null) this.#unread = this.#read(unread);
    if (this.#over || !this.#mayRead) return;
    this.#heartbeat.ignoresSilence = false;
    this.#connection?.resume();
  }

  /**
   * Waits for the end of this turn of the event loop. One microtask would be too early: a program that sends, awaits
   * and sends again would pay for a write each time.
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
    if (!this.#over) this.#host.onRoom();
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
    this.#host.onEnd(reason);
  }
}
