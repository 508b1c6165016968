/** The flags of all baton commands that run the user's command under a lease. */
import { flagSetting, putSettingsIntoGroup, type SettingTable, toggleSetting } from "../../base/config/setting.ts";
import { lockSettings } from "../settings/coordination_settings.ts";
import { integerType, textType } from "../../base/config/value_types.ts";

export const statusReportFlags = putSettingsIntoGroup("output", {
  statusFd: flagSetting("--status-fd", integerType("number", { min: 0, max: 65_535 }), {
    help: "write a status report to this open descriptor, as one JSON line",
  }),
  statusFile: flagSetting("--status-file", textType("file"), { help: "write the status report to this file" }),
}) satisfies SettingTable;

export const leasedCommandFlags = {
  ...putSettingsIntoGroup("command", {
    foreground: toggleSetting("--foreground", {
      help: "keep the command in the terminal's process group, so that it can read from the terminal; default if " +
        "stdin is one",
    }),
    passAuth: toggleSetting("--pass-auth", {
      help: "keep the variables with credentials in the command's environment",
    }),
  }),
  ...statusReportFlags,
} satisfies SettingTable;

const { scope, killAfter, onDoubt, signal, publishCommand } = lockSettings;

/** The settings of a lock that do not affect its queue. */
export const leasedCommandSettings = { scope, killAfter, onDoubt, signal, publishCommand } satisfies SettingTable;
