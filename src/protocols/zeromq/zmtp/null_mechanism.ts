/** The NULL mechanism, without security: both sides send their properties. RFC 37, "The NULL Security Mechanism". */
import { encodeCommand, errorReason, type ZmtpCommand } from "./zmtp_command.ts";
import {
  handshakeFailed,
  handshakeRefusedError,
  type HandshakeStep,
  type MechanismContext,
  type MechanismFactory,
} from "./security_mechanism.ts";
import { decodeMetadata } from "./zmtp_metadata.ts";
import { ZmtpError } from "./zmtp_error.ts";

export const nullMechanism: MechanismFactory = {
  name: "NULL",
  asServer: false,
  create: (context) => ({
    traffic: null,
    // READY is sent immediately, as in libzmq, and not only after the client's: this saves a round trip.
    start: () => [encodeCommand("READY", context.ownMetadata)],
    receive: (command) => handleCommand(context, command),
    destroy() {},
  }),
};

function handleCommand(context: MechanismContext, { name, data }: ZmtpCommand): HandshakeStep {
  if (name === "ERROR") {
    const message = `The peer refused the connection: "${errorReason(data)}"`;
    return handshakeFailed(new ZmtpError("REFUSED_BY_PEER", message));
  }
  if (name !== "READY") throw new ZmtpError("COMMAND", `The peer sent ${name} where its READY is due`);
  const properties = decodeMetadata(data);
  const error = context.acceptProperties(properties, "");
  if (error !== null) return handshakeRefusedError(error);
  return { send: [], outcome: { kind: "done", properties, userId: "" } };
}
