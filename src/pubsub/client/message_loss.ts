/** Tells a client of lost messages: reads the header `loss`, and returns the sentence about it. */
import { countWithNoun } from "../../base/support/text.ts";

/** `certain` means that messages that were answered with OK are lost; `possible`, that they may be. */
export type MessageLossCertainty = "certain" | "possible";

/** Reads the value of the header `loss`; null if there is none. */
export function parseMessageLoss(header: string | undefined): MessageLossCertainty | null {
  if (header === undefined) return null;
  return header === "certain" ? "certain" : "possible";
}

/**
 * Returns the sentence about lost messages. `missed` is how many messages this client has not received; 0 if unknown.
 */
export function messageLossSentence(topic: string, loss: MessageLossCertainty, missed = 0): string {
  const what = loss === "certain" ? "has lost" : "may have lost";
  const count = missed > 0
    ? `; ${countWithNoun(missed, "message")} before the next one ${missed === 1 ? "is" : "are"} missing`
    : "";
  return `a fail-over of the database ${what} messages of topic "${topic}" that were answered OK${count}; ` +
    "doctor and the servers' log name them";
}
