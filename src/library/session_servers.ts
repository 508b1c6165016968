/**
 * Finds the servers of a session in the same order as the commands: options, then variables, then configuration files.
 * If none of them names servers, starts and uses this user's keeper.
 */
import process from "node:process";
import { fileURLToPath } from "node:url";
import { readConfigFiles } from "../base/config/config_file.ts";
import { resolveSettings } from "../base/config/resolve_settings.ts";
import type { Setting, SettingTable } from "../base/config/setting.ts";
import { BatonError, errorMessage } from "../base/errors.ts";
import {
  type CoordinationServers,
  ownKeeperLocation,
  readCoordinationServers,
} from "../coordination/connect/coordination_servers.ts";
import { connectionSettings } from "../coordination/settings/coordination_settings.ts";
import {
  checkOptions,
  millisecondsForm,
  type OptionForms,
  textForm,
  textsForm,
  toggleForm,
} from "./check_arguments.ts";

/**
 * The options for reaching the servers. Options that are not given come from the variables `BATON_…` and the
 * configuration files, as for the commands.
 */
export interface SessionOptions {
  /** The servers: `zk1:2181,zk2:2181/app`, `unix:/path/of/keeper.sock`, or `embedded` for this user's keeper. */
  readonly servers?: string | undefined;
  /** The node below which baton keeps all of its nodes. */
  readonly root?: string | undefined;
  /** How long a process may be silent before the servers give its locks to others, in milliseconds. */
  readonly sessionTimeoutMs?: number | undefined;
  /** True to use TLS, or the names of PEM files for TLS. */
  readonly tls?: boolean | SessionTlsOptions | undefined;
  /** The credentials of this client, one per line: `digest:USER:PASSWORD`. */
  readonly credentials?: string | undefined;
  /** The access list of nodes that this client creates: `["creator"]`, or entries `scheme:id:perms`. */
  readonly acl?: readonly string[] | undefined;
}

export interface SessionTlsOptions {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly passphrase?: string | undefined;
  /** The name that the server's certificate must contain. */
  readonly serverName?: string | undefined;
}

const sessionForms: OptionForms<SessionOptions> = {
  servers: textForm,
  root: textForm,
  sessionTimeoutMs: millisecondsForm,
  tls: {
    expected: "true, false, or an object with names of files",
    fits: (value) => toggleForm.fits(value) || (typeof value === "object" && value !== null),
  },
  credentials: textForm,
  acl: textsForm,
};

const tlsForms: OptionForms<SessionTlsOptions> = {
  ca: textForm,
  cert: textForm,
  key: textForm,
  passphrase: textForm,
  serverName: textForm,
};

/** The setting in `connectionSettings` that each option stands for. */
const optionSettings = {
  servers: "servers",
  root: "root",
  sessionTimeoutMs: "sessionTimeout",
  credentials: "authCredentials",
  acl: "acl",
  tls: "tls",
  ca: "tlsCa",
  cert: "tlsCert",
  key: "tlsKey",
  passphrase: "tlsPassphrase",
  serverName: "tlsServerName",
} as const satisfies Record<string, keyof typeof connectionSettings>;

type OptionName = keyof typeof optionSettings;

/**
 * Returns the servers and how to connect to them. Rejects with USAGE for an invalid option, or CONFIG for an invalid
 * variable or file.
 */
export async function readSessionServers(options: SessionOptions, signal: AbortSignal): Promise<CoordinationServers> {
  const flags = new Map(givenOptions(options).map(([name, value]) => [optionSettings[name], written(name, value)]));
  const { env } = process;
  const sources = { flags, env, files: await readConfigFiles(loadAllSettings, { env }) };
  const values = resolveSettings(connectionSettings, sources);
  if (values.servers === undefined) await warnOfVariables();
  try {
    const servers = readCoordinationServers(values, sources, { signal });
    if (servers.connect.startServer === undefined) return servers;
    const startServer = async () => {
      const { ensureKeeper } = await import("../coordination/keeper/lifecycle/ensure_keeper.ts");
      await ensureKeeper(ownKeeperLocation(values, sources), { signal, command: keeperCommand() });
    };
    return { ...servers, connect: { ...servers.connect, startServer } };
  } catch (thrown) {
    throw namedByOption(thrown);
  }
}

/** Checks the options before a session is opened. Throws USAGE for an option that is invalid in itself. */
export function checkSessionOptions(call: string, options: SessionOptions): void {
  checkOptions(call, options, sessionForms);
  if (typeof options.tls === "object") checkOptions(`${call}: tls`, options.tls, tlsForms);
  for (const [name, value] of givenOptions(options)) written(name, value);
}

function givenOptions({ tls, ...options }: SessionOptions): [OptionName, unknown][] {
  const given = { ...options, ...(typeof tls === "object" ? { tls: true, ...tls } : { tls }) };
  return Object.entries(given).filter(([, value]) => value !== undefined) as [OptionName, unknown][];
}

/** Returns the value of an option as text, as it would be written on a command line. */
function written(name: OptionName, value: unknown): string {
  const { type } = connectionSettings[optionSettings[name]] as Setting<unknown>;
  try {
    const text = type.format(value as NonNullable<unknown>);
    type.parse(text);
    return text;
  } catch (cause) {
    throw new BatonError("USAGE", `${name}: ${errorMessage(cause)}`, { cause });
  }
}

/** Returns an error whose message names the option of the library instead of the flag of the commands. */
function namedByOption(thrown: unknown): unknown {
  if (!(thrown instanceof BatonError) || thrown.code !== "USAGE") return thrown;
  const flagOf = (name: OptionName) => {
    const { flag = "" } = connectionSettings[optionSettings[name]] as Setting<unknown>;
    return `${flag.split(", ").at(-1)}: `;
  };
  const name = (Object.keys(optionSettings) as OptionName[]).find((one) => thrown.message.startsWith(flagOf(one)));
  if (name === undefined) return thrown;
  return new BatonError("USAGE", `${name}: ${thrown.message.slice(flagOf(name).length)}`, { cause: thrown });
}

export async function loadAllSettings(): Promise<SettingTable> {
  const [{ coordinationTables }, { pubsubSettings }, { retrySettings }] = await Promise.all([
    import("../coordination/settings/setting_tables.ts"),
    import("../pubsub/settings/pubsub_settings.ts"),
    import("../retry/settings/retry_settings.ts"),
  ]);
  return { ...coordinationTables.all, ...coordinationTables.fileOnly, ...pubsubSettings, ...retrySettings };
}

/**
 * Warns of misspelled variables. If a variable for the servers is misspelled, a lock excludes only processes of this
 * user on this machine.
 */
async function warnOfVariables(): Promise<void> {
  if (!Object.keys(process.env).some((name) => name.startsWith("BATON_"))) return;
  const { describeUnknownVariables } = await import("../base/config/unknown_variables.ts");
  for (const sentence of describeUnknownVariables(process.env, await loadAllSettings(), { onlySimilar: true })) {
    if (!warned.has(sentence)) process.emitWarning(sentence, "BatonWarning");
    warned.add(sentence);
  }
}

const warned = new Set<string>();

/** Returns the command that runs keeper_process.ts with the runtime of this process. */
function keeperCommand(): string[] {
  const url = new URL("./keeper_process.ts", import.meta.url);
  if (url.pathname.startsWith("/$bunfs/")) {
    throw new BatonError("CONFIG", "A compiled program cannot start a keeper; name the servers, or start baton keeper");
  }
  const options = "Deno" in globalThis ? ["run", "-A", "--quiet"] : [];
  return [process.execPath, ...options, fileURLToPath(url)];
}
