/** Reads the header `loss`, which reports lost messages, and makes the sentence about the loss for the user. */
import { countWithNoun } from "../../base/support/text.ts";

/**
 * Tells whether messages that a server had confirmed with OK are certainly lost ("certain") or may be lost
 * ("possible").
 */
export type MessageLossCertainty = "certain" | "possible";

/** Reads the header `loss`. Returns null if the response has none. */
export function parseMessageLoss(header: string | undefined): MessageLossCertainty | null {
  if (header === undefined) return null;
  return header === "certain" ? "certain" : "possible";
}

/**
 * Returns the sentence about lost messages. `missed` is the number of messages that this client has not received; 0 if
 * unknown.
 */
export function messageLossSentence(topic: string, loss: MessageLossCertainty, missed = 0): string {
  const what = loss === "certain" ? "has lost" : "may have lost";
  const count = missed > 0
    ? `; ${countWithNoun(missed, "message")} before the next one ${missed === 1 ? "is" : "are"} missing`
    : "";
  return `a fail-over of the database ${what} messages of topic "${topic}" that were answered OK${count}; ` +
    "doctor and the servers' log name them";
}
