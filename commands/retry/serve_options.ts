/** Options of `baton retry-processor serve`. */
import {
  retryLimitSettings,
  retryPolicySettings,
  retryProcessorSettings,
  retryRedactSettings,
  retryServeSettings,
  retryStoreSettings,
} from "../../src/config/retry_settings.ts";
import { logSettings } from "../../src/config/command_settings.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { duration, text, toggle } from "../../src/config/value_types.ts";
import type { Call } from "../command.ts";
import { topicSettings } from "./topic_options.ts";

export const serveSettings = {
  ...retryStoreSettings,
  listen: setting(text("host:port|unix:PATH"), {
    flag: "--listen",
    once: true,
    help: "listen address; :PORT means this machine only, port 0 any free port",
    default: "127.0.0.1:0",
  }),
  url: setting(text("url"), { flag: "--url", help: "URL of the backend; the path of a request is appended" }),
  noProcess: setting(toggle(), {
    flag: "--no-process",
    help: "only serve and store; baton retry-processor run tries stored messages",
    default: false,
  }),
  killAfter: setting(duration(), {
    flag: "--kill-after",
    help: "time between the stop signal and SIGKILL for the command of --dead-letter exec:",
    default: 5000,
  }),
  ...retryServeSettings,
  ...logSettings,
  ...retryPolicySettings,
  ...retryRedactSettings,
  ...retryProcessorSettings,
  ...retryLimitSettings,
  ...topicSettings,
} satisfies SettingTable;

export type ServeCall = Call<typeof serveSettings>;
