/** The options of `baton fence`. */
import { flagSetting, type SettingTable, toggleSetting } from "../../../src/base/config/setting.ts";
import { durationType, textType } from "../../../src/base/config/value_types.ts";
import { shellLineSettings } from "../../command.ts";

export const fenceSettings = {
  token: flagSetting("--token", textType("number"), {
    help: "fencing token to check",
    unset: "BATON_FENCING_TOKEN, which baton lock sets",
  }),
  store: flagSetting("--store", textType("file"), {
    once: true,
    help: "file that stores the highest token, next to the protected data; created if it does not exist",
  }),
  try: toggleSetting("-n, --try", {
    aliases: "--nonblock, --nb",
    help: "do not wait; exit 75 if the store is busy",
  }),
  wait: flagSetting("-w, --wait", durationType(), {
    aliases: "--timeout",
    help: "maximum wait for the store; then exit 75",
    unset: "no limit",
  }),
  ...shellLineSettings,
} satisfies SettingTable;
