/** Errors for commands of CURVE's handshake that are refused. */
import { ZmtpError } from "./zmtp_error.ts";

/** Error for a box that cannot be opened; `likely` is the probable reason. */
export function unopened(command: string, likely: string): ZmtpError {
  return new ZmtpError("AUTHENTICATION", `The peer's ${command} cannot be opened: ${likely}`);
}

/** Error for a command that is not allowed in `state`. */
export function outOfPlace(command: string, state: string): ZmtpError {
  return new ZmtpError("COMMAND", `The peer sends the command ${command}, and ${state}`);
}
