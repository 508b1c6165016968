/** Options of `run` and `serve` for topics: client ID, proxies, and how to find them. */
import { pubsubClientSettings, pubsubKeySettings } from "../../src/config/pubsub_settings.ts";
import { type retryPolicySettings, retryTopicSettings } from "../../src/config/retry_settings.ts";
import type { SettingTable } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/settings.ts";
import { checkName } from "../../src/pubsub/client/client_limits.ts";
import { deadLetterDestinationOf } from "../../src/retry/dead_letters/dead_letter_destination.ts";
import type { TopicClients } from "../../src/retry/targets/topic_clients.ts";
import type { Call } from "../command.ts";

const { pubsubProxies, pubsubProxiesFile, pubsubServiceKey, pubsubRetryTimeout } = pubsubClientSettings;

export const topicSettings = {
  ...retryTopicSettings,
  pubsubProxies,
  pubsubProxiesFile,
  pubsubServiceKey,
  pubsubRetryTimeout,
  ...pubsubKeySettings,
  ...connectionSettings,
} satisfies SettingTable;

type TopicCall = Pick<Call<typeof topicSettings & typeof retryPolicySettings>, "values" | "sources" | "io">;

/** Null: no topic is used. `target`: the topic that messages are delivered to. Throws USAGE and CONFIG. */
export async function openTopicClients(
  call: TopicCall,
  folder: string,
  target: string | undefined,
): Promise<TopicClients | null> {
  const { values, sources } = call;
  const destination = deadLetterDestinationOf(values, sources);
  const named = [target, values.retryFromTopic, destination.kind === "topic" ? destination.topic : undefined];
  const topics = named.filter((topic) => topic !== undefined);
  if (topics.length === 0) return null;
  for (const topic of topics) checkName("topic", topic);
  const [{ lookupPlaceOf, proxyFinder }, { clientSecurity }, { TopicClients }] = await Promise.all([
    import("../pubsub/find_proxies.ts"),
    import("../pubsub/service_security.ts"),
    import("../../src/retry/targets/topic_clients.ts"),
  ]);
  const lookupPlace = lookupPlaceOf(call);
  const security = clientSecurity(values);
  return new TopicClients({
    findProxies: proxyFinder(call),
    timeoutMs: values.retryAttemptTimeout,
    attemptMs: Math.min(values.pubsubRetryTimeout, values.retryAttemptTimeout),
    ...(security === undefined ? {} : { socket: security }),
    ...(lookupPlace === undefined ? {} : { lookupPlace }),
    folder,
    clientId: values.retryClientId,
  });
}
