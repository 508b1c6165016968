/** The mechanism without security: each side tells its properties. RFC 37, "The NULL Security Mechanism". */
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
 * Sends its READY at once, as libzmq does, and not only after the client's: that saves a round trip. Where a peer may be refused
 * it waits for that to be decided instead: a peer that has heard READY sends its messages.
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
    // Somebody may have come in the meantime.
    const error = this.#context.acceptProperties(this.#properties, userId);
    if (error !== null) return handshakeRefused(error);
    return done(this.#properties, userId, this.#ready());
  }

  destroy(): void {}

  #ready(): Uint8Array {
    return encodeCommand("READY", this.#context.ownMetadata);
  }
}

/** The error for an ERROR command. */
export function refusedByPeer({ data }: ZmtpCommand): ZmtpError {
  return new ZmtpError("REFUSED_BY_PEER", `The peer refused the connection: "${errorReason(data)}"`);
}

/** The end of a handshake that the authentication did not let through; 300 means "try later" and is not told (RFC 27). */
export function refused({ status, text = "" }: { readonly status: number; readonly text?: string }): HandshakeStep {
  const why = text === "" ? `status ${status}` : `status ${status}, "${text}"`;
  const error = new ZmtpError("AUTHENTICATION", `The peer was refused by the authentication: ${why}`);
  return status === 300 ? handshakeFailed(error) : handshakeFailed(error, encodeErrorCommand(String(status)));
}

function done(properties: Metadata, userId: string, ...send: Uint8Array[]): HandshakeStep {
  return { ...handshakeGoesOn(...send), outcome: { kind: "done", properties, userId } };
}
