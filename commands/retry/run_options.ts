/** Options of `baton retry-processor run`. */
import {
  retryLimitSettings,
  retryPolicySettings,
  retryProcessorSettings,
  retryRedactSettings,
  retryStoreSettings,
} from "../../src/config/retry_settings.ts";
import { logSettings } from "../../src/config/command_settings.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { duration, list, text, toggle } from "../../src/config/value_types.ts";
import type { Call } from "../command.ts";
import { topicSettings } from "./topic_options.ts";

export const runSettings = {
  ...retryStoreSettings,
  exec: setting(text("line"), {
    flag: "--exec",
    once: true,
    help: "run this line of shell for each message, which is its stdin, instead of the message's own command",
  }),
  url: setting(text("url"), {
    flag: "--url",
    once: true,
    help: "send each message there by HTTP, instead of running a command",
  }),
  topic: setting(text("topic"), {
    flag: "--topic",
    once: true,
    help: "put each message into this publish/subscribe topic, once, instead of running a command",
  }),
  method: setting(text("method"), {
    flag: "--method",
    help: "the method for messages that bring none of their own; one that carries a body",
    default: "POST",
  }),
  headers: setting(list("name:value"), {
    flag: "--header",
    once: true,
    help: "headers for --url; one that a message brings goes before",
  }),
  once: setting(toggle(), {
    flag: "--once",
    help: "try what is due now, once, and end: for a crontab",
    default: false,
  }),
  untilEmpty: setting(toggle(), { flag: "--until-empty", help: "end when no message waits any more", default: false }),
  killAfter: setting(duration(), {
    flag: "--kill-after",
    help: "how long a command that is told to end has before it is killed",
    default: 5000,
  }),
  ...logSettings,
  ...retryPolicySettings,
  ...retryRedactSettings,
  ...retryProcessorSettings,
  ...retryLimitSettings,
  ...topicSettings,
} satisfies SettingTable;

export type RunCall = Call<typeof runSettings>;
