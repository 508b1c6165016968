/** `baton retry-processor ls`, `show`, `stats`, `verify`: their words. What they do is in run_inspect.ts. */
import { retryRedactSettings, retryStoreSettings } from "../../src/config/retry_settings.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { integer, list, toggle } from "../../src/config/value_types.ts";
import { type Call, defineCommand } from "../command.ts";

export const jsonFlag = setting(toggle(), { flag: "--json", help: "print one JSON object", default: false });

export const whereFlag = setting(list("key=K|reason=R|error=TEXT"), {
  flag: "--where",
  once: true,
  help: "only messages with this key, this reason, this text somewhere in the last error; several: all of them",
});

export const limitFlag = setting(integer("count", { min: 1, max: 100_000 }), {
  flag: "--limit",
  help: "at most so many, the oldest first",
  default: 1000,
});

export const inspectSettings = {
  ...retryStoreSettings,
  json: jsonFlag,
} satisfies SettingTable;

export const listSettings = {
  ...inspectSettings,
  state: setting(list("state"), {
    flag: "--state",
    once: true,
    help: "only these: waiting, in_flight, done, dead, dropped, cancelled",
    unset: "all",
  }),
  where: whereFlag,
  limit: limitFlag,
} satisfies SettingTable;

export const showSettings = {
  ...inspectSettings,
  ...retryRedactSettings,
  body: setting(toggle(), { flag: "--body", help: "print the body, and nothing else", default: false }),
} satisfies SettingTable;

export type InspectCall = Call<typeof inspectSettings>;
export type ListCall = Call<typeof listSettings>;
export type ShowCall = Call<typeof showSettings>;

export const retryLsCommand = defineCommand({
  name: "retry-processor ls",
  summary: "list stored messages",
  usage: "[options]",
  details: [
    "TRIES counts tries that have ended, and behind a + those that ended with their processor. Changes nothing.",
  ],
  examples: [
    ["baton retry-processor ls --name stock", "all that is stored, and what was done lately"],
    ["baton retry-processor ls --state waiting --where error=timeout", "what waits because of a timeout"],
  ],
  settings: listSettings,
  runsNothing: true,
  run: async (call) => (await import("./run_inspect.ts")).list(call),
});

export const retryShowCommand = defineCommand({
  name: "retry-processor show",
  summary: "show a stored message, or print its body",
  usage: "ID [options]",
  details: [
    "The number behind the dash of an id is enough. A message that is over has no body any more, a dead letter has.",
    "Credentials in headers and URLs are shown as [redacted] (--redact).",
  ],
  examples: [
    ["baton retry-processor show 9x4kq2mh-17", "what is known of it"],
    ["baton retry-processor show 17 --body | xmllint -", "its body"],
  ],
  settings: showSettings,
  runsNothing: true,
  run: async (call) => (await import("./run_inspect.ts")).show(call),
});

export const retryStatsCommand = defineCommand({
  name: "retry-processor stats",
  summary: "how many messages are in which state",
  usage: "[options]",
  details: ["done, dropped and cancelled count since the store was made. Changes nothing."],
  examples: [["baton retry-processor stats --name stock", "how much waits, and since when"]],
  settings: inspectSettings,
  runsNothing: true,
  run: async (call) => (await import("./run_inspect.ts")).stats(call),
});

export const retryVerifyCommand = defineCommand({
  name: "retry-processor verify",
  summary: "read all of a store, and say whether it is whole",
  usage: "[options]",
  details: ["May be done while the store is in use. 74 when something does not fit together; changes nothing."],
  examples: [["baton retry-processor verify --name stock", "after a disk has had trouble"]],
  settings: inspectSettings,
  runsNothing: true,
  run: async (call) => (await import("./run_inspect.ts")).verify(call),
});
