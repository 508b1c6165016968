/** JSON output of publish/subscribe clients. */
import * as z from "zod";
import { count, version } from "./common_shapes.ts";

const messageId = z.string().describe("a decimal text; ids grow, and none is given twice");

export const pubsubMessageShape = z.strictObject({
  version,
  topic: z.string(),
  id: messageId,
  redelivered: z.boolean().describe("it may have been handed out before"),
  msg_id: z.string().nullable().describe("the key that its publisher gave it by --msg-id"),
  body: z.string().optional().describe("where the message is UTF-8"),
  body_base64: z.string().optional().describe("where it is not"),
});
export type PubsubMessageJson = z.infer<typeof pubsubMessageShape>;

export const pubsubPendingShape = z.strictObject({
  version,
  topic: z.string(),
  pending: count.describe("messages that wait for this client"),
});
export type PubsubPendingJson = z.infer<typeof pubsubPendingShape>;

export const pubsubInfoShape = z.strictObject({
  version,
  topic: z.string(),
  subscribed: z.boolean(),
  position: z.string().describe("the last message that this client had; -1 for none"),
  first: messageId.describe("id of the oldest stored message; of the next message if none is stored"),
  end: messageId.describe("of the newest that was given an id"),
  pending: count.describe("messages that wait for this client"),
  subscribers: count,
  bytes: count.describe("what the topic's messages take"),
  unresolved_puts: count.describe("this client's puts into the topic whose outcome it does not know"),
});
export type PubsubInfoJson = z.infer<typeof pubsubInfoShape>;

export const pubsubTopicsShape = z.strictObject({ version, topics: z.array(z.string()) });
export type PubsubTopicsJson = z.infer<typeof pubsubTopicsShape>;

export const pubsubBenchShape = z.strictObject({
  version,
  topic: z.string(),
  messages: count,
  bytes: count.describe("of each message"),
  puts_per_second: count,
  gets_per_second: count,
});
export type PubsubBenchJson = z.infer<typeof pubsubBenchShape>;
