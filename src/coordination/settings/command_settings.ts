/** Settings of single commands that files and variables can set: the sections `[keeper]` and `[pool]`. */
import { BatonError } from "../../base/errors.ts";
import {
  flagSetting,
  insecureFlagHelp,
  sectionSettingDeclarer,
  setting,
  type SettingTable,
} from "../../base/config/setting.ts";
import {
  choiceType,
  durationType,
  integerType,
  listType,
  sessionTimeoutType,
  type SettingValueType,
  textType,
  toggleType,
} from "../../base/config/value_types.ts";

const keeper = sectionSettingDeclarer("keeper.");
const component = sectionSettingDeclarer("pool.component.NAME.");

/**
 * Accepts a command in a file: an array is a program with its arguments, a string is a shell command. There is no flag
 * for such a setting; `parse` takes JSON.
 */
const commandLineType: SettingValueType<string | readonly string[]> = {
  placeholder: "command",
  fileType: "words",
  parse(written) {
    const value = JSON.parse(written) as string | readonly string[];
    const [first] = typeof value === "string" ? [value.trim()] : value;
    if (first) return value;
    throw new BatonError("USAGE", `"${written}" is not a shell command, or an array that begins with a program`);
  },
  format: (value) => JSON.stringify(value),
};

/** The maximum of --jobs. Each job is a process and a lock. */
const poolJobsMax = 1000;

/**
 * Settings of `baton keeper`. The limits and the longest session also apply to a keeper that another command starts.
 */
export const keeperSettings = {
  keeperListen: keeper("listen", listType("unix:PATH|host:port,…"), {
    once: true,
    help: "addresses to listen on; one that other machines can reach needs --tls-cert or --insecure",
    unset: "a Unix socket in the data folder",
  }),
  keeperInsecure: keeper("insecure", toggleType(), { group: "security", help: insecureFlagHelp, default: false }),
  keeperTlsCert: keeper("tls.cert", textType("file"), {
    group: "security",
    help: "PEM file with the server certificate; turns on TLS for TCP connections",
  }),
  keeperTlsKey: keeper("tls.key", textType("file"), {
    group: "security",
    help: "PEM file with the private key of the server certificate",
  }),
  keeperTlsCa: keeper("tls.ca", textType("file"), {
    group: "security",
    help: "PEM file with the authorities that sign client certificates",
    unset: "clients need no certificate",
  }),
  keeperSessionTimeoutMax: keeper("session_timeout_max", sessionTimeoutType({ minMs: 10 }), {
    group: "limits",
    help: "maximum session timeout of clients",
    default: 60_000,
  }),
  keeperLimits: setting(listType("NAME=VALUE,…"), {
    flag: "--limit",
    group: "limits",
    key: "keeper.limits",
    once: true,
    help: "override limits and times listed in docs/protocol/keeper.md, for example " +
      "dataBytesMax=1GiB,nodesMax=2000000; all data is kept in memory",
  }),
  keeperIdleExit: flagSetting("--idle-exit", durationType(), {
    help: "exit after this time without a session",
    unset: "never",
  }),
  keeperMetricsListen: keeper("metrics_listen", textType("host:port|unix:PATH"), {
    help: "serve /healthz and /metrics (Prometheus) by HTTP at this address; :PORT means this machine only",
    unset: "not served",
  }),
} satisfies SettingTable;

/** Settings for the log of commands that run for a long time. */
export const logSettings = {
  log: flagSetting("--log", choiceType(["text", "json"]), {
    help: "format of the log on stderr: text, or one JSON object per line",
    default: "text",
  }),
} satisfies SettingTable;

const sameInAllCalls = "must be the same in all calls, else exit 78";

export const poolSettings = {
  poolComponentPath: setting(textType("template"), {
    key: "pool.component_path",
    help: `template of the path of a pool's own lock, with {root} and {component}; ${sameInAllCalls}`,
    default: "{root}/locks/{component}",
  }),
  poolItemPath: setting(textType("template"), {
    key: "pool.item_path",
    help: "template of the path of an item's lock, with {root}, {component}, {item}, and {1} to {9} " +
      `for the words of the item; ${sameInAllCalls}`,
    default: "{root}/locks/{component}%2F{item}",
  }),
} satisfies SettingTable;

/**
 * Settings of one component of `baton pool`. A configuration file has a section for each component, and the command has
 * flags.
 */
export const poolComponentSettings = {
  query: component("query", textType("command"), {
    once: true,
    help: "shell command that prints the items, one per line; it runs while this call holds the component's lock",
  }),
  jobs: component("jobs", integerType("count", { min: 1, max: poolJobsMax }), {
    flag: "-j, --jobs",
    help: "run this many items at a time in this call",
    default: 1,
  }),
  total: component("total", integerType("count", { min: 1, max: 1_000_000 }), {
    help: "number of items of the component that run at the same time in all calls on all machines; " +
      sameInAllCalls,
    unset: "no limit",
  }),
  doneTtl: component("done_ttl", durationType({ minMs: 1 }), {
    help: "remember results this long; an item that succeeded is not run again until then",
    unset: "results are not kept",
  }),
  retries: component("retries", integerType("count", { min: 0, max: 1000 }), {
    help: "how many times a failed item is run again",
    default: 0,
  }),
  componentCommand: setting(commandLineType, {
    key: "pool.component.NAME.command",
    help: "command to run for each item if the call has none after --: an array is a program with its arguments; " +
      "a string is run by /bin/sh -c, with {} and {item} replaced by the item as one text, " +
      "also in quotation marks; the item is also $1",
  }),
} satisfies SettingTable;
