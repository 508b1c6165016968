/**
 * What a security mechanism (NULL, CURVE) is to the rest of ZMTP: a state machine for one connection. Commands in, commands
 * and an outcome out; it has no socket, no clock, and never frames anything itself. RFC 37, "Authentication and Confidentiality".
 */
import { encodeErrorCommand, type ZmtpCommand } from "./zmtp_command.ts";
import type { Metadata } from "./zmtp_metadata.ts";
import type { ZmtpError } from "./zmtp_error.ts";

/** What a mechanism is told of the connection that it is made for. */
export interface MechanismContext {
  /** This side's properties, encoded (encodeMetadata): what READY or INITIATE carries. */
  readonly ownMetadata: Uint8Array;
  /**
   * Looks at the peer's properties before this side says its last word: null when they will do, or else the error, which is
   * for `handshakeRefused`. `userId` is null as long as nobody has decided about the peer; then this is asked again.
   */
  acceptProperties(properties: Metadata, userId: string | null): ZmtpError | null;
  /** The other end's IP address, or empty for ipc; for the authentication request. */
  readonly peerAddress: string;
  /** True when somebody decides about peers: a server then asks before it lets one in. */
  readonly isAuthenticated: boolean;
  /** This side tells a peer that it is in only when it has looked at the peer's properties, which may take a round trip more. */
  readonly speaksLast: boolean;
}

/** Makes the mechanism for one connection. Keys and the like are bound in it. */
export interface MechanismFactory {
  /** As in the greeting: at most 20 of A-Z 0-9 - _ . + */
  readonly name: string;
  /** The greeting's as-server; not significant to NULL, and not checked in a peer's greeting (libzmq sends 0 always). */
  readonly asServer: boolean;
  create(context: MechanismContext): Mechanism;
}

/** What RFC 27 (ZAP) asks a handler, in process. */
export interface AuthenticationRequest {
  readonly mechanism: string;
  /** IP address of the peer; empty over ipc. */
  readonly address: string;
  /** The peer's Identity property; empty when it has none. Not proven by anything. */
  readonly identity: Uint8Array;
  /** NULL: none. CURVE: the peer's 32-byte long-term public key, which it has proven to own. */
  readonly credentials: readonly Uint8Array[];
}

/** 200 lets the peer in; 300: try later, 400: not you, 500: the check itself failed. */
export type AuthenticationVerdict =
  | { readonly status: 200; readonly userId?: string }
  | { readonly status: 300 | 400 | 500; readonly text?: string };

export type HandshakeOutcome =
  /** Both sides have said what the mechanism wants; traffic begins with the next frame. */
  | { readonly kind: "done"; readonly properties: Metadata; readonly userId: string }
  /** Nothing is to be handed to `receive` until `authenticated` was called. */
  | { readonly kind: "authenticate"; readonly request: AuthenticationRequest }
  /** The connection is over once `send` is sent. */
  | { readonly kind: "failed"; readonly error: ZmtpError };

export interface HandshakeStep {
  /** Bodies of commands to send, in this order, before anything else. */
  readonly send: readonly Uint8Array[];
  /** Null: the peer's next command decides. */
  readonly outcome: HandshakeOutcome | null;
}

/** The handshake goes on. */
export function handshakeGoesOn(...send: Uint8Array[]): HandshakeStep {
  return { send, outcome: null };
}

/** The handshake has failed; `send` may hold an ERROR command. */
export function handshakeFailed(error: ZmtpError, ...send: Uint8Array[]): HandshakeStep {
  return { send, outcome: { kind: "failed", error } };
}

/**
 * The end of a handshake for what the peer's properties say. The peer hears why by an ERROR, but not of what may pass: an ERROR
 * is final for these properties (RFC 37), and libzmq does not connect again after one.
 */
export function handshakeRefused(error: ZmtpError): HandshakeStep {
  if (error.reason === "IDENTITY_TAKEN") return handshakeFailed(error);
  return handshakeFailed(error, encodeErrorCommand(error.message));
}

export interface Mechanism {
  /** Bodies of commands that go out as soon as the greetings are exchanged. Called once, first. */
  start(): readonly Uint8Array[];
  /** A command of the peer's, up to the outcome. May throw ZmtpError or PROTOCOL, which is a failure without a last word. */
  receive(command: ZmtpCommand): HandshakeStep;
  /** The answer to the outcome `authenticate`. */
  authenticated(verdict: AuthenticationVerdict): HandshakeStep;
  /** What becomes of frames after the outcome `done`; null when they travel as they are. */
  readonly traffic: TrafficCipher | null;
  /** The connection is over: secrets can be forgotten. */
  destroy(): void;
}

/** Flags of a frame as its sender means it, inside a sealed one too (RFC 26 has MORE; libzmq adds COMMAND). */
export const frameFlags = { more: 1, command: 2 } as const;

/** Seals and opens the frames of one connection, each direction in its order. */
export interface TrafficCipher {
  /** Bytes that a sealed body is longer than the body. */
  readonly overheadBytes: number;
  /** The body that travels, in a frame without flags, in place of `body`. `flags` are of `frameFlags`. */
  seal(flags: number, body: Uint8Array): Uint8Array;
  /**
   * What a frame's body holds. The argument is valid for the call only; the body of the result is the receiver's own. Throws
   * ZmtpError when it was not sealed by the peer, was seen before, or is out of order.
   */
  open(body: Uint8Array): { readonly flags: number; readonly body: Uint8Array };
}
