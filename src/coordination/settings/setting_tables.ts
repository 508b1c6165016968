/** All settings of coordination that files and variables can set. */
import type { SettingTable } from "../../base/config/setting.ts";
import { keeperSettings, poolComponentSettings, poolSettings } from "./command_settings.ts";
import { connectionSettings, historySettings, lockSettings } from "./coordination_settings.ts";

export const coordinationSettings = {
  // These come first: where two settings share a flag, the later one takes it in `baton config show`.
  ...keeperSettings,
  ...connectionSettings,
  ...lockSettings,
  ...historySettings,
  ...poolSettings,
} satisfies SettingTable;

/** The settings with which coordination registers. Those of a pool's component stand in files only. */
export const coordinationTables = { all: coordinationSettings, fileOnly: poolComponentSettings };
