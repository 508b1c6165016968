/**
 * One connection that speaks ZMTP: pumps between a byte stream and the state machine, sends the messages of one turn in one
 * write, watches handshake and heartbeats. Owns the connection; what becomes of the peer when it is lost is the host's business.
 */
import { messageOf } from "../errors.ts";
import type { Connection, ConnectionHandlers } from "../sockets/connection.ts";
import type { AuthenticationRequest, AuthenticationVerdict } from "../wire/zmtp/security_mechanism.ts";
import type { Metadata } from "../wire/zmtp/zmtp_metadata.ts";
import type { SocketType } from "../wire/zmtp/socket_type.ts";
import { ZmtpError } from "../wire/zmtp/zmtp_error.ts";
import { type PeerDescription, type Welcome, ZmtpPeer, type ZmtpPeerEvents } from "../wire/zmtp/zmtp_peer.ts";
import { Heart } from "./connection_heartbeat.ts";
import type { ResolvedOptions } from "./socket_options.ts";

/** Who a link works for. Nothing is called after `over` but `gone` and `free`. */
export interface LinkHost {
  /** Whether a peer with these properties may come in; null, or why not. `userId` is null as long as it is not known. */
  accept(properties: Metadata, userId: string | null): ZmtpError | null;
  /** Messages can be sent, and come. Refuses the peer by throwing ZmtpError. */
  ready(peer: PeerDescription): Welcome;
  /** False: no more until `resume`. */
  message(frames: Uint8Array[]): boolean;
  /**
   * After each chunk: what is not complete of a message costs this much memory, in bytes. `isNext`: of another message than
   * the last time.
   */
  held(bytes: number, isNext: boolean): void;
  /** All messages that came together have been handed over. */
  turn(): void;
  /** There may be room for more to send. */
  room(): void;
  /** No more messages, in either direction; null: the peer ended it in order. Called once. */
  over(reason: Error | null): void;
  /** The connection is closed. Called once. */
  gone(): void;
  /** And nobody decides about the peer any more, either. Called once, last. */
  free(): void;
}

export interface LinkOptions {
  readonly socketType: SocketType;
  readonly settings: ResolvedOptions;
  /** The connection came to a bound endpoint. */
  readonly isAccepted: boolean;
  /** See MechanismContext. */
  readonly speaksLast: boolean;
}

/** What waits to be sent in one turn goes out at once from here on. */
const corkBytesMax = 32 << 10;
/** While more than this has not left the process, messages wait as they are, and none is lost with the connection. */
const congestedBytes = 256 << 10;
/**
 * Turns of the microtask queue in which nothing was sent before what is corked goes out: an `await` takes up to three. Where
 * one message is answered by one, waiting is of no use and costs a tenth of the round trip.
 */
const idleTurns = { ofMany: 6, ofOne: 1 };
/** What was said last has so long to leave. */
const goodbyeMsMax = 1000;

export class Link implements ConnectionHandlers, ZmtpPeerEvents {
  readonly #host: LinkHost;
  readonly #options: LinkOptions;
  readonly #zmtp: ZmtpPeer;
  readonly #heart: Heart;
  #connection: Connection | null = null;
  #stopDeadline: (() => void) | null = null;
  #over = false;
  #closed = false;
  /** Received and not read yet: somebody wanted no more, or an authentication is under way. */
  #unread: Uint8Array | null = null;
  /** The host wants no more at present. */
  #isFull = false;
  #isAuthenticating = false;
  /** Memory for messages that are not complete is short. */
  #isStopped = false;
  /** A message was completed by the chunk that is read. */
  #hasCompleted = false;
  #isCorked = false;
  #corkedBytes = 0;
  #idleTurns = 0;
  /** Messages sent since something was received, and whether there were several of them the last time. */
  #sentSinceHeard = 0;
  #sendsMany = false;
  #inFlight = 0;
  #inFlightBytes = 0;

  constructor(host: LinkHost, options: LinkOptions, peerAddress: string) {
    this.#host = host;
    this.#options = options;
    const { socketType, settings, isAccepted, speaksLast } = options;
    const { mechanism } = settings;
    this.#zmtp = new ZmtpPeer({
      socketType,
      identity: settings.identity,
      mechanism,
      limits: settings.limits,
      peerAddress,
      isAuthenticated: settings.authenticate !== null && (isAccepted || mechanism.asServer),
      speaksLast,
      acceptPeer: (properties, userId) => host.accept(properties, userId),
    }, this);
    this.#heart = new Heart(settings, {
      ping: (ttlMs) => {
        this.#zmtp.ping(ttlMs);
        this.flush();
      },
      dead: (why) => this.#fail(new ZmtpError("SILENT", why)),
    });
  }

  /** The other end of the connection, for messages. */
  get address(): string {
    return this.#connection?.peer ?? "";
  }

  get isReady(): boolean {
    return this.#zmtp.isReady && !this.#over;
  }

  /** Nobody has decided yet whether the peer may come in. */
  get isAuthenticating(): boolean {
    return this.#isAuthenticating;
  }

  /** Messages can be handed over without piling up in front of a peer that does not read. */
  get takesMore(): boolean {
    return this.isReady && this.#unsentBytes < congestedBytes;
  }

  /** Messages, and what they cost, that may not have left this process. */
  get inFlight(): number {
    return this.#inFlight;
  }

  get inFlightBytes(): number {
    return this.#inFlightBytes;
  }

  /** The connection is made: greets, and from now on the handshake has its time. */
  attach(connection: Connection): void {
    if (this.#closed) return connection.destroy(); // the peer had gone before anybody had it
    const { clock, handshakeMsMax } = this.#options.settings;
    this.#connection = connection;
    const fail = () => {
      this.#fail(new ZmtpError("SILENT", `The peer has not ended the handshake within ${handshakeMsMax} ms`));
    };
    // Where this process stood still, what has come meanwhile is read before the next timer.
    this.#stopDeadline = clock.after(handshakeMsMax, () => this.#stopDeadline = clock.after(0, fail));
    this.flush();
  }

  /** Only while `isReady`. `bytes` is what the message costs. The frames must not be changed any more. */
  send(frames: readonly Uint8Array[], bytes: number): void {
    this.#zmtp.send(frames);
    this.#sentSinceHeard++;
    this.#inFlight++;
    this.#inFlightBytes += bytes;
    this.#cork();
  }

  /** Writes what is corked. */
  flush(): void {
    const connection = this.#connection;
    if (connection === null || this.#closed) return;
    if (this.#zmtp.output.bytes > 0) {
      this.#zmtp.output.flush((bytes) => {
        connection.write(bytes);
        return connection.bufferedBytes > 0;
      });
    }
    if (connection.bufferedBytes === 0) this.#allSent();
  }

  /** The host takes messages again. */
  resume(): void {
    this.#isFull = false;
    this.#readOn();
  }

  /** Reads nothing more before `goOn`. */
  stopReading(): void {
    this.#isStopped = true;
    if (!this.#over) this.#pause();
  }

  goOn(): void {
    this.#isStopped = false;
    this.#readOn();
  }

  /** Says what is left to say, and closes; after a while in any case. */
  end(reason: Error | null = null): void {
    const connection = this.#connection;
    if (connection === null) return this.closed(reason);
    if (this.#closed) return;
    this.flush();
    this.#finish(reason);
    connection.resume();
    connection.end();
    this.#stopDeadline?.();
    this.#stopDeadline = this.#options.settings.clock.after(goodbyeMsMax, () => connection.destroy());
  }

  /** Closes at once. */
  destroy(reason: Error | null = null): void {
    if (this.#connection === null) return this.closed(reason);
    this.#finish(reason);
    this.#connection.destroy();
  }

  /** The rest is called by the connection. */
  data(chunk: Uint8Array): void {
    if (this.#over) return;
    this.#heart.heard();
    this.#sendsMany = this.#sentSinceHeard > 1;
    this.#sentSinceHeard = 0;
    if (this.#unread !== null) return this.#keep(chunk); // it was on its way when reading was stopped
    const rest = this.#read(chunk);
    if (rest !== null) this.#keep(rest);
  }

  drained(): void {
    this.#allSent();
  }

  closed(error: Error | null): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#finish(error);
    this.#stopDeadline?.();
    this.#host.gone();
    if (!this.#isAuthenticating) this.#host.free();
  }

  /** … and by the state machine. */
  ready(peer: PeerDescription): Welcome {
    this.#stopDeadline?.();
    this.#stopDeadline = null;
    const welcome = this.#host.ready(peer);
    if (!welcome.wantsMore) this.#isFull = true;
    if (!this.#over) this.#heart.start(peer.knowsHeartbeats);
    return welcome;
  }

  message(frames: Uint8Array[]): boolean {
    this.#hasCompleted = true;
    if (!this.#over && this.#host.message(frames)) return true;
    this.#isFull = true;
    return false;
  }

  pinged(ttlMs: number): boolean {
    this.#heart.limit(ttlMs);
    return this.#unsentBytes < congestedBytes;
  }

  command(): void {}

  authenticate(request: AuthenticationRequest): void {
    this.#isAuthenticating = true;
    void this.#askAbout(request).then((verdict) => {
      this.#isAuthenticating = false;
      if (this.#closed) this.#host.free();
      if (this.#over) return;
      try {
        this.#zmtp.authenticated(verdict);
      } catch (error) {
        return this.#fail(error as Error);
      }
      this.flush();
      this.#readOn();
    });
  }

  get #takesIn(): boolean {
    return !this.#isFull && !this.#isAuthenticating && !this.#isStopped;
  }

  get #unsentBytes(): number {
    return this.#zmtp.output.bytes + (this.#connection?.bufferedBytes ?? 0);
  }

  async #askAbout(request: AuthenticationRequest): Promise<AuthenticationVerdict> {
    try {
      return await this.#options.settings.authenticate?.(request) ?? { status: 500, text: "nobody decides" };
    } catch (error) {
      return { status: 500, text: messageOf(error) };
    }
  }

  /** Returns what is to be read later, a view; null for nothing. */
  #read(chunk: Uint8Array): Uint8Array | null {
    let at = 0;
    let failure: Error | null = null;
    try {
      at = this.#zmtp.push(chunk);
    } catch (error) {
      failure = error as Error;
    }
    this.#host.turn();
    if (this.#over) return null;
    if (failure !== null) {
      this.#fail(failure);
      return null;
    }
    if (this.#zmtp.output.bytes > 0) this.#cork();
    if (this.#isFull || this.#isAuthenticating) this.#pause();
    const isNext = this.#hasCompleted;
    this.#hasCompleted = false;
    this.#host.held(this.#zmtp.heldBytes, isNext);
    return at < chunk.byteLength ? chunk.subarray(at) : null;
  }

  #pause(): void {
    this.#heart.isDeaf = true;
    this.#connection?.pause();
  }

  /** Copies what is somebody else's behind what is there already. */
  #keep(bytes: Uint8Array): void {
    const before = this.#unread;
    const keptBytes = before?.byteLength ?? 0;
    this.#unread = new Uint8Array(keptBytes + bytes.byteLength);
    if (before !== null) this.#unread.set(before);
    this.#unread.set(bytes, keptBytes);
  }

  #readOn(): void {
    if (this.#over || !this.#takesIn) return;
    const unread = this.#unread;
    this.#unread = null;
    // This side's own: a view will do, as each copy of the rest would be as long as all of it.
    if (unread !== null) this.#unread = this.#read(unread);
    if (this.#over || !this.#takesIn) return;
    this.#heart.isDeaf = false;
    this.#connection?.resume();
  }

  /**
   * Waits for the end of this turn of the program. One microtask would be too soon: whoever sends, awaits and sends again
   * would pay for a write each time.
   */
  #cork(): void {
    if (this.#zmtp.output.bytes >= corkBytesMax) return this.flush();
    if (this.#isCorked) return;
    this.#isCorked = true;
    this.#corkedBytes = 0;
    queueMicrotask(this.#look);
  }

  readonly #look = (): void => {
    const { bytes } = this.#zmtp.output;
    if (bytes === this.#corkedBytes) this.#idleTurns++;
    else {
      this.#corkedBytes = bytes;
      this.#idleTurns = 0;
    }
    const patience = this.#sendsMany || this.#sentSinceHeard > 1 ? idleTurns.ofMany : idleTurns.ofOne;
    if (bytes > 0 && this.#idleTurns < patience) return queueMicrotask(this.#look);
    this.#isCorked = false;
    this.flush();
  };

  #allSent(): void {
    const { bytes } = this.#zmtp.output;
    if (bytes > 0) return;
    this.#inFlight = 0;
    this.#inFlightBytes = 0;
    if (!this.#over) this.#host.room();
  }

  #fail(reason: Error): void {
    if (!this.#over) this.end(reason);
  }

  #finish(reason: Error | null): void {
    if (this.#over) return;
    this.#over = true;
    this.#stopDeadline?.();
    this.#stopDeadline = null;
    this.#heart.stop();
    this.#zmtp.destroy();
    this.#unread = null;
    this.#host.over(reason);
  }
}
