/** The options of `baton pool`, and which of them may be combined. Pure. */
import { addOriginToErrors, type ConfigSources } from "../../../src/base/config/resolve_settings.ts";
import { flagSetting, type SettingTable, type SettingValues, toggleSetting } from "../../../src/base/config/setting.ts";
import { poolComponentSettings, poolSettings } from "../../../src/coordination/settings/command_settings.ts";
import { connectionSettings, historySettings } from "../../../src/coordination/settings/coordination_settings.ts";
import { choiceType, durationType, textType } from "../../../src/base/config/value_types.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { commandForItem } from "../../../src/coordination/pool/item_command.ts";
import { defaultPoolPathTemplates, type PoolPath, poolPath } from "../../../src/coordination/pool/pool_path.ts";
import type { PoolOutputOptions } from "../../../src/coordination/pool/pool_output.ts";
import type { PoolItemSource } from "../../../src/coordination/pool/pool_source.ts";
import type { CommandSyntax } from "../../../src/base/terminal/parse_args.ts";
import { nearestWord } from "../../../src/base/support/did_you_mean.ts";
import { progressSettings } from "../../../src/base/terminal/progress.ts";
import { type CommandCall, doubleDashHint, findGivenFlag } from "../../command.ts";
import { leasedCommandSettings, statusReportFlags } from "../../../src/coordination/job/leased_command_flags.ts";

const { query, jobs, retries, doneTtl, ...otherComponentSettings } = poolComponentSettings;

/** All flags, including flags that a component's section can also set. The short help shows the first flags. */
const flags = {
  items: flagSetting("--items", textType("-|@FILE|a,b,c"), {
    once: true,
    help: "the items: one per line from standard input (-) or from a file (@FILE), or a list separated by commas",
  }),
  query,
  jobs,
  retries,
  doneTtl,
  shellLine: flagSetting("-c, --command", textType("line"), {
    help: 'run this line with /bin/sh -c for each item; {} is the item as one word, quoted or not; "$1" works too',
  }),
  output: flagSetting("--output", choiceType(["group", "lines", "raw"]), {
    help: "how to print what commands write: a job's output in one piece when it has ended (group), whole lines as " +
      "they come (lines), or directly, mixed (raw)",
    unset: "group for more than one job, raw for one",
  }),
  tag: toggleSetting("--tag", {
    help: "begin each line of output with its item and a tab; it implies --output lines unless group is given",
  }),
  joblog: flagSetting("--joblog", textType("file"), {
    once: true,
    help:
      "write a line for each item that was run to this file, in the format of GNU parallel; +FILE appends to the file",
  }),
  oneRound: toggleSetting("--one-round", {
    help: "run at most -j items, and leave the others to the next call; the default with --query",
  }),
  loop: toggleSetting("--loop", {
    help: "run all items; with --query, run the query again until no item is left; the default with --items",
  }),
  ...otherComponentSettings,
  queryTimeout: flagSetting("--query-timeout", durationType({ minMs: 1 }), {
    help: "maximum duration of the query; then it is stopped",
    default: 300_000,
  }),
  drain: toggleSetting("--drain", {
    help: "on the first TERM, INT or HUP, start no new items and let running ones finish; a second signal is " +
      "forwarded to them",
  }),
  wait: flagSetting("-w, --wait", durationType(), {
    aliases: "--timeout",
    group: "waiting",
    basic: true,
    help:
      "wait at most this long for the list; then exit 81, or 69 if no server responds. Also for a permit of --total",
    unset: "--query-timeout while another call chooses items; no limit for a permit",
  }),
  maxHold: flagSetting("--max-hold", durationType({ minMs: 1 }), {
    group: "command",
    help: "stop the command of an item if it runs longer than this",
    unset: "no limit",
  }),
  onFailure: flagSetting("--on-failure", textType("command"), {
    group: "command",
    help: "run this command once for each item whose last try has failed; limit 30s",
  }),
  reason: flagSetting("--reason", textType("text"), { help: "why you run it; shown by baton who" }),
  passAuth: toggleSetting("--pass-auth", {
    group: "command",
    help: "keep variables with credentials in the environment of commands",
  }),
  json: toggleSetting("--json", { help: "for status: print one JSON object" }),
  ...progressSettings,
  ...statusReportFlags,
} satisfies SettingTable;

export const poolCommandSettings = {
  ...flags,
  ...leasedCommandSettings,
  ...poolSettings,
  ...historySettings,
  ...connectionSettings,
} satisfies SettingTable;

/** The flags for running items. `status` and `clear` reject these flags. */
const { items: _items, query: _query, queryTimeout: _queryTimeout, json: _json, ...runFlags } = flags;
const flagsOfRuns = { ...runFlags, ...leasedCommandSettings } satisfies SettingTable;

/** Operations on a pool other than running its items. */
export const poolCommandForms = {
  status: { refuses: flagsOfRuns, runsNothing: true },
  clear: { refuses: { ...flagsOfRuns, json: flags.json }, runsNothing: true },
} as const;
const poolOperations = ["status", "clear"] as const satisfies readonly (keyof typeof poolCommandForms)[];

/** The syntax of `baton pool`: a command follows the component. */
export const poolCommandSyntax: CommandSyntax = {
  commandAfter: ([first, ...more]) =>
    first !== undefined && more.length === 0 && !Object.hasOwn(poolCommandForms, first),
  flagHints: {},
};

export type PoolSettingValues = SettingValues<typeof poolCommandSettings>;

export interface PoolCommandOptions {
  readonly component: string;
  readonly path: PoolPath;
  readonly items: PoolItemSource;
  readonly command: readonly [string, ...string[]];
  /** True if the last argument is a shell command, from -c or a configuration file. */
  readonly isLine: boolean;
  /** How the output of commands is printed; null if they write to baton's own streams. */
  readonly output: PoolOutputOptions | null;
  /** Whether the call runs all items, not only as many as -j says. */
  readonly loop: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly values: PoolSettingValues;
  readonly sources: ConfigSources;
}

/** The options of `status` and `clear`. */
export interface PoolStatusOptions {
  readonly component: string;
  readonly path: PoolPath;
  /** The items that the call names; null if it has neither --items nor --query. */
  readonly items: PoolItemSource | null;
}

const example = "as in: baton pool COMPONENT --items a,b,c -j 4 ./work.sh {}";

/** Returns the options of `baton pool status` or `baton pool clear`; null for a call that runs items. */
export function readPoolOperation(
  call: CommandCall<typeof poolCommandSettings>,
): PoolStatusOptions & { readonly operation: typeof poolOperations[number] } | null {
  const { names: [first, component, ...more], command, values, sources } = call;
  const operation = poolOperations.find((one) => one === first);
  if (operation === undefined || command !== null) return null;
  if (component === undefined || more.length > 0) {
    throw new BatonError(
      "USAGE",
      `baton pool ${operation} needs one component, as in: baton pool ${operation} COMPONENT`,
    );
  }
  if (operation !== "status" && values.json) throw new BatonError("USAGE", jsonIsForStatus);
  const flag = findGivenFlag(flagsOfRuns, sources.flags);
  if (flag !== null) {
    throw new BatonError("USAGE", `${flag} is for a call that runs items, not for baton pool ${operation}`);
  }
  // A query from a file does not select the results to clear, because the query may omit completed items.
  const asked = operation === "clear" && !sources.flags.has("query") ? { ...values, query: undefined } : values;
  const isNamed = asked.items !== undefined || asked.query !== undefined;
  return {
    operation,
    component,
    path: configuredPoolPath(component, values, sources),
    items: isNamed ? itemSourceOf(asked, sources) : null,
  };
}

const jsonIsForStatus = "--json is for baton pool status; use --status-file for the report of a run";

/**
 * Returns the options for running items. Throws USAGE for an invalid combination of options, or CONFIG for invalid
 * templates.
 */
export function readPoolOptions(call: CommandCall<typeof poolCommandSettings>): PoolCommandOptions {
  const { values, names, command, sources } = call;
  const [component, ...more] = names;
  if (component === undefined) throw new BatonError("USAGE", `baton pool needs the name of a component, ${example}`);
  if (more.length > 0) {
    throw new BatonError(
      "USAGE",
      `baton pool takes one component before --, but "${names.join('", "')}" were given; ${doubleDashHint}`,
    );
  }
  refuseMistypedOperation(component, call);
  const given = commandOf(command, values);
  if (given === null) {
    throw new BatonError(
      "USAGE",
      `baton pool needs a command, ${example}; or pool.component.${component}.command in a configuration file`,
    );
  }
  commandForItem(given.command, "", given.isLine); // throws before the first item
  if (values.json) throw new BatonError("USAGE", jsonIsForStatus);
  if (values.loop && values.oneRound) throw new BatonError("USAGE", "--loop and --one-round cannot be used together");
  const { quiet, verbose } = values;
  const items = itemSourceOf(values, sources);
  return {
    component,
    path: configuredPoolPath(component, values, sources),
    items,
    output: outputOptionsOf(values),
    loop: values.loop || (items.kind !== "query" && !values.oneRound),
    ...given,
    quiet,
    verbose,
    values,
    sources,
  };
}

type PathValues = SettingValues<typeof poolSettings & Pick<typeof connectionSettings, "root">>;

/** An item that has enough words for every template. */
const wordyItem = "1 2 3 4 5 6 7 8 9";

/**
 * Returns the lock paths of a component. Throws USAGE for an invalid component. Throws CONFIG for an invalid template;
 * the message says where the setting is.
 */
export function configuredPoolPath(
  component: string,
  { poolComponentPath, poolItemPath, root }: PathValues,
  sources: ConfigSources,
): PoolPath {
  poolPath(component);
  const withItem = (item: string) => () => {
    const path = poolPath(component, { root, templates: { component: poolComponentPath, item } });
    path.item(wordyItem);
    return path;
  };
  // Checks the component template first, together with the default item template, so that an error names the right
  // setting.
  addOriginToErrors(
    "poolComponentPath",
    poolSettings.poolComponentPath,
    sources,
    withItem(defaultPoolPathTemplates.item),
  );
  return addOriginToErrors("poolItemPath", poolSettings.poolItemPath, sources, withItem(poolItemPath));
}

/** Throws USAGE for a mistyped operation without a list of items, such as `baton pool staus inbox`. */
function refuseMistypedOperation(
  component: string,
  { values, command }: Pick<CommandCall<typeof poolCommandSettings>, "values" | "command">,
): void {
  if (command?.length !== 1 || values.items !== undefined || values.query !== undefined) return;
  const operation = nearestWord(component, poolOperations);
  if (operation === null) return;
  throw new BatonError("USAGE", `There is no "baton pool ${component}", did you mean "${operation}"?`);
}

/** Returns the command of the command line, otherwise of the component's section; null if there is no command. */
function commandOf(
  typed: readonly string[] | null,
  { componentCommand: configured, shellLine: line }: Pick<PoolSettingValues, "componentCommand" | "shellLine">,
): Pick<PoolCommandOptions, "command" | "isLine"> | null {
  if (line !== undefined) return { command: ["/bin/sh", "-c", line], isLine: true };
  if (typed === null && typeof configured === "string") return { command: ["/bin/sh", "-c", configured], isLine: true };
  const [program, ...args] = typed ?? (typeof configured === "string" ? [] : configured ?? []);
  return program === undefined ? null : { command: [program, ...args], isLine: false };
}

function outputOptionsOf({ output, tag, jobs }: PoolSettingValues): PoolOutputOptions | null {
  const mode = output ?? (tag ? "lines" : jobs > 1 ? "group" : "raw");
  if (mode !== "raw") return { mode, isTagged: tag, unprintedMax: jobs };
  if (tag) throw new BatonError("USAGE", "--tag needs --output group or lines: with raw, baton does not see the lines");
  return null;
}

function itemSourceOf(
  { items, query: named }: Pick<PoolSettingValues, "items" | "query">,
  { flags }: ConfigSources,
): PoolItemSource {
  // --items on the command line overrides the query of the component's section.
  const query = items !== undefined && !flags.has("query") ? undefined : named;
  if (query !== undefined && items !== undefined) {
    throw new BatonError("USAGE", "--items and --query cannot be used together");
  }
  if (query !== undefined) return { kind: "query", line: query };
  if (items === undefined) throw new BatonError("USAGE", `baton pool needs --items or --query, ${example}`);
  if (items === "-" || items === "@-") return { kind: "stdin" };
  if (items === "@") {
    throw new BatonError("USAGE", "--items @ needs a file name: write --items @FILE, or - for standard input");
  }
  if (!items.startsWith("@")) return { kind: "list", list: items };
  return { kind: "file", file: items.slice(1) };
}

/**
 * Returns the component that the call names. The component's section in the configuration files has settings for the
 * call.
 */
export function findPoolComponent(names: readonly string[], command: readonly string[] | null): string | undefined {
  const isOperation = command === null && poolOperations.some((operation) => operation === names[0]);
  return names[isOperation ? 1 : 0];
}
