/** The reasons why a ZMTP connection ends, each with the code of its BatonError. */
import { BatonError, type ErrorCode } from "../../../base/errors.ts";

const codes = {
  /** The first bytes are not a ZMTP greeting of version 3.0 or later. */
  GREETING: "ZMTP_PROTOCOL",
  /** The peer wants another security mechanism. */
  MECHANISM: "REFUSED",
  /** A frame has invalid flags or an invalid length. */
  FRAME: "ZMTP_PROTOCOL",
  /** A command is invalid, or not allowed at this point. */
  COMMAND: "ZMTP_PROTOCOL",
  /** The peer's socket type does not match this side's, or its properties are invalid. */
  PROPERTIES: "ZMTP_PROTOCOL",
  /** Another peer has this identity now; this side may accept the new peer later. */
  IDENTITY_TAKEN: "REFUSED",
  /** A message, a frame or a command exceeds a limit of this side. */
  LIMIT: "ZMTP_PROTOCOL",
  /** Memory was short, and the peer's message stayed incomplete for too long. */
  OVERLOAD: "CONNECTION_LOST",
  SILENT: "CONNECTION_LOST",
  /** The peer closed the connection during the handshake. */
  CLOSED: "CONNECTION_LOST",
  /** Another connection has taken over the peer's identity. */
  REPLACED: "CONNECTION_LOST",
  /** This side rejected the peer's keys or credentials. */
  AUTHENTICATION: "REFUSED",
  REFUSED_BY_PEER: "REFUSED",
} as const satisfies Record<string, ErrorCode>;

export type ZmtpErrorReason = keyof typeof codes;

/** The error that ends a ZMTP connection: the peer violated the protocol, or one side refuses the other. */
export class ZmtpError extends BatonError {
  readonly reason: ZmtpErrorReason;

  constructor(reason: ZmtpErrorReason, message: string, options?: { cause?: unknown }) {
    super(codes[reason], message, options);
    this.name = "ZmtpError";
    this.reason = reason;
  }
}
