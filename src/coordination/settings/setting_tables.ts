/** All settings of coordination that files and variables can set. */
import type { SettingTable } from "../../base/config/setting.ts";
import { keeperSettings, poolComponentSettings, poolSettings } from "./command_settings.ts";
import { connectionSettings, historySettings, lockSettings } from "./coordination_settings.ts";

export const coordinationSettings = {
  // The keeper's settings come first, because of two settings that share a flag, `baton config show` uses the later
  // one.
  ...keeperSettings,
  ...connectionSettings,
  ...lockSettings,
  ...historySettings,
  ...poolSettings,
} satisfies SettingTable;

/** The settings that coordination registers. Settings of a pool's component can only be set in files. */
export const coordinationTables = { all: coordinationSettings, fileOnly: poolComponentSettings };
