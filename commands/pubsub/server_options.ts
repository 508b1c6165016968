/** Defines the settings and arguments of `baton pubsub server`. */
import {
  pubsubKeySettings,
  pubsubServerSettings,
  pubsubServiceSettings,
  pubsubStoreSettings,
} from "../../src/pubsub/settings/pubsub_settings.ts";
import { logSettings } from "../../src/coordination/settings/command_settings.ts";
import { flagSetting, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { progressSettings } from "../../src/base/terminal/progress.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { textType } from "../../src/base/config/value_types.ts";
import type { CommandCall } from "../command.ts";
import { BatonError } from "../../src/base/errors.ts";
import { findMisplacedFlag, type OperationsOfFlag } from "./misplaced_flag.ts";

export const pubsubServerCommandSettings = {
  ...pubsubServerSettings,
  ...pubsubStoreSettings,
  ...pubsubKeySettings,
  ...pubsubServiceSettings,
  handOff: toggleSetting("--hand-off", {
    help: "on SIGTERM, hand off the topics to other servers before the end; --drain-timeout limits the time",
  }),
  moved: toggleSetting("--moved", {
    basic: false,
    help:
      "the data directory is a copy, or the database was moved to another cluster; the original is never served again",
  }),
  ...logSettings,
  to: flagSetting("--to", textType("id"), {
    help: "move: the new owner of the topic; drain: the server that gets all topics, also one with another store",
  }),
  topics: toggleSetting("--topics", { help: "ls: list each topic, too" }),
  dryRun: toggleSetting("--dry-run", {
    help: "move, drain, rebalance: print what would be moved",
  }),
  undo: toggleSetting("--undo", {
    help: "drain: the server takes new topics again; topics that were handed off do not come back",
  }),
  acceptLoss: toggleSetting("--accept-loss", {
    help: "forget: the data of the server is lost for good; restore: accept the loss of everything after the copy; " +
      "forget-client: accept the loss of undelivered or unresolved messages",
  }),
  json: toggleSetting("--json", {
    help: "ls, move, drain, rebalance, forget, forget-client, verify, restore: print one JSON object",
  }),
  ...progressSettings,
  ...connectionSettings,
} satisfies SettingTable;

export type PubsubServerCall = CommandCall<typeof pubsubServerCommandSettings>;

/**
 * The operations for which each flag has an effect, by setting name; the operation "" runs the server. Values from
 * variables and files are not checked.
 */
const flagOperations: Readonly<Record<string, OperationsOfFlag>> = {
  to: { flag: "--to", of: ["move", "drain"] },
  topics: { flag: "--topics", of: ["ls"] },
  dryRun: { flag: "--dry-run", of: ["move", "drain", "rebalance"] },
  undo: { flag: "--undo", of: ["drain"] },
  acceptLoss: { flag: "--accept-loss", of: ["forget", "forget-client", "restore"] },
  json: { flag: "--json", of: ["ls", "move", "drain", "rebalance", "forget", "forget-client", "verify", "restore"] },
  progress: { flag: "--progress", of: ["move", "drain", "rebalance", "verify", "backup", "restore"] },
  moved: { flag: "--moved", of: [""] },
  handOff: { flag: "--hand-off", of: [""] },
  pubsubMigrate: { flag: "--migrate", of: [""] },
};

/**
 * Checks the flags of an operation. Throws USAGE for a flag that has no effect. `given` contains the settings that were
 * given as flags.
 */
export function checkPubsubServerFlags(operation: string, given: ReadonlyMap<string, unknown>): void {
  const use = findMisplacedFlag(flagOperations, operation, given);
  if (use === null) return;
  const [what, wanted] = [operation, use.of.join(", ")].map((word) => word || "a server that is started");
  throw new BatonError("USAGE", `baton pubsub server: ${use.flag} is not for ${what}, only for ${wanted}`);
}
