/** What a client's words and messages may be, before anything is asked. */
import { BatonError, messageOf } from "../../errors.ts";
import { bodyBytesMax } from "../../wire/pubsub/message_limits.ts";
import { encodeToken } from "../../wire/pubsub/name_token.ts";
import { position } from "../../wire/pubsub/field_types.ts";

/** A message, inclusive, in bytes. */
export const messageBytesMax = bodyBytesMax;

/** Throws USAGE for a name that no header can carry. `what`: "client id". */
export function checkName(what: string, name: string): void {
  try {
    encodeToken(name);
  } catch (thrown) {
    throw new BatonError(
      "USAGE",
      `The ${what} ${JSON.stringify(name.slice(0, 40))} cannot be used: ${messageOf(thrown)}`,
    );
  }
}

/** The id of a message, or an end of the topic. */
export function readPosition(word: string): number | "start" | "end" | undefined {
  return position.read(word);
}
