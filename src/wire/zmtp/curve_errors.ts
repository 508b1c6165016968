/** What is said of commands of CURVE's handshake that are not taken. */
import { ZmtpError } from "./zmtp_error.ts";

/** A box that does not open: `likely` says why that may be. */
export function unopened(command: string, likely: string): ZmtpError {
  return new ZmtpError("AUTHENTICATION", `The peer's ${command} cannot be opened: ${likely}`);
}

/** A command that has no place in `state`. */
export function outOfPlace(command: string, state: string): ZmtpError {
  return new ZmtpError("COMMAND", `The peer sends the command ${command}, and ${state}`);
}
