/**
 * Defines the options of the commands that print the content of a message store, and parses the values of `--where` and
 * `--state`.
 */
import { retryRedactSettings, retryStoreSettings } from "../../src/retry/settings/retry_settings.ts";
import { flagSetting, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { integerType, listType } from "../../src/base/config/value_types.ts";
import { BatonError } from "../../src/base/errors.ts";
import { deathReasons, type MessageState, messageStates } from "../../src/retry/queue/message_life.ts";
import type { CommandStore, MessageConditions } from "../../src/retry/queue/store_methods.ts";
import { didYouMean } from "../../src/base/support/did_you_mean.ts";
import { openCommandStore } from "../../src/retry/queue/open_retry_store.ts";
import { readStoreLocation } from "../../src/retry/queue/retry_store_location.ts";
import type { CommandCall } from "../command.ts";

export const jsonFlag = toggleSetting("--json", { help: "print one JSON object" });

export const whereFlag = flagSetting("--where", listType("key=K|reason=R|error=TEXT"), {
  once: true,
  help: "only messages with this key, this reason, or this text in the last error; several conditions must all match",
});

export const limitFlag = flagSetting("--limit", integerType("count", { min: 1, max: 100_000 }), {
  help: "print at most N messages, the oldest first",
  default: 1000,
});

export const inspectSettings = {
  ...retryStoreSettings,
  json: jsonFlag,
} satisfies SettingTable;

export const listSettings = {
  ...inspectSettings,
  state: flagSetting("--state", listType("state"), {
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
  body: toggleSetting("--body", { help: "print the body, and nothing else" }),
} satisfies SettingTable;

export type InspectCall = CommandCall<typeof inspectSettings>;
export type ListCall = CommandCall<typeof listSettings>;
export type ShowCall = CommandCall<typeof showSettings>;

const fields = ["key", "reason", "error"] as const;

/**
 * Parses the conditions of `--where`: `key=K`, `reason=R` and `error=TEXT`, which is a part of the last error. Throws
 * USAGE.
 */
export function parseWhere(written: readonly string[] | undefined): MessageConditions {
  const filter: { key?: string; reason?: string; error?: string } = {};
  for (const condition of written ?? []) {
    const at = condition.indexOf("=");
    const name = condition.slice(0, at);
    const field = fields.find((one) => one === name);
    if (field === undefined || at < 0) {
      throw new BatonError("USAGE", `--where: "${condition}" is not a condition: use key=…, reason=… or error=…`);
    }
    const value = condition.slice(at + 1);
    if (field === "reason") requireReason(value);
    filter[field] = value;
  }
  return filter;
}

function requireReason(word: string): void {
  if (deathReasons.some((reason) => reason === word)) return;
  const hint = didYouMean(word, deathReasons);
  throw new BatonError("USAGE", `--where: "${word}" is not a reason: use ${deathReasons.join(", ")}${hint}`);
}

export function parseStates(written: readonly string[] | undefined): readonly MessageState[] {
  return (written ?? messageStates).map((word) => {
    const state = messageStates.find((one) => one === word.replace("-", "_"));
    if (state !== undefined) return state;
    throw new BatonError(
      "USAGE",
      `--state: "${word}" is not a state: use ${messageStates.join(", ")}${didYouMean(word, messageStates)}`,
    );
  });
}

/** Opens an existing store for a command that neither accepts nor tries messages. */
export function openStoreToRead({ values, sources }: InspectCall): Promise<CommandStore> {
  return openCommandStore(readStoreLocation(values, sources), { mustExist: true });
}

export function refuseNames({ names: [word] }: InspectCall): void {
  if (word !== undefined) throw new BatonError("USAGE", `unexpected argument "${word}"; name the store with --name`);
}
