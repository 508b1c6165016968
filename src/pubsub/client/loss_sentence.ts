/** The sentence that tells a client of lost messages. */
import { countWithNoun } from "../../base/support/text.ts";

/** `certain`: messages that were answered OK are lost; `possible`: they may be. */
export type MessageLossCertainty = "certain" | "possible";

/** The value of the header `loss`; null for none. */
export function parseMessageLoss(header: string | undefined): MessageLossCertainty | null {
  if (header === undefined) return null;
  return header === "certain" ? "certain" : "possible";
}

/** `missed`: how many of them, and others, this client has not received, if that is known. */
export function messageLossSentence(topic: string, loss: MessageLossCertainty, missed = 0): string {
  const what = loss === "certain" ? "has lost" : "may have lost";
  const count = missed > 0
    ? `; ${countWithNoun(missed, "message")} before the next one ${missed === 1 ? "is" : "are"} missing`
    : "";
  return `a fail-over of the database ${what} messages of topic "${topic}" that were answered OK${count}; ` +
    "doctor and the servers' log name them";
}
