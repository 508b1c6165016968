/** `baton retry-processor call`: its words. What it does is in run_call.ts. */
import { retryLimitSettings, retryPolicySettings, retryStoreSettings } from "../../src/config/retry_settings.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { duration, text, toggle } from "../../src/config/value_types.ts";
import { type Call, defineCommand } from "../command.ts";
import type { ExitCode } from "../exit_codes.ts";

export const callSettings = {
  ...retryStoreSettings,
  key: setting(text("key"), {
    flag: "--key",
    help: "messages with the same key are tried one after the other by run --order key",
  }),
  noStdin: setting(toggle(), {
    flag: "--no-stdin",
    help: "the command reads nothing, and nothing is read for it: for a loop that reads stdin itself",
    default: false,
  }),
  killAfter: setting(duration(), {
    flag: "--kill-after",
    help: "how long a command that ran for --attempt-timeout has to end before it is killed",
    default: 5000,
  }),
  ...retryPolicySettings,
  ...retryLimitSettings,
} satisfies SettingTable;

export type CallCall = Call<typeof callSettings>;

export const retryCallCommand = defineCommand({
  name: "retry-processor call",
  summary: "run a command now; if it fails, store it and its stdin to be tried again",
  usage: "[options] -- CMD…",
  details: [
    "Runs the command with what comes on stdin. When it ends with 0 nothing is stored, and the exit code is 0. When it fails in a " +
    "way that is worth another try, its words, its working directory and its stdin are stored, never its environment; then the " +
    "exit code is 75: accepted, not delivered yet. baton retry-processor run tries it again.",
    "A code that no repetition mends (64, 65, 77, 78, 126, 127, or --no-retry-on) makes it a dead letter at once, and is passed on. " +
    "When it could not be stored stderr says NOT STORED and the command's own code is passed on; 85 when the store is full.",
    "75 is only given when the message is on the disk. Stopped by SIGINT, it stores nothing.",
    "Give call and run the same policy: section [retry] of the configuration file is read by both.",
  ],
  examples: [
    ["baton retry-processor call --name propagate -- ./propagate.sh <body.json", "first try now; 75: it is stored"],
    [
      "baton retry-processor call -- baton lock -w 2s articles/7 -- ./propagate.sh 7",
      "what could not get its lock is tried later",
    ],
    ["baton retry-processor call --key order-7 -- ./send.sh 7 <order.xml", "in order with what has the same key"],
  ],
  settings: callSettings,
  storesCommand: true,
  run: call,
});

async function call(call: CallCall): Promise<ExitCode> {
  return await (await import("./run_call.ts")).runCall(call);
}
