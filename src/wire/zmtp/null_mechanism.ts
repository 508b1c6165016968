/** The NULL mechanism, without security: both sides send their properties. RFC 37, "The NULL Security Mechanism". */
import { encodeCommand, errorReason, type ZmtpCommand } from "./zmtp_command.ts";
import {
  handshakeFailed,
  handshakeRefusedError,
  type HandshakeStep,
  type Mechanism,
  type MechanismContext,
  type MechanismFactory,
} from "./security_mechanism.ts";
import { decodeMetadata } from "./zmtp_metadata.ts";
import { ZmtpError } from "./zmtp_error.ts";

export const nullMechanism: MechanismFactory = {
  name: "NULL",
  asServer: false,
  create: (context) => new NullMechanism(context),
};

class NullMechanism implements Mechanism {
  readonly traffic = null;
  readonly #context: MechanismContext;

  constructor(context: MechanismContext) {
    this.#context = context;
  }

  /** READY is sent immediately, as in libzmq, and not only after the client's: this saves a round trip. */
  start(): readonly Uint8Array[] {
    return [encodeCommand("READY", this.#context.ownMetadata)];
  }

  receive({ name, data }: ZmtpCommand): HandshakeStep {
    if (name === "ERROR") {
      const message = `The peer refused the connection: "${errorReason(data)}"`;
      return handshakeFailed(new ZmtpError("REFUSED_BY_PEER", message));
    }
    if (name !== "READY") throw new ZmtpError("COMMAND", `The peer sent ${name} where its READY is due`);
    const properties = decodeMetadata(data);
    const error = this.#context.acceptProperties(properties, "");
    if (error !== null) return handshakeRefusedError(error);
    return { send: [], outcome: { kind: "done", properties, userId: "" } };
  }

  destroy(): void {}
}
