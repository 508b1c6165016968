/** All settings of coordination that files and variables can set. */
import type { SettingTable } from "../../base/config/setting.ts";
import { keeperSettings, poolComponentSettings, poolSettings } from "./command_settings.ts";
import { connectionSettings, historySettings, lockSettings } from "./coordination_settings.ts";

export const coordinationSettings = {
  // Lists the keeper's settings first: if two settings share a flag, `baton config show` uses the later one.
  ...keeperSettings,
  ...connectionSettings,
  ...lockSettings,
  ...historySettings,
  ...poolSettings,
} satisfies SettingTable;

/** The settings of coordination. The settings of a pool's component can be set only in files. */
export const coordinationTables = { all: coordinationSettings, fileOnly: poolComponentSettings };
