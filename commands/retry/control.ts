/** `baton retry-processor retry`, `cancel`, `pause`, `resume`: their words. What they do is in run_control.ts. */
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { toggle } from "../../src/config/value_types.ts";
import { type Call, defineCommand } from "../command.ts";
import { inspectSettings, whereFlag } from "./inspect.ts";

export const changeSettings = {
  ...inspectSettings,
  all: setting(toggle(), { flag: "--all", help: "all that wait", default: false }),
  where: whereFlag,
} satisfies SettingTable;

export type ChangeCall = Call<typeof changeSettings>;
export type ControlCall = Call<typeof inspectSettings>;

export const retryRetryCommand = defineCommand({
  name: "retry-processor retry",
  summary: "try messages that wait as soon as possible",
  usage: "ID… | --all [--where …] [options]",
  details: [
    "They are due now; run tries them. Exit 1 when one of them does not wait. For dead letters there is dlq redrive.",
  ],
  examples: [
    ["baton retry-processor retry 17", "now, and not in an hour"],
    ["baton retry-processor retry --all", "the backend is back"],
  ],
  settings: changeSettings,
  runsNothing: true,
  run: async (call) => (await import("./run_control.ts")).change(call, "retry"),
});

export const retryCancelCommand = defineCommand({
  name: "retry-processor cancel",
  summary: "give up messages that wait",
  usage: "ID… | --all [--where …] [options]",
  details: ["A try that has begun cannot be called back: exit 1 for a message in flight, and for one that is over."],
  examples: [["baton retry-processor cancel 17 18", "they are not tried again"]],
  settings: changeSettings,
  runsNothing: true,
  run: async (call) => (await import("./run_control.ts")).change(call, "cancel"),
});

export const retryPauseCommand = defineCommand({
  name: "retry-processor pause",
  summary: "try nothing until resume; messages are still stored",
  usage: "[options]",
  details: ["Holds for every processor of the store, also for one that starts later. What is in flight ends."],
  examples: [["baton retry-processor pause --name stock", "while the backend is being repaired"]],
  settings: inspectSettings,
  runsNothing: true,
  run: async (call) => (await import("./run_control.ts")).pause(call, true),
});

export const retryResumeCommand = defineCommand({
  name: "retry-processor resume",
  summary: "end a pause",
  usage: "[options]",
  details: ["What is due by now is tried as --rate and --concurrency of run allow."],
  examples: [["baton retry-processor resume --name stock", "it works again"]],
  settings: inspectSettings,
  runsNothing: true,
  run: async (call) => (await import("./run_control.ts")).pause(call, false),
});
