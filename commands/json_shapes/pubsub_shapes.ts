/** Defines the JSON about publish/subscribe: clients, topics and servers. */
import * as z from "zod";
import type {
  SubscriberRow,
  TopicDetailsRow,
  TopicListRow,
  TopicServerDetails,
} from "../../src/base/rows/topic_row.ts";
import { countShape, type DeepReadonly, instantShape, objectVersionShape } from "./common_shapes.ts";

const topic = z.string();
const server = z.string().describe("ID of the server that has the topic");
const messageId = z.string().describe("decimal text; IDs increase and are never reused");
const pending = countShape.describe("undelivered messages of this client");
const topicBytes = countShape.describe("size of the messages of the topic");
const ownership = {
  topic,
  epoch: countShape.describe("increases with each change of the owner"),
  state: z.enum(["new", "moving", "stored", "sealed"]).describe("stored: available while its server is connected"),
};
const lost = z.array(topic).describe("topics that start again, empty");
const returned = z.array(topic).describe("complete topics that returned to the server they came from");

const takenOver = z.array(topic).describe("topics of a database that another server has now; nothing of them is lost");

const loss = z.enum(["certain", "possible"]).nullable();

export const pubsubMessageJsonShape = z.strictObject({
  version: objectVersionShape,
  topic,
  id: messageId,
  redelivered: z.boolean().describe("true if it may have been delivered before"),
  msg_id: z.string().nullable().describe("message ID that the publisher set with --msg-id"),
  missed: countShape.describe(
    "messages before this one that retention, a repair or a fail-over of the database has removed",
  ),
  loss: loss.describe("whether a fail-over of the database has lost messages before this one that were answered OK"),
  body: z.string().optional().describe("only if the message is UTF-8"),
  body_base64: z.string().optional().describe("only if the message is not UTF-8"),
});
export type PubsubMessageJson = z.infer<typeof pubsubMessageJsonShape>;

export const pubsubPutJsonShape = z.strictObject({
  version: objectVersionShape,
  topic,
  messages: countShape.describe("messages that this call has put"),
  without_subscribers: countShape.describe("those that reach no client, because none was subscribed to the topic"),
  loss: loss.describe("whether a fail-over of the database has lost earlier messages that were answered OK"),
});
export type PubsubPutJson = z.infer<typeof pubsubPutJsonShape>;

export const pubsubPendingJsonShape = z.strictObject({ version: objectVersionShape, topic, pending });
export type PubsubPendingJson = z.infer<typeof pubsubPendingJsonShape>;

export const pubsubInfoJsonShape = z.strictObject({
  version: objectVersionShape,
  topic,
  subscribed: z.boolean(),
  position: z.string().describe("last message that this client received; -1 if there is none"),
  first: messageId.describe("ID of the oldest stored message, or of the next one"),
  end: messageId.describe("ID of the newest message"),
  pending,
  subscribers: countShape,
  bytes: topicBytes,
  unresolved_puts: countShape.describe("puts of this client into the topic with an unknown outcome"),
});
export type PubsubInfoJson = z.infer<typeof pubsubInfoJsonShape>;

export const pubsubTopicsJsonShape = z.strictObject({ version: objectVersionShape, topics: z.array(topic) });
export type PubsubTopicsJson = z.infer<typeof pubsubTopicsJsonShape>;

const serverDetails = z.strictObject({
  server: z.string().describe("ID of the server"),
  endpoint: z.string().nullable().describe(
    "null if it is not connected; its topics are unavailable, unless another server has the same store",
  ),
  store: z.string().nullable().describe("ID of the database that it shares with other servers; null: a folder"),
  draining: z.boolean().describe("true if it gets no new topics"),
  topic_count: countShape,
  topics: z.array(z.strictObject(ownership)),
}) satisfies z.ZodType<TopicServerDetails>;
export const pubsubServerShape = serverDetails.omit({ topics: true });

export const pubsubServersJsonShape = z.strictObject({ version: objectVersionShape, servers: z.array(serverDetails) });
export type PubsubServersJson = DeepReadonly<z.infer<typeof pubsubServersJsonShape>>;

export const pubsubMovesJsonShape = z.strictObject({
  version: objectVersionShape,
  moves: z.array(z.strictObject({
    topic,
    from: z.string().nullable().describe("previous server of the topic"),
    to: z.string(),
    outcome: z.enum(["moved", "there", "kept", "unknown", "planned", "no topic"]).describe(
      "there: it was at that server before; kept: certainly not moved; unknown: no response; planned: with --dry-run",
    ),
    why: z.string().nullable().describe("text for people; it may change"),
  })),
});
export type PubsubMovesJson = z.infer<typeof pubsubMovesJsonShape>;

export const pubsubForgottenJsonShape = z.strictObject({
  version: objectVersionShape,
  server: z.string(),
  lost,
  returned,
  taken_over: takenOver,
});
export type PubsubForgottenJson = z.infer<typeof pubsubForgottenJsonShape>;

export const pubsubRestoredJsonShape = z.strictObject({
  version: objectVersionShape,
  server: z.string().nullable().describe("null for the database of --store"),
  restored: z.array(topic).describe("topics in the state of the copy, or of the database"),
  lost: lost.describe("topics that are not in the copy; they start again, empty"),
  returned,
  left: z.array(topic).describe("topics whose owner is unknown; they remain unavailable"),
});
export type PubsubRestoredJson = z.infer<typeof pubsubRestoredJsonShape>;

export const pubsubVerifyJsonShape = z.strictObject({
  version: objectVersionShape,
  folder: z.string(),
  topics: countShape,
  messages: countShape,
  clients: countShape,
  problems: z.array(z.string()).describe("empty if there is no damage"),
});
export type PubsubVerifyJson = z.infer<typeof pubsubVerifyJsonShape>;

export const pubsubTopicShape = z.strictObject({
  ...ownership,
  server,
  there: z.boolean().describe(
    "false if the topic is unavailable: its server is not connected, and no other server has its store",
  ),
  served: z.boolean().describe(
    "true if its server is connected; else another server of its store takes it over with the next request",
  ),
}) satisfies z.ZodType<TopicListRow>;

export const pubsubTopicListJsonShape = z.strictObject({
  version: objectVersionShape,
  topics: z.array(pubsubTopicShape),
});
export type PubsubTopicListJson = DeepReadonly<z.infer<typeof pubsubTopicListJsonShape>>;

const subscriber = z.strictObject({
  client: z.string(),
  position: messageId.describe("last message that it received"),
  pending: countShape.describe("undelivered messages"),
}) satisfies z.ZodType<SubscriberRow>;

const topicDetails = z.strictObject({
  topic,
  server,
  epoch: ownership.epoch,
  first: messageId.describe("ID of the oldest stored message; end + 1 if there is none"),
  end: messageId.describe("ID of the newest message"),
  bytes: topicBytes,
  clients: countShape.describe("clients that the topic knows, subscribed or not"),
  plain_clients: countShape.describe("clients without a session among them; the topic never forgets these by itself"),
  max_clients: countShape,
  subscriber_count: countShape,
  subscribers: z.array(subscriber).describe("the slowest first, at most 1,000"),
  oldest: instantShape.nullable().describe(
    "when the oldest undelivered message was stored; null if none is",
  ),
  damage: z.string().nullable().describe("damaged data about clients, as text for people; null if none is known"),
}) satisfies z.ZodType<TopicDetailsRow>;

export const pubsubTopicShowJsonShape = z.strictObject({ version: objectVersionShape, ...topicDetails.shape });
export type PubsubTopicShowJson = DeepReadonly<z.infer<typeof pubsubTopicShowJsonShape>>;

export const pubsubTopicDeletedJsonShape = z.strictObject({ version: objectVersionShape, topic, server });
export type PubsubTopicDeletedJson = z.infer<typeof pubsubTopicDeletedJsonShape>;

export const pubsubTopicRepairedJsonShape = z.strictObject({
  version: objectVersionShape,
  topic,
  server,
  given_up: z.array(z.string()).describe("lost data, as text for people that may change; empty if nothing was damaged"),
});
export type PubsubTopicRepairedJson = z.infer<typeof pubsubTopicRepairedJsonShape>;

export const pubsubClientForgottenJsonShape = z.strictObject({
  version: objectVersionShape,
  topic,
  server,
  client: z.string(),
});
export type PubsubClientForgottenJson = z.infer<typeof pubsubClientForgottenJsonShape>;
