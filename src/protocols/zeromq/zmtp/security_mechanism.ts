/**
 * Interface of a security mechanism (NULL, CURVE): a state machine for one connection. It gets commands and returns
 * commands and a result. It has no socket and no clock, and frames nothing. RFC 37, "Authentication and
 * Confidentiality".
 */
import { encodeZmtpError, type ZmtpCommand } from "./zmtp_command.ts";
import type { ZmtpMetadata } from "./zmtp_metadata.ts";
import type { ZmtpError } from "./zmtp_error.ts";

/** The connection for which a mechanism is made. */
export interface SecurityMechanismContext {
  /** This side's properties, encoded (encodeMetadata), which READY or INITIATE carries. */
  readonly ownMetadata: Uint8Array;
  /**
   * Checks the peer's properties before this side's last command: null if they are acceptable, otherwise the error for
   * `handshakeRefused`. `userId`: see ZmtpHandshakeOutcome.
   */
  acceptProperties(properties: ZmtpMetadata, userId: string): ZmtpError | null;
}

/** Creates the mechanism for one connection. It contains the keys. */
export interface SecurityMechanismFactory {
  /** The name in the greeting: at most 20 characters of A-Z 0-9 - _ . + */
  readonly name: string;
  /**
   * The as-server field of the greeting. It has no meaning for NULL, and is not checked in a peer's greeting (libzmq
   * always sends 0).
   */
  readonly asServer: boolean;
  create(context: SecurityMechanismContext): SecurityMechanism;
}

export type ZmtpHandshakeOutcome =
  /**
   * The handshake is complete; traffic begins with the next frame. `userId`: the public key, in Z85, that a client of
   * CURVE has proven to own; empty for any other peer.
   */
  | { readonly kind: "done"; readonly properties: ZmtpMetadata; readonly userId: string }
  /** The connection ends after `send` was sent. */
  | { readonly kind: "failed"; readonly error: ZmtpError };

export interface ZmtpHandshakeStep {
  /** Bodies of commands to send, in this order, before anything else. */
  readonly send: readonly Uint8Array[];
  /** Null if the peer's next command decides. */
  readonly outcome: ZmtpHandshakeOutcome | null;
}

/** The handshake continues. */
export function continuedHandshake(...send: Uint8Array[]): ZmtpHandshakeStep {
  return { send, outcome: null };
}

/** The handshake has failed; `send` may contain an ERROR command. */
export function failedHandshake(error: ZmtpError, ...send: Uint8Array[]): ZmtpHandshakeStep {
  return { send, outcome: { kind: "failed", error } };
}

/**
 * Ends a handshake because of the peer's properties. An ERROR tells the peer why, except for a temporary reason: an
 * ERROR is final for these properties (RFC 37), and libzmq does not connect again after one.
 */
export function refusedHandshake(error: ZmtpError): ZmtpHandshakeStep {
  if (error.reason === "IDENTITY_TAKEN") return failedHandshake(error);
  return failedHandshake(error, encodeZmtpError(error.message));
}

export interface SecurityMechanism {
  /** Returns bodies of commands that are sent right after the greetings. Called once, first. */
  start(): readonly Uint8Array[];
  /**
   * Handles a command of the peer, until the result. May throw ZmtpError or PROTOCOL, a failure without an ERROR
   * command.
   */
  receive(command: ZmtpCommand): ZmtpHandshakeStep;
  /** The cipher for frames after the result `done`; null if they are sent unencrypted. */
  readonly traffic: TrafficCipher | null;
  /** Ends the connection; secrets can be forgotten. */
  destroy(): void;
}

/** Flags of a frame, also inside a sealed one (RFC 26 has MORE; libzmq adds COMMAND). */
export const sealedFrameFlags = { more: 1, command: 2 } as const;

/** Seals and opens the frames of one connection, each direction in order. */
export interface TrafficCipher {
  /** Bytes that a sealed body is longer than the body. */
  readonly overheadBytes: number;
  /** Returns the body to send instead of `body`, in a frame without flags. `flags` are `sealedFrameFlags`. */
  seal(flags: number, body: Uint8Array): Uint8Array;
  /**
   * Opens the body of a frame. The argument is valid only during the call; the resulting body belongs to the receiver.
   * Throws ZmtpError if the peer has not sealed it, it was seen before, or it is out of order.
   */
  open(body: Uint8Array): { readonly flags: number; readonly body: Uint8Array };
}
