/** Options of the commands that look into a message store. */
import { retryRedactSettings, retryStoreSettings } from "../../src/config/retry_settings.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { integer, list, toggle } from "../../src/config/value_types.ts";
import type { Call } from "../command.ts";

export const jsonFlag = setting(toggle(), { flag: "--json", help: "print one JSON object", default: false });

export const whereFlag = setting(list("key=K|reason=R|error=TEXT"), {
  flag: "--where",
  once: true,
  help: "only messages with this key, this reason, or this text in the last error; several conditions must all match",
});

export const limitFlag = setting(integer("count", { min: 1, max: 100_000 }), {
  flag: "--limit",
  help: "print at most N messages, the oldest first",
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
    help: "only messages in these states: waiting, in_flight, done, dead, dropped, cancelled",
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
