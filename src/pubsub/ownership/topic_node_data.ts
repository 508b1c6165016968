/** A topic's node as JSON. Reading is strict: a node in an unknown format is refused. */
import { BatonError } from "../../errors.ts";
import type { ContentSource, TopicNode, TopicNodeState } from "./topic_node.ts";

/** A new format gets a new number, so that an old baton never acts on a newer node. */
const layout = 1;
const states: readonly string[] = ["new", "moving", "stored", "sealed"] satisfies TopicNodeState[];

const utf8 = new TextEncoder();

/** The data contains the topic's name, because the path of a long name has only its hash. */
export function formatTopicNode(topic: string, node: TopicNode): Uint8Array {
  const { baseOffset, ...others } = node;
  return utf8.encode(JSON.stringify({ layout, topic, ...others, base_offset: baseOffset }));
}

/** Throws CONFIG for data in another format, or for another topic than `topic`. */
export function parseTopicNode(data: Uint8Array, path: string, topic?: string): TopicNode & { readonly topic: string } {
  const refuse = (what: string, cause?: unknown) =>
    new BatonError("CONFIG", `"${path}" cannot be read as a topic node: ${what}`, { cause });
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(data));
  } catch (cause) {
    throw refuse("its data is not JSON", cause);
  }
  if (typeof value !== "object" || value === null) throw refuse("its data is not an object");
  const row = value as Readonly<Record<string, unknown>>;
  if (row["layout"] !== layout) {
    throw refuse(`its layout is ${JSON.stringify(row["layout"])}, and this version knows ${layout}`);
  }
  const { topic: name, owner, state, incarnation } = row;
  if (
    typeof name !== "string" || typeof owner !== "string" || typeof incarnation !== "string" ||
    !states.includes(`${state}`)
  ) {
    throw refuse("topic, owner, state or incarnation is missing or invalid");
  }
  if (topic !== undefined && name !== topic) throw refuse(`it describes "${name}", not "${topic}"`);
  const { epoch, base_offset: baseOffset } = row;
  if (!isCount(epoch) || epoch < 1 || !isCount(baseOffset)) throw refuse("epoch or base_offset is missing or invalid");
  const source = sourceOf(row["source"]);
  if (source === undefined) throw refuse("its source is invalid");
  return { topic: name, owner, epoch, state: state as TopicNodeState, incarnation, baseOffset, source };
}

function sourceOf(value: unknown): ContentSource | null | undefined {
  if (value === null || value === undefined) return null;
  const { owner, epoch } = value as Partial<ContentSource>;
  return typeof owner === "string" && isCount(epoch) ? { owner, epoch } : undefined;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
