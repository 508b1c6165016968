/** Flags of every command that runs a command of the user's under a lease. */
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { lockSettings } from "../../src/config/settings.ts";
import { integer, text, toggle } from "../../src/config/value_types.ts";

export const statusFlags = {
  statusFd: setting(integer("number", { min: 0, max: 65_535 }), {
    flag: "--status-fd",
    help: "write one JSON line about what happened to this open descriptor",
  }),
  statusFile: setting(text("file"), { flag: "--status-file", help: "write that line to this file" }),
} satisfies SettingTable;

export const jobFlags = {
  foreground: setting(toggle(), {
    flag: "--foreground",
    help:
      "leave the child in the terminal's process group, so that it can read from it; so it is when stdin is a terminal",
    default: false,
  }),
  passAuth: setting(toggle(), {
    flag: "--pass-auth",
    help: "leave the variables with credentials in the child's environment",
    default: false,
  }),
  ...statusFlags,
} satisfies SettingTable;

/** Instead of the 75 of whoever has waited in vain. */
export const conflictExitCode = setting(integer("code", { min: 0, max: 255 }), {
  flag: "-E, --conflict-exit-code",
  help: "the exit code instead of 75",
});

const { scope, killAfter, onDoubt, signal, publishCommand } = lockSettings;

/** What a lock has besides is about its queue. */
export const jobSettings = { scope, killAfter, onDoubt, signal, publishCommand } satisfies SettingTable;
