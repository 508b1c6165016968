/** How whatever runs for long writes its log. */
import { setting, type SettingTable } from "./setting.ts";
import { choice } from "./value_types.ts";

export const logSettings = {
  log: setting(choice(["text", "json"]), {
    flag: "--log",
    help: "how stderr is written: sentences, or a JSON object for each",
    default: "text",
  }),
} satisfies SettingTable;
