/** `baton config check|show`: are the files and variables good, and what follows from them. */
import type { Io } from "../src/terminal/io.ts";
import { printTable } from "../src/terminal/table.ts";
import { type ConfigSources, type Origin, resolveOne, sectionNames } from "../src/config/resolve_settings.ts";
import { keyOfName, setting, type SettingTable } from "../src/config/setting.ts";
import { allSettings, poolComponentSettings } from "../src/config/settings.ts";
import { toggle } from "../src/config/value_types.ts";
import { BatonError } from "../src/errors.ts";
import { didYouMean } from "../src/support/did_you_mean.ts";
import { type Call, defineCommand } from "./command.ts";
import { type ExitCode, exitCodes } from "./exit_codes.ts";
import type { ConfigJson } from "./json_shapes/machine_shapes.ts";

const settings = {
  origin: setting(toggle(), { flag: "--origin", help: "say where each value came from", default: false }),
  json: setting(toggle(), { flag: "--json", help: "print one JSON object", default: false }),
  ...allSettings,
} satisfies SettingTable;

export const configCommand = defineCommand({
  name: "config",
  summary: "check the configuration, or show what it comes to",
  usage: "check|show [options]",
  details: [
    "A value comes from the command line, else from its BATON_… variable, else from the file named with --config or else " +
    "$XDG_CONFIG_HOME/baton/config.toml (~/.config/baton without that variable), else from /etc/baton/config.toml, else " +
    "it is the default. The files may also be JSON: config.json.",
    "check exits with 78 and names the file, the line, the key and the value of everything that is wrong. Files are checked " +
    "as a whole whenever they are read, so every other command does the same; check looks also into what only the commands " +
    "look into that go by it: addresses, templates, schedules, names.",
    "show takes the options of the other commands, to say what they would come to.",
  ],
  examples: [
    ["baton config check --config ./baton.toml", "is this file good?"],
    ["baton config show --origin", "all settings, and where each value came from"],
  ],
  settings,
  takesMistakes: true,
  completes: ["check", "show"],
  forms: { check: { refuses: { origin: settings.origin }, runsNothing: true } },
  runsNothing: true,
  run: runConfig,
});

async function runConfig({ names, values, sources, io, mistakes = [] }: Call<typeof settings>): Promise<ExitCode> {
  const [action, ...more] = names;
  if (more.length > 0 || (action !== "check" && action !== "show")) {
    const given = action === undefined
      ? "and none is given"
      : `not "${names.join(" ")}"${didYouMean(action, ["check", "show"])}`;
    throw new BatonError("USAGE", `baton config takes one word, check or show, ${given}`);
  }
  if (action === "check" && values.origin) throw new BatonError("USAGE", "--origin is for baton config show");
  const [first] = mistakes;
  if (action === "show" && first !== undefined) throw first;
  if (action === "check") {
    const all = [...mistakes];
    const collect = (check: () => void) => {
      try {
        check();
      } catch (thrown) {
        // A command line that is wrong is no mistake of the configuration.
        if (!(thrown instanceof BatonError) || thrown.code === "USAGE") throw thrown;
        all.push(thrown);
      }
    };
    (await import("./checked_settings.ts")).checkSettings(values, sources, collect);
    if (all.length > 0) return sayMistakes(all, io);
  }
  const resolved: SettingRow[] = Object.entries<SettingTable[string]>(allSettings).flatMap(([name, one]) => {
    const { key } = one;
    if (key === undefined) return [];
    const { value, origin } = resolveOne(name, one, sources);
    const shown = value === undefined || value === null
      ? null
      : one.secret === true
      ? "(secret)"
      : one.type.format(value);
    return [{ key, value: shown, origin: origin() }];
  });
  resolved.push(...componentRows(sources));
  const files = sources.files.map((file) => file.path);
  if (values.json) {
    const answer: ConfigJson = { version: 1, files, settings: resolved };
    io.out(JSON.stringify(answer) + "\n");
  } else if (action === "check") {
    const checked = files.length === 0 ? "there is no configuration file" : `checked ${files.join(", ")}`;
    if (!values.quiet) io.err(`baton: the configuration is good; ${checked}\n`);
  } else if (values.origin) {
    printTable(io, resolved.map((row) => [row.key, row.value ?? "-", describe(row.origin)]));
  } else {
    printTable(io, resolved.map((row) => [row.key, row.value ?? "-"]));
  }
  return exitCodes.SUCCESS;
}

interface SettingRow {
  readonly key: string;
  readonly value: string | null;
  readonly origin: Origin;
}

/** What files say of components that users have named; the rest has its default. */
function componentRows(sources: ConfigSources): SettingRow[] {
  const settings = Object.entries<SettingTable[string]>(poolComponentSettings);
  return sectionNames(poolComponentSettings, sources.files).flatMap((section) =>
    settings.flatMap(([name, setting]) => {
      const { value, origin } = resolveOne(name, setting, { ...sources, flags: new Map(), section });
      const where = origin();
      if (where.kind !== "file" || value === undefined || value === null) return [];
      return [{ key: keyOfName(setting.key ?? "", section), value: setting.type.format(value), origin: where }];
    })
  );
}

/** Each once, in a line of its own: one wrong value may be in the way of several checks. */
function sayMistakes(mistakes: readonly BatonError[], io: Io): ExitCode {
  for (const message of new Set(mistakes.map(({ message }) => message))) io.err(`baton: ${message}\n`);
  return exitCodes.CONFIG;
}

function describe(origin: Origin): string {
  switch (origin.kind) {
    case "default":
      return "default";
    case "file":
      return `${origin.name}, line ${origin.line}`;
    case "flag":
    case "environment":
      return origin.name;
  }
}
