/** What a user writes for a place in a topic, in the protocol's spelling. Pure. */
import { position } from "../../wire/pubsub/field_types.ts";

/** The id of a message, or an end of the topic. */
export function readPosition(word: string): number | "start" | "end" | undefined {
  return position.read(word);
}
