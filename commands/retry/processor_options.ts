/** Options of `run` and `serve`, and the topic clients that they name. */
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
import {
  connectionSettings,
  traceSettings,
  wantsTraces,
} from "../../src/coordination/settings/coordination_settings.ts";
import { checkPubsubName } from "../../src/pubsub/client/client_limits.ts";
import { readDeadLetterDestination } from "../../src/retry/dead_letters/dead_letter_destination.ts";
import type { StoreDatabase, StoreLocation } from "../../src/retry/queue/open_retry_store.ts";
import type { HttpHeaders } from "../../src/base/http/http_headers.ts";
import type { TrySpan } from "../../src/retry/targets/try_span.ts";
import type { Target } from "../../src/retry/targets/target.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import type { Log } from "../../src/base/support/log.ts";
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
  ...traceSettings,
  ...connectionSettings,
} satisfies SettingTable;

/** Null: no topic is used. `target`: the topic that messages are delivered to. Throws USAGE and CONFIG. */
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
    ? new FolderClientStates(location.folder)
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

/** The tables are made before, as by the store that is opened later. */
async function openDatabaseStates(database: StoreDatabase, name: string): Promise<ClientStates> {
  const [{ DatabaseClientStates }, { PostgresRetryStore }] = await Promise.all([
    import("../../src/retry/targets/database_client_states.ts"),
    import("../../src/retry/queue/postgres/postgres_retry_store.ts"),
  ]);
  await PostgresRetryStore.prepare(database);
  return await DatabaseClientStates.open(database, { name, clock: systemClock() });
}

export interface ProcessorTraces extends AsyncDisposable {
  wrap(target: Target, storeName: string): Promise<Target>;
  /** `headers`: those of the request. */
  beginFirstTry(storeName: string, headers: HttpHeaders): TrySpan;
}

/** Null: no traces are sent. */
export async function openProcessorTraces(
  { values, io }: Pick<CommandCall<typeof processorSettings>, "values" | "io">,
  log: Log,
): Promise<ProcessorTraces | null> {
  if (!wantsTraces(io.env, values)) return null;
  const [{ readBuildFacts }, { TraceSource }, { firstTrySpan }] = await Promise.all([
    import("../../src/base/support/build.ts"),
    import("../../src/base/trace/trace_source.ts"),
    import("../../src/retry/targets/try_span.ts"),
  ]);
  const { release: version } = readBuildFacts();
  const source = new TraceSource({
    env: io.env,
    version,
    clock: systemClock(),
    passAuth: false,
    onProblem: (sentence) => log("warning", "traces_lost", sentence),
  });
  return {
    async wrap(target, storeName) {
      const { tracedTarget } = await import("../../src/retry/targets/traced_target.ts");
      return tracedTarget(target, source, storeName);
    },
    beginFirstTry: (storeName, headers) => firstTrySpan(source, storeName, headers),
    [Symbol.asyncDispose]: () => source.close(),
  };
}
