/** `baton retry-processor dlq`: its words. What it does is in run_dlq.ts. */
import { retryRedactSettings } from "../../src/config/retry_settings.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { text, toggle } from "../../src/config/value_types.ts";
import { type Call, defineCommand } from "../command.ts";
import { inspectSettings, limitFlag, whereFlag } from "./inspect.ts";

export const dlqSettings = {
  ...inspectSettings,
  ...retryRedactSettings,
  all: setting(toggle(), { flag: "--all", help: "redrive, purge: all dead letters", default: false }),
  where: whereFlag,
  limit: { ...limitFlag, help: `ls: ${limitFlag.help}` },
  rate: setting(text("count/time"), {
    flag: "--rate",
    help: "redrive: so many in so long, such as 10/s",
    unset: "all at once",
  }),
  body: setting(toggle(), { flag: "--body", help: "show: print the body, and nothing else", default: false }),
} satisfies SettingTable;

export type DlqCall = Call<typeof dlqSettings>;

export const dlqOperations = ["ls", "show", "redrive", "purge", "export"] as const;

const { all, where, limit, rate, body } = dlqSettings;

/** What each of them has no use for: whoever purges with --limit has to hear that everything would go. */
export const dlqFlagsNotOf: Readonly<Record<typeof dlqOperations[number], SettingTable>> = {
  ls: { all, rate, body, ...retryRedactSettings },
  show: { all, where, limit, rate },
  redrive: { limit, body, ...retryRedactSettings },
  purge: { limit, rate, body, ...retryRedactSettings },
  export: { all, limit, rate, body },
};

export const retryDlqCommand = defineCommand({
  name: "retry-processor dlq",
  summary: "look at dead letters, begin them again, or give them up",
  usage: "ls | show ID | redrive ID…|--all | purge ID…|--all | export [options]",
  details: [
    "ls and show are those of the store, for dead letters. redrive lets dead letters begin again, with all their tries; each once " +
    "by a command, though it dies again meanwhile. Stopped in the middle it can be called again. purge gives them up for good. " +
    "export prints each as a line of JSON, with its body, and changes nothing. It and show leave credentials out (--redact); redrive sends them. " +
    "A damaged dead letter is left out, and export ends with 74.",
    "--where chooses: key=…, reason=exhausted|too_old|final|crashed|damaged, error=TEXT.",
  ],
  examples: [
    ["baton retry-processor dlq ls --name stock", "what was given up, and why"],
    ["baton retry-processor dlq redrive --all --where reason=exhausted --rate 10/s", "the backend is back"],
    ["baton retry-processor dlq export >dead.jsonl && baton retry-processor dlq purge --all", "put them elsewhere"],
  ],
  settings: dlqSettings,
  completes: dlqOperations,
  runsNothing: true,
  run: async (call) => (await import("./run_dlq.ts")).dlq(call),
});
