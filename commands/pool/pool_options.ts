/** `baton pool`'s command line as data: what may stand together, and what follows from it. Pure. */
import type { ConfigSources } from "../../src/config/resolve_settings.ts";
import { setting, type SettingTable, type SettingValues } from "../../src/config/setting.ts";
import { connectionSettings, poolComponentSettings, poolSettings } from "../../src/config/settings.ts";
import { duration, integer, text, toggle } from "../../src/config/value_types.ts";
import { quoted } from "../../src/process/hold/shell_quote.ts";
import { BatonError } from "../../src/errors.ts";
import type { PoolPath } from "../../src/coordination/pool/pool_path.ts";
import { nearestWord } from "../../src/support/did_you_mean.ts";
import type { Call } from "../command.ts";
import { exitCodes } from "../exit_codes.ts";
import { givenFlag } from "../command.ts";
import { jobSettings, statusFlags } from "../job/job_flags.ts";
import { configuredPoolPath } from "./configured_path.ts";

/** The command line's own, and those that a component's section of a file has, too. */
const flags = {
  ...poolComponentSettings,
  items: setting(text("-|@FILE|a,b,c"), {
    flag: "--items",
    once: true,
    help: "the items: lines of standard input (-), lines of a file (@FILE), or a list with commas",
  }),
  queryTimeout: setting(duration({ minMs: 1 }), {
    flag: "--query-timeout",
    help: "the query is stopped when it takes longer",
    default: 300_000,
  }),
  loop: setting(toggle(), {
    flag: "--loop",
    help: "take another item when one has ended, and ask --query again, as long as there are any",
    default: false,
  }),
  drain: setting(toggle(), {
    flag: "--drain",
    help: "at the first TERM, INT or HUP let what runs finish, and take nothing new; a second one is passed on",
    default: false,
  }),
  wait: setting(duration(), {
    flag: "-w, --wait",
    help:
      "how long to wait for the component, connecting included, then exit 81, or 69 when no server answers, and with --loop for a permit of --total; without it as long as another call chooses items, up to --query-timeout, and for a permit without limit",
  }),
  conflictExitCode: setting(integer("code", { min: 0, max: 255 }), {
    flag: "-E, --conflict-exit-code",
    help: "the exit code instead of 81 when the component is busy",
  }),
  maxHold: setting(duration({ minMs: 1 }), { flag: "--max-hold", help: "stop a job so long after its start" }),
  reason: setting(text("text"), { flag: "--reason", help: "what the pool is for; others read it with baton who" }),
  passAuth: setting(toggle(), {
    flag: "--pass-auth",
    help: "leave the variables with credentials in the children's environment",
    default: false,
  }),
  json: setting(toggle(), { flag: "--json", help: "for status: print one JSON object", default: false }),
  ...statusFlags,
} satisfies SettingTable;

export const poolCommandSettings = {
  ...flags,
  ...jobSettings,
  ...poolSettings,
  ...connectionSettings,
} satisfies SettingTable;

/** What says how items are run: nothing to whoever only looks, or forgets. */
const { items: _items, query: _query, queryTimeout: _queryTimeout, json: _json, ...runFlags } = flags;
const flagsOfRuns = { ...runFlags, ...jobSettings } satisfies SettingTable;

/** What can be done with a pool besides running it. */
export const poolForms = {
  status: { refuses: flagsOfRuns, runsNothing: true },
  forget: { refuses: { ...flagsOfRuns, json: flags.json }, runsNothing: true },
} as const;
const poolOperations = ["status", "forget"] as const satisfies readonly (keyof typeof poolForms)[];

export type PoolValues = SettingValues<typeof poolCommandSettings>;

/** Where the items come from. */
export type ItemSource =
  | { readonly kind: "stdin" }
  | { readonly kind: "file"; readonly file: string }
  | { readonly kind: "list"; readonly list: string }
  | { readonly kind: "query"; readonly line: string };

export interface PoolCommandOptions {
  readonly component: string;
  readonly path: PoolPath;
  readonly items: ItemSource;
  readonly command: readonly [string, ...string[]];
  /** The command's last word is a line of shell that a file gives. */
  readonly isLine: boolean;
  /** For a component that is busy. */
  readonly conflictExitCode: number;
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly values: PoolValues;
  readonly sources: ConfigSources;
}

/** Of what is there to look at. */
export interface PoolStatusOptions {
  readonly component: string;
  readonly path: PoolPath;
  /** Null when nobody says which there are. */
  readonly items: ItemSource | null;
}

const example = "as in: baton pool COMPONENT --query ./list.sh -j 4 -- ./work.sh {item}";

/** The words of `baton pool status COMPONENT` and `baton pool forget COMPONENT`; null for a pool that is to run. */
export function poolOperationOf(
  call: Call<typeof poolCommandSettings>,
): PoolStatusOptions & { readonly deed: typeof poolOperations[number] } | null {
  const { names: [first, component, ...more], command, values, sources } = call;
  const deed = poolOperations.find((one) => one === first);
  if (deed === undefined || command !== null) return null;
  if (component === undefined || more.length > 0) {
    throw new BatonError("USAGE", `baton pool ${deed} needs one component, as in: baton pool ${deed} COMPONENT`);
  }
  if (deed !== "status" && values.json) throw new BatonError("USAGE", jsonIsForStatus);
  const flag = givenFlag(flagsOfRuns, sources.flags);
  if (flag !== null) {
    throw new BatonError("USAGE", `${flag} is for a pool that runs its items, not for baton pool ${deed}`);
  }
  // What is forgotten is said in the call: the query of a file would leave out all that is done.
  const asked = deed === "forget" && !sources.flags.has("query") ? { ...values, query: undefined } : values;
  const isNamed = asked.items !== undefined || asked.query !== undefined;
  return {
    deed,
    component,
    path: configuredPoolPath(component, values, sources),
    items: isNamed ? itemSourceOf(asked, sources) : null,
  };
}

const jsonIsForStatus = "--json is for baton pool status; --status-file tells about a run";

/** Throws USAGE for what does not fit together, CONFIG for templates that cannot be. */
export function poolOptionsOf(call: Call<typeof poolCommandSettings>): PoolCommandOptions {
  const { values, names, command, sources } = call;
  const [component, ...more] = names;
  if (component === undefined) throw new BatonError("USAGE", `baton pool needs the name of a component, ${example}`);
  if (more.length > 0) throw new BatonError("USAGE", complaintAboutMore(names, command === null));
  const given = commandOf(command, values.componentCommand);
  if (given === null) {
    throw new BatonError(
      "USAGE",
      `baton pool needs a command behind --, ${example}; or pool.component.${component}.command in a configuration file`,
    );
  }
  if (values.json) throw new BatonError("USAGE", jsonIsForStatus);
  const { quiet, verbose } = values;
  return {
    component,
    path: configuredPoolPath(component, values, sources),
    items: itemSourceOf(values, sources),
    ...given,
    conflictExitCode: values.conflictExitCode ?? exitCodes.SKIPPED,
    quiet,
    verbose,
    values,
    sources,
  };
}

/** What somebody meant who names more than a component. */
function complaintAboutMore(names: readonly string[], isWithoutCommand: boolean): string {
  const [first = "", ...more] = names;
  const all = `baton pool takes one component, and "${names.join('", "')}" are given`;
  if (!isWithoutCommand) return all;
  const deed = nearestWord(first, poolOperations);
  if (more.length === 1 && deed !== null) return `There is no "baton pool ${first}", did you mean "${deed}"?`;
  return `${all}; what is to be run stands behind --, as in: baton pool ${first} --items a,b -- ${
    more.join(" ")
  } {item}`;
}

/** The command line's goes before the component's. Null: there is none. */
function commandOf(
  typed: readonly string[] | null,
  configured: PoolValues["componentCommand"],
): Pick<PoolCommandOptions, "command" | "isLine"> | null {
  if (typed === null && typeof configured === "string") return { command: ["/bin/sh", "-c", configured], isLine: true };
  const [program, ...args] = typed ?? (typeof configured === "string" ? [] : configured ?? []);
  return program === undefined ? null : { command: [program, ...args], isLine: false };
}

function itemSourceOf(
  { items, query: named }: Pick<PoolValues, "items" | "query">,
  { flags }: ConfigSources,
): ItemSource {
  // Items that are typed go before the component's query.
  const query = items !== undefined && !flags.has("query") ? undefined : named;
  if (query !== undefined && items !== undefined) {
    throw new BatonError("USAGE", "--items and --query do not go together");
  }
  if (query !== undefined) return { kind: "query", line: query };
  if (items === undefined) throw new BatonError("USAGE", `baton pool needs --items or --query, ${example}`);
  if (items === "-") return { kind: "stdin" };
  if (items === "@") {
    throw new BatonError("USAGE", "--items @ names no file: write --items @FILE, with - for standard input");
  }
  return items.startsWith("@") ? { kind: "file", file: items.slice(1) } : { kind: "list", list: items };
}

/** The command's words for one item. In a line of shell (`isLine`) the item is one quoted word, whatever is in it. */
export function wordsFor(
  command: readonly [string, ...string[]],
  item: string,
  isLine = false,
): [string, ...string[]] {
  const written = isLine ? quoted(item) : item;
  const [program, ...args] = command.map((word) => word.replaceAll(/\{(item)?\}/g, () => written));
  return [program ?? "", ...args];
}

/** In whose section of the files a call's settings are. */
export function componentOf(names: readonly string[], command: readonly string[] | null): string | undefined {
  const isDeed = command === null && poolOperations.some((deed) => deed === names[0]);
  return names[isDeed ? 1 : 0];
}

/** Whether each item has a program of its own: one that is missing says nothing of the others. */
export function namesProgramByItem([program]: readonly [string, ...string[]]): boolean {
  return /\{(item)?\}/.test(program);
}
