/**
 * One ZMTP connection as a state machine: greeting, handshake, traffic. Bytes in, events and bytes out; it has no socket and
 * no clock, and what it holds is limited. RFC 37 (3.1) and 23 (3.0).
 */
import { BatonError } from "../../errors.ts";
import { decodeCommand, type ZmtpCommand } from "./zmtp_command.ts";
import { FrameDecoder } from "./frame_decoder.ts";
import { FrameWriter } from "./frame_writer.ts";
import { encodeGreeting, type Greeting, GreetingReader } from "./zmtp_greeting.ts";
import { decodePing, encodePing, encodePong } from "./heartbeat_command.ts";
import type { ZmtpLimits } from "./zmtp_limits.ts";
import {
  type AuthenticationRequest,
  type AuthenticationVerdict,
  frameFlags,
  type HandshakeStep,
  type Mechanism,
  type MechanismFactory,
} from "./security_mechanism.ts";
import { encodeMetadata, type Metadata, property, propertyNames, propertyText } from "./zmtp_metadata.ts";
import { checkPeer, type SocketType } from "./socket_type.ts";
import { ZmtpError } from "./zmtp_error.ts";

/** What is known of a peer at the end of its handshake. */
export interface PeerDescription {
  /** Its socket type; empty when it has not told. */
  readonly socketType: string;
  /** Empty when it has none. */
  readonly identity: Uint8Array;
  readonly properties: Metadata;
  /** Who it is, by the authentication; empty without one. */
  readonly userId: string;
  /** False for ZMTP 3.0, which has no PING; some that speak it send and answer it all the same. */
  readonly knowsHeartbeats: boolean;
}

/** How a peer is received whose handshake is over. */
export interface Welcome {
  /** What each message received is to begin with (a ROUTER's frame with the peer's identity), or null. */
  readonly prefix: Uint8Array | null;
  /** False: no message yet, as after one whose receiver wants nothing more. */
  readonly wantsMore: boolean;
}

/** Who hears what the peer says. Called from within `push` and `authenticated`. */
export interface ZmtpPeerEvents {
  /** The handshake is over; messages can be sent, and come. Refuses the peer by throwing ZmtpError. */
  ready(peer: PeerDescription): Welcome;
  /** A whole message; the frames are the receiver's. False: nothing more at present. */
  message(frames: Uint8Array[]): boolean;
  /** To be answered by `authenticated`, at once or later. */
  authenticate(request: AuthenticationRequest): void;
  /**
   * A PING came; `ttlMs` is how long nothing may be heard of the peer before it is taken for dead, 0 for ever. False: it is
   * not answered, because the peer does not take what is sent to it.
   */
  pinged(ttlMs: number): boolean;
  /** Any other command: PONG, or one of no use to these sockets, such as SUBSCRIBE. The data is valid for the call. */
  command(command: ZmtpCommand): void;
}

export interface ZmtpPeerOptions {
  readonly socketType: SocketType;
  /** At most 255 bytes; empty for none. */
  readonly identity: Uint8Array;
  readonly mechanism: MechanismFactory;
  readonly limits: ZmtpLimits;
  /** See MechanismContext. */
  readonly peerAddress: string;
  readonly isAuthenticated: boolean;
  /** See MechanismContext; false when left out. */
  readonly speaksLast?: boolean;
  /** Looks at a peer whose type fits; null when it will do. `userId` as in MechanismContext. */
  acceptPeer?(properties: Metadata, userId: string | null): ZmtpError | null;
}

type Stage = "greeting" | "handshake" | "authentication" | "traffic" | "over";

export class ZmtpPeer {
  /** What is to be written. Look at its `bytes` after each call. */
  readonly output = new FrameWriter();
  readonly #options: ZmtpPeerOptions;
  readonly #events: ZmtpPeerEvents;
  readonly #mechanism: Mechanism;
  readonly #decoder: FrameDecoder;
  readonly #greetingReader = new GreetingReader();
  #greeting: Greeting | null = null;
  #stage: Stage = "greeting";
  /** What was said at the end of the handshake. */
  #wantsMore = true;

  constructor(options: ZmtpPeerOptions, events: ZmtpPeerEvents) {
    this.#options = options;
    this.#events = events;
    const { mechanism, socketType, identity } = options;
    this.#decoder = new FrameDecoder(options.limits, {
      command: (body) => this.#command(decodeCommand(body)),
      message: (frames) => events.message(frames),
    });
    const properties: [string, string | Uint8Array][] = [[propertyNames.socketType, socketType]];
    // RFC 37 gives an identity to those who may connect to a ROUTER; libzmq sends it empty as well, which some expect.
    if (socketType !== "REP") properties.push([propertyNames.identity, identity]);
    this.#mechanism = mechanism.create({
      ownMetadata: encodeMetadata(properties),
      acceptProperties: (theirs, userId) =>
        checkPeer(socketType, theirs) ?? options.acceptPeer?.(theirs, userId) ?? null,
      peerAddress: options.peerAddress,
      isAuthenticated: options.isAuthenticated,
      speaksLast: options.speaksLast ?? false,
    });
    this.output.raw(encodeGreeting(mechanism));
  }

  /** Messages can be sent. */
  get isReady(): boolean {
    return this.#stage === "traffic";
  }

  get #isWaiting(): boolean {
    return this.#stage === "authentication";
  }

  /** Bytes held for what is not complete yet. */
  get heldBytes(): number {
    return this.#decoder.heldBytes;
  }

  /**
   * Takes what came from the peer, from `start` on. Returns how far it came: less than all when the receiver of a message
   * wants no more, or while an authentication is under way; the rest is to be given again. Throws ZmtpError, and only that,
   * for whatever the peer may send: the connection is over then, once what `output` has is written.
   */
  push(chunk: Uint8Array, start = 0): number {
    let at = start;
    // A Buffer's `slice` is no copy: from here on there are no Buffers.
    if (chunk.constructor !== Uint8Array) chunk = new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    try {
      if (this.#stage === "greeting") {
        at += this.#pushGreeting(chunk.subarray(at));
        if (this.#greeting === null) return at;
      }
      if (this.#isWaiting) return at;
      return this.#decoder.push(chunk, at);
    } catch (error) {
      throw this.#end(error);
    }
  }

  /** The answer to the event `authenticate`. What had to wait for it is to be pushed now. Throws as `push` does. */
  authenticated(verdict: AuthenticationVerdict): void {
    if (this.#stage !== "authentication") return;
    this.#stage = "handshake";
    try {
      this.#step(this.#mechanism.authenticated(verdict));
    } catch (error) {
      throw this.#end(error);
    }
  }

  /** Puts a message into `output`. Only while ready. A large frame is not copied: it must not be changed until it has left. */
  send(frames: readonly Uint8Array[]): void {
    const cipher = this.#mechanism.traffic;
    if (cipher === null) return this.output.message(frames);
    const last = frames.length - 1;
    for (let index = 0; index <= last; index++) {
      this.output.frame(0, cipher.seal(index < last ? frameFlags.more : 0, frames[index] as Uint8Array));
    }
  }

  /** Puts a PING into `output`. Only while ready, and to a peer that knows heartbeats. */
  ping(ttlMs: number): void {
    this.#sendCommand(encodePing(ttlMs));
  }

  /** Forgets what must not stay in memory. */
  destroy(): void {
    this.#stage = "over";
    this.#mechanism.destroy();
  }

  #pushGreeting(bytes: Uint8Array): number {
    const taken = Math.min(bytes.byteLength, this.#greetingReader.missing);
    const greeting = this.#greetingReader.push(bytes);
    if (greeting === null) return taken;
    const own = this.#options.mechanism.name;
    if (greeting.mechanism !== own) {
      const message = `The peer wants the security mechanism "${greeting.mechanism}"; this side has ${own}`;
      throw new ZmtpError("MECHANISM", message);
    }
    this.#greeting = greeting;
    this.#stage = "handshake";
    this.#sendHandshake(this.#mechanism.start());
    return taken;
  }

  #command(command: ZmtpCommand): boolean {
    if (this.#stage === "handshake") {
      this.#step(this.#mechanism.receive(command));
      return !this.#isWaiting && this.#wantsMore;
    }
    if (command.name === "PING") {
      const { ttlMs, context } = decodePing(command);
      if (this.#events.pinged(ttlMs)) this.#sendCommand(encodePong(context));
    } else this.#events.command(command);
    return true;
  }

  #step({ send, outcome }: HandshakeStep): void {
    this.#sendHandshake(send);
    if (outcome === null) return;
    if (outcome.kind === "failed") throw outcome.error;
    if (outcome.kind === "authenticate") {
      this.#stage = "authentication";
      this.#events.authenticate(outcome.request);
      return;
    }
    const { properties, userId } = outcome;
    this.#stage = "traffic";
    const { prefix, wantsMore } = this.#events.ready({
      socketType: propertyText(properties, propertyNames.socketType),
      identity: property(properties, propertyNames.identity) ?? new Uint8Array(0),
      properties,
      userId,
      knowsHeartbeats: (this.#greeting?.major ?? 0) > 3 || (this.#greeting?.minor ?? 0) > 0,
    });
    this.#wantsMore = wantsMore;
    this.#decoder.beginTraffic(this.#mechanism.traffic, prefix);
  }

  #sendHandshake(bodies: readonly Uint8Array[]): void {
    for (const body of bodies) this.output.command(body);
  }

  #sendCommand(body: Uint8Array): void {
    const cipher = this.#mechanism.traffic;
    if (cipher === null) this.output.command(body);
    else this.output.frame(0, cipher.seal(frameFlags.command, body));
  }

  /** Bytes that end too early, or sealed ones that make no sense, are found by readers that know nothing of ZMTP. */
  #end(error: unknown): unknown {
    this.#stage = "over";
    if (!(error instanceof BatonError) || error.code !== "PROTOCOL") return error;
    return new ZmtpError("COMMAND", `The peer sent what cannot be read: ${error.message}`, { cause: error });
  }
}
