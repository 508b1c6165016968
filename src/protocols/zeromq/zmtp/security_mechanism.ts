/**
 * The interface of a security mechanism (NULL, CURVE): a state machine for the handshake of one connection. The state
 * machine takes the peer's commands, and returns commands to send and a result. It uses no socket and no clock. RFC 37,
 * "Authentication and Confidentiality".
 */
import { encodeZmtpError, type ZmtpCommand } from "./zmtp_command.ts";
import type { ZmtpMetadata } from "./zmtp_metadata.ts";
import type { ZmtpError } from "./zmtp_error.ts";

/** The facts that a mechanism needs to know about its connection. */
export interface SecurityMechanismContext {
  /** This side's encoded properties (`encodeZmtpMetadata`), for READY or INITIATE. */
  readonly ownMetadata: Uint8Array;
  /**
   * Checks the peer's properties before this side sends its last command. Returns null to accept them, or the error for
   * `refusedHandshakeStep`. `userId`: see ZmtpHandshakeOutcome.
   */
  acceptProperties(properties: ZmtpMetadata, userId: string): ZmtpError | null;
}

/** Creates a security mechanism for each connection. Contains the keys. */
export interface SecurityMechanismFactory {
  /** The name in the greeting: at most 20 characters of A-Z 0-9 - _ . + */
  readonly name: string;
  /**
   * The as-server field of the greeting; for NULL it has no meaning. The peer's field is not checked, because libzmq
   * always sends 0.
   */
  readonly asServer: boolean;
  create(context: SecurityMechanismContext): SecurityMechanism;
}

export type ZmtpHandshakeOutcome =
  /**
   * The handshake is complete, and messages may follow. `userId` is the public key (Z85) that a client of CURVE has
   * proven to own; empty for any other peer.
   */
  | { readonly kind: "done"; readonly properties: ZmtpMetadata; readonly userId: string }
  /** The connection ends after the last commands were sent. */
  | { readonly kind: "failed"; readonly error: ZmtpError };

export interface ZmtpHandshakeStep {
  /** The bodies of commands to send, in this order, before anything else. */
  readonly send: readonly Uint8Array[];
  /** The result of the handshake; null if the handshake waits for the peer's next command. */
  readonly outcome: ZmtpHandshakeOutcome | null;
}

/** Returns the step of a handshake that continues. */
export function continuedHandshakeStep(...send: Uint8Array[]): ZmtpHandshakeStep {
  return { send, outcome: null };
}

/** Returns the step of a handshake that has failed; `send` may contain an ERROR command. */
export function failedHandshakeStep(error: ZmtpError, ...send: Uint8Array[]): ZmtpHandshakeStep {
  return { send, outcome: { kind: "failed", error } };
}

/**
 * Returns the step of a handshake that this side ends because of the peer's properties. An ERROR command tells the peer
 * the reason. If the reason is temporary, no ERROR is sent: an ERROR is final (RFC 37), and libzmq does not reconnect
 * after it.
 */
export function refusedHandshakeStep(error: ZmtpError): ZmtpHandshakeStep {
  if (error.reason === "IDENTITY_TAKEN") return failedHandshakeStep(error);
  return failedHandshakeStep(error, encodeZmtpError(error.message));
}

export interface SecurityMechanism {
  /** Returns the bodies of commands to send right after the greetings. Called once, before `receive`. */
  start(): readonly Uint8Array[];
  /**
   * Handles a command of the peer. Not called after the handshake has a result. If it throws ZmtpError or PROTOCOL, the
   * handshake has failed, and no ERROR command is sent.
   */
  receive(command: ZmtpCommand): ZmtpHandshakeStep;
  /** The cipher for frames after the result `done`; null if frames are not encrypted. */
  readonly traffic: ZmtpTrafficCipher | null;
  /** Erases secrets at the end of the connection. */
  destroy(): void;
}

/** The flags inside a sealed frame (RFC 26 has MORE; libzmq adds COMMAND). */
export const sealedFrameFlags = { more: 1, command: 2 } as const;

/** Encrypts (seals) and decrypts (opens) the frames of one connection, in order. */
export interface ZmtpTrafficCipher {
  /** The number of bytes by which sealing makes a body longer. */
  readonly overheadBytes: number;
  /** Returns the sealed body, to send in a frame without flags. `flags` are `sealedFrameFlags`. */
  seal(flags: number, body: Uint8Array): Uint8Array;
  /**
   * Opens the body of a frame. The argument is valid only during the call; the returned body is a copy. Throws
   * ZmtpError if the peer has not sealed the body, or if the body was replayed or is out of order.
   */
  open(body: Uint8Array): { readonly flags: number; readonly body: Uint8Array };
}
