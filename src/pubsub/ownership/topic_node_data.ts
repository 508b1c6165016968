/** A topic's node as bytes: JSON that an operator can read. Read strictly: what is not understood is not acted upon. */
import { BatonError } from "../../errors.ts";
import type { ContentSource, TopicNode, TopicNodeState } from "./topic_node.ts";

/** Another shape of nodes gets another number: an old baton must not take part in a new one's ownership. */
const layout = 1;
const states: readonly string[] = ["new", "moving", "stored", "sealed"] satisfies TopicNodeState[];

const utf8 = new TextEncoder();

/** The topic's name stands in it too: a long one is a hash in the path. */
export function formatTopicNode(topic: string, node: TopicNode): Uint8Array {
  const { baseOffset, ...others } = node;
  return utf8.encode(JSON.stringify({ layout, topic, ...others, base_offset: baseOffset }));
}

/** Throws CONFIG for data that no baton of this layout has written, or that is about another topic than `topic`. */
export function parseTopicNode(data: Uint8Array, path: string, topic?: string): TopicNode & { readonly topic: string } {
  const refuse = (what: string, cause?: unknown) =>
    new BatonError("CONFIG", `"${path}" is not a topic's node that this baton understands: ${what}`, { cause });
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(data));
  } catch (cause) {
    throw refuse("its data is not JSON", cause);
  }
  if (typeof value !== "object" || value === null) throw refuse("its data is not an object");
  const row = value as Readonly<Record<string, unknown>>;
  if (row["layout"] !== layout) throw refuse(`its layout is ${JSON.stringify(row["layout"])}, and this is ${layout}`);
  const { topic: name, owner, state, incarnation } = row;
  if (
    typeof name !== "string" || typeof owner !== "string" || typeof incarnation !== "string" ||
    !states.includes(`${state}`)
  ) {
    throw refuse("a topic, an owner, a state and an incarnation were wanted");
  }
  if (topic !== undefined && name !== topic) throw refuse(`it is about "${name}", and "${topic}" was wanted`);
  const { epoch, base_offset: baseOffset } = row;
  if (!isCount(epoch) || epoch < 1 || !isCount(baseOffset)) throw refuse("an epoch and a base_offset were wanted");
  const source = sourceOf(row["source"]);
  if (source === undefined) throw refuse("its source is no source");
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
