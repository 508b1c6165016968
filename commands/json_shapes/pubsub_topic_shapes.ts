/** JSON output about topics, for operators. */
import * as z from "zod";
import { count, version } from "./common_shapes.ts";

const messageId = z.string();

export const pubsubTopicListShape = z.strictObject({
  version,
  topics: z.array(z.strictObject({
    topic: z.string(),
    server: z.string().describe("the server that has it"),
    there: z.boolean().describe("false: that server is not there, and the topic is unavailable"),
    epoch: count.describe("grows with every change of owner"),
    state: z.enum(["new", "moving", "stored", "sealed"]).describe("stored: served, if its server runs"),
  })),
});
export type PubsubTopicListJson = z.infer<typeof pubsubTopicListShape>;

export const pubsubTopicShowShape = z.strictObject({
  version,
  topic: z.string(),
  server: z.string(),
  epoch: count,
  first: messageId.describe("id of the oldest stored message; one above `end` if none is stored"),
  end: messageId.describe("the newest id that was given"),
  bytes: count.describe("what the messages take"),
  clients: count.describe("that the topic knows, subscribed or not"),
  plain_clients: count.describe("of those, without a session: they are never forgotten by the topic itself"),
  clients_max: count,
  subscriber_count: count,
  subscribers: z.array(z.strictObject({
    client: z.string(),
    position: messageId.describe("the last message that it had"),
    pending: count.describe("messages that wait for it"),
  })).describe("the slowest first, 1,000 at most"),
  damage: z.string().nullable().describe("damage to the rows of its clients, as a sentence; null if none is known"),
});
export type PubsubTopicShowJson = z.infer<typeof pubsubTopicShowShape>;

export const pubsubTopicDeletedShape = z.strictObject({
  version,
  topic: z.string(),
  server: z.string().describe("that had it"),
});
export type PubsubTopicDeletedJson = z.infer<typeof pubsubTopicDeletedShape>;

export const pubsubTopicRepairedShape = z.strictObject({
  version,
  topic: z.string(),
  server: z.string(),
  given_up: z.array(z.string()).describe("for people: the words may change; none: nothing was damaged"),
});
export type PubsubTopicRepairedJson = z.infer<typeof pubsubTopicRepairedShape>;

export const pubsubClientForgottenShape = z.strictObject({
  version,
  topic: z.string(),
  server: z.string(),
  client: z.string(),
});
export type PubsubClientForgottenJson = z.infer<typeof pubsubClientForgottenShape>;
