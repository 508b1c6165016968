/** Defines the options of `run` and `serve`, and opens their topic clients. */
import { logSettings } from "../../src/coordination/settings/command_settings.ts";
import { pubsubClientSettings, pubsubKeySettings } from "../../src/pubsub/settings/pubsub_settings.ts";
import {
  retryLimitSettings,
  retryPolicySettings,
  retryProcessorSettings,
  retryRedactSettings,
  retryTopicSettings,
} from "../../src/retry/settings/retry_settings.ts";
import type { SettingTable } from "../../src/base/config/setting.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { checkPubsubName } from "../../src/pubsub/client/client_limits.ts";
import { readDeadLetterDestination } from "../../src/retry/dead_letters/dead_letter_destination.ts";
import type { StoreDatabase, StoreLocation } from "../../src/retry/queue/open_retry_store.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import type { ClientStates, TopicClients } from "../../src/retry/targets/topic_clients.ts";
import type { CommandCall } from "../command.ts";

const { pubsubProxies, pubsubProxiesFile, pubsubServiceKey, pubsubRetryTimeout } = pubsubClientSettings;

export const processorSettings = {
  ...logSettings,
  ...retryPolicySettings,
  ...retryRedactSettings,
  ...retryProcessorSettings,
  ...retryLimitSettings,
  ...retryTopicSettings,
  pubsubProxies,
  pubsubProxiesFile,
  pubsubServiceKey,
  pubsubRetryTimeout,
  ...pubsubKeySettings,
  ...connectionSettings,
} satisfies SettingTable;

/**
 * Opens the topic clients of a processor. Returns null if no topic is used. `target` is the topic to which messages are
 * delivered. Throws USAGE or CONFIG.
 */
export async function openTopicClients(
  call: Pick<CommandCall<typeof processorSettings>, "values" | "sources" | "io">,
  location: StoreLocation,
  target: string | undefined,
): Promise<TopicClients | null> {
  const { values, sources } = call;
  const destination = readDeadLetterDestination(values, sources);
  const named = [target, values.retryFromTopic, destination.kind === "topic" ? destination.topic : undefined];
  const topics = named.filter((topic) => topic !== undefined);
  if (topics.length === 0) return null;
  for (const topic of topics) checkPubsubName("topic", topic);
  const [{ proxyLookupOptions }, { readPubsubClientSecurity }, { FolderClientStates, TopicClients }] = await Promise
    .all([
      import("../pubsub/find_proxies.ts"),
      import("../pubsub/service_security.ts"),
      import("../../src/retry/targets/topic_clients.ts"),
    ]);
  const security = readPubsubClientSecurity(values);
  const states = location.database === null
    ? await FolderClientStates.open(location.folder)
    : await openDatabaseStates(location.database, location.name);
  return new TopicClients({
    ...proxyLookupOptions(call),
    timeoutMs: values.retryAttemptTimeout,
    attemptMs: Math.min(values.pubsubRetryTimeout, values.retryAttemptTimeout),
    ...(security === undefined ? {} : { socket: security }),
    states,
    clientId: values.retryClientId,
  });
}

/**
 * Opens the states of the topic clients. Creates the tables of the store before, because the store is opened only
 * later.
 */
async function openDatabaseStates(database: StoreDatabase, name: string): Promise<ClientStates> {
  const [{ DatabaseClientStates }, { PostgresRetryStore }] = await Promise.all([
    import("../../src/retry/targets/database_client_states.ts"),
    import("../../src/retry/queue/postgres/postgres_retry_store.ts"),
  ]);
  await PostgresRetryStore.prepare(database);
  return await DatabaseClientStates.open(database, { name, clock: systemClock() });
}
