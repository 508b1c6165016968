/** The NULL mechanism, without security: both sides send their properties. RFC 37, "The NULL Security Mechanism". */
import { encodeCommand, encodeErrorCommand, errorReason, type ZmtpCommand } from "./zmtp_command.ts";
import {
  type AuthenticationVerdict,
  handshakeFailed,
  handshakeGoesOn,
  handshakeRefused,
  type HandshakeStep,
  type Mechanism,
  type MechanismContext,
  type MechanismFactory,
} from "./security_mechanism.ts";
import { decodeMetadata, type Metadata, property, propertyNames } from "./zmtp_metadata.ts";
import { ZmtpError } from "./zmtp_error.ts";

export const nullMechanism: MechanismFactory = {
  name: "NULL",
  asServer: false,
  create: (context) => new NullMechanism(context),
};

/**
 * READY is sent immediately, as in libzmq, and not only after the client's: this saves a round trip. If a peer may be
 * refused, READY waits for that decision, because a peer that has received READY sends its messages.
 */
class NullMechanism implements Mechanism {
  readonly traffic = null;
  readonly #context: MechanismContext;
  #properties: Metadata | null = null;

  constructor(context: MechanismContext) {
    this.#context = context;
  }

  start(): readonly Uint8Array[] {
    const { isAuthenticated, speaksLast } = this.#context;
    return isAuthenticated || speaksLast ? [] : [this.#ready()];
  }

  receive(command: ZmtpCommand): HandshakeStep {
    if (command.name === "ERROR") return handshakeFailed(refusedByPeer(command));
    if (command.name !== "READY") {
      throw new ZmtpError("COMMAND", `The peer sent ${command.name} where its READY is due`);
    }
    const properties = decodeMetadata(command.data);
    const { isAuthenticated, speaksLast } = this.#context;
    const error = this.#context.acceptProperties(properties, isAuthenticated ? null : "");
    if (error !== null) return handshakeRefused(error);
    if (!isAuthenticated) return done(properties, "", ...(speaksLast ? [this.#ready()] : []));
    this.#properties = properties;
    const identity = property(properties, propertyNames.identity) ?? new Uint8Array(0);
    const request = { mechanism: "NULL", address: this.#context.peerAddress, identity, credentials: [] };
    return { send: [], outcome: { kind: "authenticate", request } };
  }

  authenticated(verdict: AuthenticationVerdict): HandshakeStep {
    if (this.#properties === null) throw new Error("authenticated() was called before it was asked for");
    if (verdict.status !== 200) return refused(verdict);
    const { userId = "" } = verdict;
    // Another peer may have connected meanwhile.
    const error = this.#context.acceptProperties(this.#properties, userId);
    if (error !== null) return handshakeRefused(error);
    return done(this.#properties, userId, this.#ready());
  }

  destroy(): void {}

  #ready(): Uint8Array {
    return encodeCommand("READY", this.#context.ownMetadata);
  }
}

/** Converts an ERROR command into an error. */
export function refusedByPeer({ data }: ZmtpCommand): ZmtpError {
  return new ZmtpError("REFUSED_BY_PEER", `The peer refused the connection: "${errorReason(data)}"`);
}

/** Ends a handshake that the authentication has refused. Status 300 means "try later" and is not sent (RFC 27). */
export function refused({ status, text = "" }: { readonly status: number; readonly text?: string }): HandshakeStep {
  const why = text === "" ? `status ${status}` : `status ${status}, "${text}"`;
  const error = new ZmtpError("AUTHENTICATION", `The peer was refused by the authentication: ${why}`);
  return status === 300 ? handshakeFailed(error) : handshakeFailed(error, encodeErrorCommand(String(status)));
}

function done(properties: Metadata, userId: string, ...send: Uint8Array[]): HandshakeStep {
  return { ...handshakeGoesOn(...send), outcome: { kind: "done", properties, userId } };
}
