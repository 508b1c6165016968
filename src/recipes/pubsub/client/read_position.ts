import { position } from "../../../wire/pubsub/field_types.ts";

/** What a user writes for a place in a topic, in the protocol's spelling: the id of a message, or an end. */
export function readPosition(word: string): number | "start" | "end" | undefined {
  return position.read(word);
}
