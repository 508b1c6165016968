/**
 * Publish/subscribe as a library. It is a separate entry, because it needs SQLite:
 *
 *     await using client = new PubsubClient("web1", { servers: "zk1,zk2,zk3" });
 *     await client.publisher("orders").put("order 17");
 *
 *     for await (const message of client.subscriber("orders").messages({ signal })) {
 *       await handle(message.text());
 *       await message.acknowledge();
 *     }
 */
import "./check_runtime.ts";

export { PubsubClient } from "./pubsub_client.ts";
export type { PubsubCallOptions, PubsubClientOptions } from "./pubsub_connection.ts";
export type { PutMessageOptions, TopicPublisher } from "./topic_publisher.ts";
export type {
  DeliveredMessage,
  FetchOptions,
  MessagesOptions,
  TopicPosition,
  TopicSubscriber,
} from "./topic_subscriber.ts";
export { TopicAdmin, type TopicAdminOptions, type TopicDeletion, type TopicEntry } from "./topic_admin.ts";
export type { TopicDetails } from "../pubsub/store/operations/topic_details.ts";
