/** The options of `baton fence`. */
import { flagSetting, type SettingTable, toggleSetting } from "../../../src/base/config/setting.ts";
import { connectionSettings } from "../../../src/coordination/settings/coordination_settings.ts";
import { durationType, integerType, textType } from "../../../src/base/config/value_types.ts";
import type { CommandSyntax } from "../../../src/base/terminal/parse_args.ts";
import { shellLineSettings } from "../../command.ts";

const runSettings = {
  store: flagSetting("--store", textType("file"), {
    once: true,
    help: "run: file that stores the highest token, next to the protected data; created if it does not exist",
  }),
  try: toggleSetting("-n, --try", {
    aliases: "--nonblock, --nb",
    help: "run: do not wait; exit 75 if the store is busy",
  }),
  wait: flagSetting("-w, --wait", durationType(), {
    aliases: "--timeout",
    help: "run: maximum wait for the store; then exit 75",
    unset: "no limit",
  }),
  ...shellLineSettings,
} satisfies SettingTable;

const zkSettings = {
  version: flagSetting("--version", integerType("number", { min: 0, max: 2 ** 31 - 1 }), {
    help: "zk set, delete: write only if the node has this version, else exit 1",
  }),
  dataFile: flagSetting("--data-file", textType("file"), {
    once: true,
    help: "zk set, create: read the data from this file; - is standard input",
  }),
  parents: toggleSetting("-p, --parents", {
    help: "zk create: create missing parents in the same transaction",
  }),
  sequential: toggleSetting("--sequential", {
    help: "zk create: append a number to the path that is higher than all earlier ones, and print the path",
  }),
  json: toggleSetting("--json", { help: "zk: print one JSON object" }),
} satisfies SettingTable;

export const fenceSettings = {
  token: flagSetting("--token", textType("number"), {
    help: "fencing token to check",
    unset: "BATON_FENCING_TOKEN, which baton lock sets",
  }),
  ...runSettings,
  ...zkSettings,
  ...connectionSettings,
} satisfies SettingTable;

/** The syntax of `baton fence`: a command follows `run`. */
export const fenceCommandSyntax: CommandSyntax = { commandAfter: ([first]) => first === "run", flagHints: {} };

/** The flags that each form rejects, because they belong to the other one. */
export const fenceForms = {
  run: { refuses: { ...zkSettings, ...connectionSettings } },
  zk: { refuses: runSettings },
} as const;
