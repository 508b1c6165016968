/** The NULL mechanism, without security: both sides send their properties. RFC 37, "The NULL Security Mechanism". */
import { encodeZmtpCommand, type ZmtpCommand, zmtpErrorReason } from "./zmtp_command.ts";
import {
  failedHandshakeStep,
  refusedHandshakeStep,
  type SecurityMechanismContext,
  type SecurityMechanismFactory,
  type ZmtpHandshakeStep,
} from "./security_mechanism.ts";
import { decodeZmtpMetadata } from "./zmtp_metadata.ts";
import { ZmtpError } from "./zmtp_error.ts";

export const nullSecurityMechanism: SecurityMechanismFactory = {
  name: "NULL",
  asServer: false,
  create: (context) => ({
    traffic: null,
    // Sends READY without waiting for the peer's, as libzmq does. Both sides thus save a round trip.
    start: () => [encodeZmtpCommand("READY", context.ownMetadata)],
    receive: (command) => handleCommand(context, command),
    destroy() {},
  }),
};

function handleCommand(context: SecurityMechanismContext, { name, data }: ZmtpCommand): ZmtpHandshakeStep {
  if (name === "ERROR") {
    const message = `The peer refused the connection: "${zmtpErrorReason(data)}"`;
    return failedHandshakeStep(new ZmtpError("REFUSED_BY_PEER", message));
  }
  if (name !== "READY") throw new ZmtpError("COMMAND", `The peer sent ${name} instead of READY`);
  const properties = decodeZmtpMetadata(data);
  const error = context.acceptProperties(properties, "");
  if (error !== null) return refusedHandshakeStep(error);
  return { send: [], outcome: { kind: "done", properties, userId: "" } };
}
