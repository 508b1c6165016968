/** `ack` and `nak`: the end of a `get --ack manual`. Nothing is asked of anybody: the next get tells the server. */
import { BatonError } from "../../src/errors.ts";
import { readPosition } from "../../src/pubsub/client/read_position.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import type { ClientRun } from "./run_client.ts";

export function clientAck({ target, client }: ClientRun): ExitCode {
  const { topic, operation, rest } = target;
  const { cursor, intent, folder } = client.state.position(topic);
  if (operation === "nak") return exitCodes.SUCCESS; // it was not taken, and comes again as it is
  const word = rest[0] ?? "";
  const id = readPosition(word);
  if (typeof id !== "number") throw new BatonError("USAGE", `ack: "${word}" is not the id of a message`);
  if (id <= cursor) return exitCodes.SUCCESS;
  if (id > intent || folder !== null) {
    throw new BatonError("USAGE", `ack: message ${id} of "${topic}" was not handed out to "${client.id}"`);
  }
  client.state.setPosition(topic, { cursor: id, intent, folder: null });
  return exitCodes.SUCCESS;
}
