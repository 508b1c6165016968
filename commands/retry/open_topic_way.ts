/** The way to topics, for those who have one to go to. */
import { letterPlaceOf } from "./retry_rules.ts";
import type { retryPolicySettings } from "../../src/config/retry_settings.ts";
import type { SettingValues } from "../../src/config/setting.ts";
import type { TopicCall } from "./topic_words.ts";
import type { TopicWay } from "./topic_way.ts";

type TopicsCall = TopicCall & { readonly values: SettingValues<typeof retryPolicySettings> };

/** Null where no topic is named. `target`: the topic that messages go to. */
export async function openTopicWay(
  call: TopicsCall,
  folder: string,
  target: string | undefined,
): Promise<TopicWay | null> {
  const { values, sources } = call;
  const letters = letterPlaceOf(values, sources);
  const named = [target, values.retryFromTopic, letters.kind === "topic" ? letters.topic : undefined];
  const topics = named.filter((topic) => topic !== undefined);
  if (topics.length === 0) return null;
  const { checkTopic, TopicWay } = await import("./topic_way.ts");
  topics.forEach(checkTopic);
  return new TopicWay(call, folder, { timeoutMs: values.retryAttemptTimeout });
}
