/** `baton retry-processor submit`: its words. What it does is in run_submit.ts. */
import { retryLimitSettings, retryStoreSettings } from "../../src/config/retry_settings.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { text, toggle } from "../../src/config/value_types.ts";
import { type Call, defineCommand } from "../command.ts";
import type { ExitCode } from "../exit_codes.ts";

export const submitSettings = {
  ...retryStoreSettings,
  lines: setting(toggle(), { flag: "--lines", help: "a message from each line, without its newline", default: false }),
  key: setting(text("key"), {
    flag: "--key",
    help: "messages with the same key are tried one after the other by run --order key",
  }),
  json: setting(toggle(), { flag: "--json", help: "print what was stored as one JSON object", default: false }),
  ...retryLimitSettings,
} satisfies SettingTable;

export type SubmitCall = Call<typeof submitSettings>;

export const retrySubmitCommand = defineCommand({
  name: "retry-processor submit",
  summary: "store a message, or one from each line, to be tried by run",
  usage: "[FILE] [options] [-- CMD…]",
  details: [
    "Stores FILE, or stdin (-, or no FILE), as one message, and prints its id when it is on the disk; with --lines one from each line. " +
    "It was not tried yet: its first try counts as one of N+1. What it is for stands behind --, or run --exec and run --url say so.",
    "When --lines is stopped in the middle, stderr says how many lines are stored: from the first on, none left out.",
  ],
  examples: [
    ["baton retry-processor submit order.xml --name orders", "one message; its id on stdout"],
    [
      "baton retry-processor submit --lines <ids.txt -- ./propagate.sh",
      "a message from each line, each for this command",
    ],
  ],
  settings: submitSettings,
  storesCommand: true,
  completes: "files",
  run: submit,
});

async function submit(call: SubmitCall): Promise<ExitCode> {
  return await (await import("./run_submit.ts")).runSubmit(call);
}
