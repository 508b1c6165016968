/**
 * Defines `baton config`, which checks the files and variables, prints the resulting settings, and begins a new file.
 */
import { type Io, printJson } from "../../src/base/terminal/io.ts";
import { printTable } from "../../src/base/terminal/table.ts";
import { type ConfigSources, resolveSetting, type SettingOrigin } from "../../src/base/config/resolve_settings.ts";
import {
  isPerSectionKey,
  settingKeyInSection,
  type SettingTable,
  toggleSetting,
} from "../../src/base/config/setting.ts";
import { configSectionNames } from "../../src/base/config/section_names.ts";
import { findUserConfigFile } from "../../src/base/config/config_file.ts";
import { describeUnknownVariables } from "../../src/base/config/unknown_variables.ts";
import { BatonError } from "../../src/base/errors.ts";
import { shellQuoteIfNeeded } from "../../src/base/support/shell_quote.ts";
import { didYouMean } from "../../src/base/support/did_you_mean.ts";
import { type Command, type CommandCall, defineCommand } from "../command.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import type { AllProductSettings, Product } from "../product.ts";
import type { ConfigJson } from "../json_shapes/machine_shapes.ts";

const ownSettings = {
  origin: toggleSetting("--origin", { help: "print the origin of each value" }),
  json: toggleSetting("--json", { help: "print one JSON object" }),
} satisfies SettingTable;

const actions = ["check", "show", "init", "schema"] as const;

export function configCommandFor(products: readonly Product[], known: AllProductSettings): Command {
  return defineCommand({
    name: "config",
    summary: "check the configuration, print the resulting settings, or begin a file",
    usage: "check|show|init [FILE]|schema [options]",
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
      "init writes a file with the most important settings, each in a comment, and beside it the JSON Schema " +
      "config.schema.json, with which editors complete and check the file. Without FILE it is the file that this " +
      "user's commands read. An existing file stays as it is (exit 73). schema prints the schema.",
    ],
    examples: [
      ["baton config check --config ./baton.toml", "check one file"],
      ["baton config show --origin", "print all settings with their origins"],
      ["baton config init", "begin this user's configuration file"],
    ],
    settings: { ...known.all, ...ownSettings },
    explainedElsewhere: known.all,
    takesMistakes: true,
    completes: [...actions],
    forms: { check: { refuses: { origin: ownSettings.origin }, runsNothing: true } },
    runsNothing: true,
    run: (call) => runConfig(call, products, known),
  }) as Command;
}

type ConfigCall = CommandCall<typeof ownSettings>;

async function runConfig(call: ConfigCall, products: readonly Product[], known: AllProductSettings): Promise<ExitCode> {
  const { names: [action, ...more], values, io } = call;
  if (!actions.some((one) => one === action)) {
    const given = action === undefined ? "but none was given" : `not "${action}"${didYouMean(action, actions)}`;
    throw new BatonError("USAGE", `baton config takes check, show, init or schema, ${given}`);
  }
  if (more.length > (action === "init" ? 1 : 0)) {
    const extra = more.at(-1) ?? "";
    const isFile = /[./]/.test(extra) && (action === "check" || action === "show");
    const hint = isFile ? `; use --config ${shellQuoteIfNeeded(extra)}` : "";
    throw new BatonError("USAGE", `baton config ${action}: unexpected argument "${extra}"${hint}`);
  }
  if (values.origin && action !== "show") throw new BatonError("USAGE", "--origin is for baton config show");
  if (action === "check" || action === "show") return await reportConfiguration(action, call, { products, known });
  if (values.json) throw new BatonError("USAGE", `--json is for baton config check and show, not for ${action}`);
  const { configJsonSchema } = await import("../../src/base/config/config_syntax.ts");
  const schema = `${JSON.stringify(configJsonSchema(known.inFiles), null, 2)}\n`;
  if (action === "schema") io.out(schema);
  else {
    const { beginConfigFile } = await import("./new_config_file.ts");
    const path = beginConfigFile(more[0] ?? await findUserConfigFile({ env: io.env }), known.inFiles, schema);
    if (!values.quiet) io.err(`baton: wrote ${path}; its settings are comments: remove the # of those that you need\n`);
  }
  return exitCodes.SUCCESS;
}

async function reportConfiguration(
  action: "check" | "show",
  { values, sources, io, mistakes = [] }: ConfigCall,
  { products, known: { all: allSettings, inFiles } }: {
    readonly products: readonly Product[];
    readonly known: AllProductSettings;
  },
): Promise<ExitCode> {
  const [first] = mistakes;
  if (action === "show" && first !== undefined) throw first;
  const unknown = describeUnknownVariables(io.env, inFiles);
  if (action === "show" && !values.quiet) { for (const sentence of unknown) io.err(`baton: warning: ${sentence}\n`); }
  if (action === "check") {
    const all = [...mistakes, ...unknown.map((sentence) => new BatonError("CONFIG", sentence))];
    const collect = (check: () => void) => {
      try {
        check();
      } catch (thrown) {
        // A mistake in the command line is not a mistake in the configuration.
        if (!(thrown instanceof BatonError) || thrown.code === "USAGE") throw thrown;
        all.push(thrown);
      }
    };
    await (await import("./checked_settings.ts")).checkProductSettings(products, { values, sources }, collect);
    if (all.length > 0) return printMistakes(all, sources, io);
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

/** Returns the settings in sections whose names the user has chosen, such as [pool.component.import]. */
function sectionRows(sources: ConfigSources, inFiles: SettingTable): SettingRow[] {
  const settings = Object.entries(inFiles).filter(([, { key }]) => key !== undefined && isPerSectionKey(key));
  return configSectionNames(Object.fromEntries(settings), sources.files).flatMap((section) =>
    settings.flatMap(([name, setting]) => {
      const { value, origin } = resolveSetting(name, setting, { ...sources, flags: new Map(), section });
      const where = origin();
      if (where.kind !== "file" || value === undefined || value === null) return [];
      return [{
        key: settingKeyInSection(setting.key ?? "", section),
        value: setting.type.format(value),
        origin: where,
      }];
    })
  );
}

/**
 * Prints the mistakes in the order of the files and their lines; mistakes in variables come last. Prints each message
 * only once, because one wrong value may fail several checks.
 */
function printMistakes(mistakes: readonly BatonError[], { files }: ConfigSources, io: Io): ExitCode {
  const places = mistakes.map(({ message }) => {
    const at = files.findIndex(({ path }) => message.startsWith(`${path}, line `));
    const path = files[at]?.path ?? "";
    return { message, file: at < 0 ? files.length : at, line: Number.parseInt(message.slice(`${path}, line `.length)) };
  });
  places.sort((one, other) => one.file - other.file || (one.line || 0) - (other.line || 0));
  for (const message of new Set(places.map(({ message }) => message))) io.err(`baton: ${message}\n`);
  return exitCodes.CONFIG;
}

function describe(origin: SettingOrigin): string {
  if (origin.kind === "default") return origin.kind;
  return origin.kind === "file" ? `${origin.name}, line ${origin.line}` : origin.name;
}
