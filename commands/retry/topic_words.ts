/** What run and serve take for topics: from where, under which name, and by which proxies. */
import { pubsubClientSettings, pubsubKeySettings } from "../../src/config/pubsub_settings.ts";
import { retryTopicSettings } from "../../src/config/retry_settings.ts";
import type { SettingTable } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/settings.ts";
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

export type TopicCall = Pick<Call<typeof topicSettings>, "values" | "sources" | "io">;
