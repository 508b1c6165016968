/**
 * One ZMTP connection as a state machine: greeting, handshake, traffic. Takes received bytes, and produces events and
 * bytes to send. Uses no socket and no clock, and limits its memory. RFC 37 (version 3.1) and RFC 23 (3.0).
 */
import { BatonError } from "../../../base/errors.ts";
import { decodeZmtpCommand, decodeZmtpPing, encodeZmtpPing, encodeZmtpPong, type ZmtpCommand } from "./zmtp_command.ts";
import { ZmtpFrameDecoder } from "./frame_decoder.ts";
import { ZmtpFrameWriter } from "./frame_writer.ts";
import { encodeZmtpGreeting, type ZmtpGreeting, ZmtpGreetingReader } from "./zmtp_greeting.ts";
import type { ZmtpLimits } from "./zmtp_limits.ts";
import {
  sealedFrameFlags,
  type SecurityMechanism,
  type SecurityMechanismFactory,
  type ZmtpHandshakeStep,
} from "./security_mechanism.ts";
import {
  encodeZmtpMetadata,
  type ZmtpMetadata,
  zmtpPropertyBytes,
  zmtpPropertyNames,
  zmtpPropertyText,
} from "./zmtp_metadata.ts";
import { checkZmtpPeerProperties, type ZeroMqSocketType } from "./socket_type.ts";
import { ZmtpError } from "./zmtp_error.ts";

/** Properties of a peer that are known after its handshake. */
export interface ZmtpPeerDescription {
  /** The socket type; empty if the peer did not send one. */
  readonly socketType: string;
  /** The peer's identity; empty if it has none. */
  readonly identity: Uint8Array;
  /** The peer's public key, if it has proven to own one; see ZmtpHandshakeOutcome. */
  readonly userId: string;
  /** True if the peer knows PING. False for ZMTP 3.0, although some peers of that version use PING. */
  readonly knowsHeartbeats: boolean;
}

/** How to receive a peer's messages after its handshake. */
export interface ZmtpReceiveOptions {
  /** The frame to put before each received message (for a ROUTER, the peer's identity), or null. */
  readonly prefix: Uint8Array | null;
  /** False to receive no messages for now, as `onMessage` can. */
  readonly wantsMore: boolean;
}

/** Receives the events of the peer, during a call of `push`. */
export interface ZmtpPeerEvents {
  /**
   * Called when the handshake is complete; messages can be sent and received from now on. Throws ZmtpError to refuse
   * the peer.
   */
  onReady(peer: ZmtpPeerDescription): ZmtpReceiveOptions;
  /** Called when a message has arrived. The frames belong to the receiver. Returns false to stop receiving for now. */
  onMessage(frames: Uint8Array[]): boolean;
  /**
   * Called when a PING has arrived. `ttlMs` is the silence in milliseconds after which the peer wants to be considered
   * dead; 0 for never. Returns false to send no PONG, because the peer does not read.
   */
  onPing(ttlMs: number): boolean;
}

export interface ZmtpPeerOptions {
  readonly socketType: ZeroMqSocketType;
  /** This side's identity of at most 255 bytes; empty if it has none. */
  readonly identity: Uint8Array;
  readonly mechanism: SecurityMechanismFactory;
  readonly limits: ZmtpLimits;
  /** Checks a peer of a matching type. Returns null to accept the peer. `userId`: see ZmtpHandshakeOutcome. */
  acceptPeer?(properties: ZmtpMetadata, userId: string): ZmtpError | null;
}

type Stage = "greeting" | "handshake" | "traffic" | "over";

export class ZmtpPeer {
  /** The buffer of bytes to send. The caller must flush it after each call of a method if `pendingBytes` is not 0. */
  readonly output = new ZmtpFrameWriter();
  readonly #options: ZmtpPeerOptions;
  readonly #events: ZmtpPeerEvents;
  readonly #mechanism: SecurityMechanism;
  readonly #decoder: ZmtpFrameDecoder;
  readonly #greetingReader = new ZmtpGreetingReader();
  #greeting: ZmtpGreeting | null = null;
  #stage: Stage = "greeting";
  #wantsMore = true;

  constructor(options: ZmtpPeerOptions, events: ZmtpPeerEvents) {
    this.#options = options;
    this.#events = events;
    const { mechanism, socketType, identity } = options;
    this.#decoder = new ZmtpFrameDecoder(options.limits, {
      onCommand: (body) => this.#command(decodeZmtpCommand(body)),
      onMessage: (frames) => events.onMessage(frames),
    });
    const properties: [string, string | Uint8Array][] = [[zmtpPropertyNames.socketType, socketType]];
    // Sends an identity only from a socket that may connect to a ROUTER (RFC 37). An empty identity is sent, too, as in
    // libzmq, because some peers expect it.
    if (socketType !== "REP") properties.push([zmtpPropertyNames.identity, identity]);
    this.#mechanism = mechanism.create({
      ownMetadata: encodeZmtpMetadata(properties),
      acceptProperties: (theirs, userId) =>
        checkZmtpPeerProperties(socketType, theirs) ?? options.acceptPeer?.(theirs, userId) ?? null,
    });
    this.output.addRaw(encodeZmtpGreeting(mechanism));
  }

  get isReady(): boolean {
    return this.#stage === "traffic";
  }

  /** The bytes of memory that incomplete data uses. */
  get heldBytes(): number {
    return this.#decoder.heldBytes;
  }

  /**
   * Takes received bytes, from `start` on. Returns the index after the bytes that were read. If the receiver has
   * stopped, the caller must pass the rest again later. Throws only ZmtpError, whatever the peer sends; the caller must
   * then write `output` and end the connection.
   */
  push(chunk: Uint8Array, start = 0): number {
    let at = start;
    // Converts a Buffer to a Uint8Array, because `slice` of a Buffer does not copy.
    if (chunk.constructor !== Uint8Array) chunk = new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    try {
      if (this.#stage === "greeting") {
        at += this.#pushGreeting(chunk.subarray(at));
        if (this.#greeting === null) return at;
      }
      return this.#decoder.push(chunk, at);
    } catch (error) {
      throw this.#end(error);
    }
  }

  /**
   * Adds a message to `output`. The caller must check `isReady` first. A large frame is not copied, so it must not be
   * changed until it was written.
   */
  send(frames: readonly Uint8Array[]): void {
    const cipher = this.#mechanism.traffic;
    if (cipher === null) return this.output.addMessage(frames);
    const last = frames.length - 1;
    for (let index = 0; index <= last; index++) {
      this.output.addFrame(0, cipher.seal(index < last ? sealedFrameFlags.more : 0, frames[index] as Uint8Array));
    }
  }

  /** Adds a PING to `output`. The caller must check `isReady` first, and that the peer knows heartbeats. */
  ping(ttlMs: number): void {
    this.#sendCommand(encodeZmtpPing(ttlMs));
  }

  /** Erases secrets from memory. */
  destroy(): void {
    this.#stage = "over";
    this.#mechanism.destroy();
  }

  #pushGreeting(bytes: Uint8Array): number {
    const taken = Math.min(bytes.byteLength, this.#greetingReader.missingBytes);
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
      this.#applyStep(this.#mechanism.receive(command));
      return this.#wantsMore;
    }
    // Ignores other commands: PONG needs no action, and these sockets do not use commands such as SUBSCRIBE.
    if (command.name === "PING") {
      const { ttlMs, context } = decodeZmtpPing(command);
      if (this.#events.onPing(ttlMs)) this.#sendCommand(encodeZmtpPong(context));
    }
    return true;
  }

  #applyStep({ send, outcome }: ZmtpHandshakeStep): void {
    this.#sendHandshake(send);
    if (outcome === null) return;
    if (outcome.kind === "failed") throw outcome.error;
    const { properties, userId } = outcome;
    this.#stage = "traffic";
    const { prefix, wantsMore } = this.#events.onReady({
      socketType: zmtpPropertyText(properties, zmtpPropertyNames.socketType),
      identity: zmtpPropertyBytes(properties, zmtpPropertyNames.identity) ?? new Uint8Array(0),
      userId,
      knowsHeartbeats: (this.#greeting?.major ?? 0) > 3 || (this.#greeting?.minor ?? 0) > 0,
    });
    this.#wantsMore = wantsMore;
    this.#decoder.beginTraffic(this.#mechanism.traffic, prefix);
  }

  #sendHandshake(bodies: readonly Uint8Array[]): void {
    for (const body of bodies) this.output.addCommand(body);
  }

  #sendCommand(body: Uint8Array): void {
    const cipher = this.#mechanism.traffic;
    if (cipher === null) this.output.addCommand(body);
    else this.output.addFrame(0, cipher.seal(sealedFrameFlags.command, body));
  }

  /**
   * Ends the connection. Converts PROTOCOL errors of the general readers to ZmtpErrors, for example if bytes end too
   * early.
   */
  #end(error: unknown): unknown {
    this.#stage = "over";
    if (!(error instanceof BatonError) || error.code !== "PROTOCOL") return error;
    return new ZmtpError("COMMAND", `The peer sent what cannot be read: ${error.message}`, { cause: error });
  }
}
