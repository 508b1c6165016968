/** Everything that ends a ZMTP connection for what a peer has said, in one closed list. */
import { BatonError, type ErrorCode } from "../../errors.ts";

const codes = {
  /** The first bytes are no ZMTP greeting, or one of a version before 3.0. */
  GREETING: "ZMTP_PROTOCOL",
  /** The peer wants another security mechanism. */
  MECHANISM: "REFUSED",
  /** A frame with flags or a length that the grammar does not have. */
  FRAME: "ZMTP_PROTOCOL",
  /** A command that cannot be read, or that has no place where it came. */
  COMMAND: "ZMTP_PROTOCOL",
  /** The peer's socket type does not go with ours, or its properties cannot be read. */
  PROPERTIES: "ZMTP_PROTOCOL",
  /** The peer's identity is another's at present: it may be let in later. */
  IDENTITY_TAKEN: "REFUSED",
  /** A message, a frame or a command over a limit of this side. */
  LIMIT: "ZMTP_PROTOCOL",
  /** Memory was short, and the peer did not end its message. */
  OVERLOAD: "CONNECTION_LOST",
  /** Nothing was heard of the peer for too long. */
  SILENT: "CONNECTION_LOST",
  /** The peer closed the connection where it had to say something. */
  CLOSED: "CONNECTION_LOST",
  /** Another connection has taken its identity over. */
  REPLACED: "CONNECTION_LOST",
  /** Keys or credentials do not fit; refused by this side. */
  AUTHENTICATION: "REFUSED",
  /** The peer has refused this side, by an ERROR command. */
  REFUSED_BY_PEER: "REFUSED",
} as const satisfies Record<string, ErrorCode>;

export type ZmtpErrorReason = keyof typeof codes;

/** The peer broke the protocol, or one side refuses the other. The connection it came on is over. */
export class ZmtpError extends BatonError {
  readonly reason: ZmtpErrorReason;

  constructor(reason: ZmtpErrorReason, message: string, options?: { cause?: unknown }) {
    super(codes[reason], message, options);
    this.name = "ZmtpError";
    this.reason = reason;
  }
}
