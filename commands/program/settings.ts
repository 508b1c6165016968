/** All settings that files and variables can set; each is declared once. Settings that are flags only are declared with their command. */
import {
  barrierSettings,
  electSettings,
  keeperSettings,
  poolComponentSettings,
  poolSettings,
} from "../../src/coordination/settings/command_settings.ts";
import {
  connectionSettings,
  historySettings,
  lockSettings,
  traceSettings,
} from "../../src/coordination/settings/coordination_settings.ts";
import { pubsubSettings } from "../../src/pubsub/settings/pubsub_settings.ts";
import { retrySettings } from "../../src/retry/settings/retry_settings.ts";
import type { SettingTable } from "../../src/base/config/setting.ts";

/** Settings that variables and the command line of `baton config` can set. */
export const allSettings = {
  // These come first: where two settings share a flag, the later one takes it in `baton config show`.
  ...keeperSettings,
  ...electSettings,
  ...barrierSettings,
  ...connectionSettings,
  ...lockSettings,
  ...historySettings,
  ...traceSettings,
  ...poolSettings,
  ...pubsubSettings,
  ...retrySettings,
} satisfies SettingTable;

/** Settings that a file may contain. */
export const fileSettings = { ...allSettings, ...poolComponentSettings } satisfies SettingTable;
