/** `baton config check|show`: checks the files and variables, or prints the resulting settings. */
import { type Io, printJson } from "../../src/base/terminal/io.ts";
import { printTable } from "../../src/base/terminal/table.ts";
import {
  configSectionNames,
  type ConfigSources,
  resolveSetting,
  type SettingOrigin,
} from "../../src/base/config/resolve_settings.ts";
import { isPerSectionKey, keyInSection, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { unknownVariables } from "../../src/base/config/unknown_variables.ts";
import { BatonError } from "../../src/base/errors.ts";
import { didYouMean } from "../../src/base/support/did_you_mean.ts";
import { type Command, type CommandCall, defineCommand } from "../command.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import type { AllProductSettings, Product } from "../product.ts";
import type { ConfigJson } from "../json_shapes/machine_shapes.ts";

const ownSettings = {
  origin: toggleSetting("--origin", { help: "print the origin of each value" }),
  json: toggleSetting("--json", { help: "print one JSON object" }),
} satisfies SettingTable;

export function configCommandFor(products: readonly Product[], known: AllProductSettings): Command {
  return defineCommand({
    name: "config",
    summary: "check the configuration, or print the resulting settings",
    usage: "check|show [options]",
    details: [
      "The value of a setting is taken from the first of: the command line, the BATON_… variable, the file given " +
      "with --config or else $XDG_CONFIG_HOME/baton/config.toml (~/.config/baton/config.toml without that " +
      "variable), /etc/baton/config.toml, the default. Files are TOML.",
      "check prints the file, line, key and value of each mistake, and exits with 78. Every command checks the " +
      "whole file when it reads one; check also tests values that other commands test only when they use them: " +
      "addresses, templates, schedules, names. An unknown BATON_… variable is a mistake here; other commands print " +
      "a warning.",
      "show accepts the options of the other commands and prints the settings that result. baton help config " +
      "lists all settings.",
    ],
    examples: [
      ["baton config check --config ./baton.toml", "check one file"],
      ["baton config show --origin", "print all settings with their origins"],
    ],
    settings: { ...known.all, ...ownSettings },
    explainedElsewhere: known.all,
    takesMistakes: true,
    completes: ["check", "show"],
    forms: { check: { refuses: { origin: ownSettings.origin }, runsNothing: true } },
    runsNothing: true,
    run: (call) => runConfig(call, products, known),
  }) as Command;
}

async function runConfig(
  { names, values, sources, io, mistakes = [] }: CommandCall<typeof ownSettings>,
  products: readonly Product[],
  { all: allSettings, inFiles }: AllProductSettings,
): Promise<ExitCode> {
  const [action, ...more] = names;
  if (more.length > 0 || (action !== "check" && action !== "show")) {
    const given = action === undefined
      ? "but none was given"
      : `not "${names.join(" ")}"${didYouMean(action, ["check", "show"])}`;
    throw new BatonError("USAGE", `baton config takes check or show, ${given}`);
  }
  if (action === "check" && values.origin) throw new BatonError("USAGE", "--origin is for baton config show");
  const [first] = mistakes;
  if (action === "show" && first !== undefined) throw first;
  const unknown = unknownVariables(io.env, inFiles);
  if (action === "show" && !values.quiet) { for (const sentence of unknown) io.err(`baton: warning: ${sentence}\n`); }
  if (action === "check") {
    const all = [...mistakes, ...unknown.map((sentence) => new BatonError("CONFIG", sentence))];
    const collect = (check: () => void) => {
      try {
        check();
      } catch (thrown) {
        // An invalid command line is not a mistake in the configuration.
        if (!(thrown instanceof BatonError) || thrown.code === "USAGE") throw thrown;
        all.push(thrown);
      }
    };
    await (await import("./checked_settings.ts")).checkProductSettings(products, { values, sources }, collect);
    if (all.length > 0) return printMistakes(all, io);
  }
  const resolved: SettingRow[] = Object.entries(allSettings).flatMap(([name, one]) => {
    const { key } = one;
    if (key === undefined) return [];
    const { value, origin } = resolveSetting(name, one, sources);
    const shown = value === undefined || value === null
      ? null
      : one.secret === true
      ? "(secret)"
      : one.type.format(value);
    return [{ key, value: shown, origin: origin() }];
  });
  resolved.push(...sectionRows(sources, inFiles));
  const files = sources.files.map((file) => file.path);
  if (values.json) {
    printJson<ConfigJson>(io, { version: 1, files, settings: resolved });
  } else if (action === "check") {
    const checked = files.length === 0 ? "there is no configuration file" : `checked ${files.join(", ")}`;
    if (!values.quiet) io.err(`baton: the configuration is valid; ${checked}\n`);
  } else {
    const originOf = (row: SettingRow) => values.origin ? [describe(row.origin)] : [];
    printTable(io, resolved.map((row) => [row.key, row.value ?? "-", ...originOf(row)]));
  }
  return exitCodes.SUCCESS;
}

interface SettingRow {
  readonly key: string;
  readonly value: string | null;
  readonly origin: SettingOrigin;
}

/** Returns the settings that files set in sections named by users, such as [pool.component.import]. */
function sectionRows(sources: ConfigSources, inFiles: SettingTable): SettingRow[] {
  const settings = Object.entries(inFiles).filter(([, { key }]) => key !== undefined && isPerSectionKey(key));
  return configSectionNames(Object.fromEntries(settings), sources.files).flatMap((section) =>
    settings.flatMap(([name, setting]) => {
      const { value, origin } = resolveSetting(name, setting, { ...sources, flags: new Map(), section });
      const where = origin();
      if (where.kind !== "file" || value === undefined || value === null) return [];
      return [{ key: keyInSection(setting.key ?? "", section), value: setting.type.format(value), origin: where }];
    })
  );
}

/** Prints each message only once, since one wrong value may fail several checks. */
function printMistakes(mistakes: readonly BatonError[], io: Io): ExitCode {
  for (const message of new Set(mistakes.map(({ message }) => message))) io.err(`baton: ${message}\n`);
  return exitCodes.CONFIG;
}

function describe(origin: SettingOrigin): string {
  if (origin.kind === "default") return origin.kind;
  return origin.kind === "file" ? `${origin.name}, line ${origin.line}` : origin.name;
}
