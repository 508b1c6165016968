/** All settings of coordination that files and variables can set. */
import type { SettingTable } from "../../base/config/setting.ts";
import { keeperSettings, poolSettings } from "./command_settings.ts";
import { connectionSettings, historySettings, lockSettings } from "./coordination_settings.ts";

export { poolComponentSettings } from "./command_settings.ts";

export const coordinationSettings = {
  // These come first: where two settings share a flag, the later one takes it in `baton config show`.
  ...keeperSettings,
  ...connectionSettings,
  ...lockSettings,
  ...historySettings,
  ...poolSettings,
} satisfies SettingTable;
