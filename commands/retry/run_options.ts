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
    help: "run this shell command for each message, with the body as stdin, instead of the message's own command",
  }),
  url: setting(text("url"), {
    flag: "--url",
    once: true,
    help: "send each message to this URL by HTTP, instead of running a command",
  }),
  topic: setting(text("topic"), {
    flag: "--topic",
    once: true,
    help: "put each message into this publish/subscribe topic, once, instead of running a command",
  }),
  method: setting(text("method"), {
    flag: "--method",
    help: "HTTP method for messages without their own; it must have a body",
    default: "POST",
  }),
  headers: setting(list("name:value"), {
    flag: "--header",
    once: true,
    help: "headers for --url; headers of a message override them",
  }),
  once: setting(toggle(), {
    flag: "--once",
    help: "try each message that is due now once, then end: for a crontab",
    default: false,
  }),
  untilEmpty: setting(toggle(), { flag: "--until-empty", help: "end when no message is waiting", default: false }),
  killAfter: setting(duration(), {
    flag: "--kill-after",
    help: "time between the stop signal and SIGKILL for a command",
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
