/** Defines the options of `baton retry-processor call`. */
import {
  retryLimitSettings,
  retryPolicySettings,
  retryStoreSettings,
} from "../../src/retry/settings/retry_settings.ts";
import { flagSetting, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { durationType, textType } from "../../src/base/config/value_types.ts";
import { type CommandCall, shellLineSettings } from "../command.ts";
import { httpRequestSettings } from "./http_options.ts";

export const callSettings = {
  ...shellLineSettings,
  ...retryStoreSettings,
  key: flagSetting("--key", textType("key"), {
    help: "run --order key tries messages with the same key one after the other",
  }),
  url: flagSetting("--url", textType("url"), {
    once: true,
    basic: true,
    help: "send stdin to this URL by HTTP, instead of running a command",
  }),
  ...httpRequestSettings,
  noStdin: toggleSetting("--no-stdin", {
    help: "give the command an empty stdin and read none: for use in a loop that reads stdin itself",
  }),
  killAfter: flagSetting("--kill-after", durationType(), {
    help: "time between the stop signal and SIGKILL for a command that exceeds --attempt-timeout",
    default: 5000,
  }),
  ...retryPolicySettings,
  ...retryLimitSettings,
} satisfies SettingTable;

export type RetryCallCommandCall = CommandCall<typeof callSettings>;
