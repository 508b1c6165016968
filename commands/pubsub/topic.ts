/** `baton pubsub topic`: its words. What it does is in run_topic.ts. */
import { pubsubKeySettings } from "../../src/config/pubsub_settings.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/settings.ts";
import { toggle } from "../../src/config/value_types.ts";
import { type Call, defineCommand } from "../command.ts";
import type { ExitCode } from "../exit_codes.ts";

export const topicCommandSettings = {
  acceptLoss: setting(toggle(), {
    flag: "--accept-loss",
    help: "delete: also a topic that clients are subscribed to; repair: what is damaged is given up",
    default: false,
  }),
  json: setting(toggle(), { flag: "--json", help: "print one JSON object", default: false }),
  ...pubsubKeySettings,
  ...connectionSettings,
} satisfies SettingTable;

export type PubsubTopicCall = Call<typeof topicCommandSettings>;

export const topicWords = ["ls", "show", "delete", "repair"] as const;

export const pubsubTopicCommand = defineCommand({
  name: "pubsub topic",
  summary: "list topics, look at one, delete one, or give up what is damaged of it",
  usage: "ls | show TOPIC | delete TOPIC [--accept-loss] | repair TOPIC --accept-loss",
  details: [
    "ls lists the topics, the server of each, and whether it is there. show asks that server what the topic holds: messages, " +
    "clients, and how far each subscriber is behind, the slowest first.",
    "delete removes a topic with all that is stored of it. It is refused (64) while clients are subscribed, unless --accept-loss " +
    "says that what they have not had is lost. The next put or subscribe begins a new topic, whose message ids go on above those of " +
    "the old one; whoever was subscribed is told that it is not.",
    "repair is for a topic of which the server's disk has damaged something, which is refused with 74 until then: messages that " +
    "are damaged count as missed, clients that are damaged are forgotten, and all else is served as before.",
    "As for server move and forget, the service's key (--key) is needed where the service has one.",
  ],
  examples: [
    ["baton pubsub topic ls", "every topic, and its server"],
    ["baton pubsub topic show news", "what it holds, and who lags behind"],
    ["baton pubsub topic delete news", "refused while somebody is subscribed"],
    ["baton pubsub topic repair news --accept-loss", "after a get has ended with 74, damaged"],
  ],
  settings: topicCommandSettings,
  completes: topicWords,
  runsNothing: true,
  run: topic,
});

async function topic(call: PubsubTopicCall): Promise<ExitCode> {
  return await (await import("./run_topic.ts")).runTopic(call);
}
