/** Limits for names, messages and positions that a user writes. */
import { BatonError, errorMessage } from "../../base/errors.ts";
import { bodyBytesMax } from "../wire/message_limits.ts";
import { encodeNameToken } from "../wire/name_token.ts";
import { seekPositionField } from "../wire/field_types.ts";

export const messageBytesMax = bodyBytesMax;

/**
 * Throws USAGE if the header of a message cannot contain the name. `what` says what the name is for, for example
 * "client ID".
 */
export function checkPubsubName(what: string, name: string): void {
  if (typeof name !== "string") {
    throw new BatonError("USAGE", `The ${what} is not a string, but of type ${typeof name}`);
  }
  try {
    encodeNameToken(name);
  } catch (thrown) {
    throw new BatonError(
      "USAGE",
      `The ${what} ${JSON.stringify(name.slice(0, 40))} cannot be used: ${errorMessage(thrown)}`,
    );
  }
}

/** Parses a message ID, "start" or "end". Returns undefined for other words. */
export function parseMessagePosition(word: string): number | "start" | "end" | undefined {
  return seekPositionField.read(word);
}
