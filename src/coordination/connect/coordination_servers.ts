/** Where a command coordinates: the servers that are named, or this machine's own keeper; and how far that reaches. */
import { readFileSync, statSync } from "node:fs";
import type { ConnectOptions } from "../../zookeeper/zookeeper_client.ts";
import { parseServers } from "../../zookeeper/hosts.ts";
import { validatePath } from "../../zookeeper/node_path_names.ts";
import type { ConfigSources } from "../../config/resolve_settings.ts";
import { atOrigin as atOriginOf } from "../../config/resolve_settings.ts";
import { type SettingValues, variableOf } from "../../config/setting.ts";
import { connectionSettings, type Scope, scopes } from "../../config/settings.ts";
import { BatonError, messageOf } from "../../errors.ts";
import { type KeeperLocation, keeperLocation, keeperLogName } from "../../keeper/lifecycle/keeper_location.ts";
import type { TlsOptions } from "../../sockets/connection.ts";
import { checkPrivateFile } from "../../support/private_file.ts";
import { utf8Text } from "../../support/text.ts";
import { aclOf, credentialsOf } from "./acl_option.ts";
import { tlsFilesOf } from "./tls_files.ts";

const tlsNames = ["tls", "tlsCa", "tlsCert", "tlsKey", "tlsServerName"] as const;

type ConnectionValues = SettingValues<typeof connectionSettings>;

export interface Coordination {
  /** As `--servers` and the child's BATON_SERVERS take it. */
  readonly servers: string;
  /** The node below which everything is. */
  readonly root: string;
  readonly scope: Scope;
  /** Nobody said where: whoever runs the command is told how far it reaches. */
  readonly assumed: boolean;
  readonly connect: ConnectOptions;
}

/**
 * Decides it, and reads the files that belong to it (certificates, credentials). Servers named are never replaced by the
 * embedded keeper, whatever fails. Throws USAGE or CONFIG, by where the wrong value stands.
 */
export function coordinationOf(values: ConnectionValues, sources: ConfigSources, signal?: AbortSignal): Coordination {
  const connection = connectionOptions(values, sources);
  const named = values.servers;
  if (named !== undefined && named !== "embedded" && !named.startsWith("unix:")) {
    const servers = atOrigin("servers", sources, () => parseServers(named));
    const unreachableHint = originOfServers(sources);
    return {
      servers: named,
      root: values.root,
      scope: "cluster",
      assumed: false,
      connect: { servers, ...connection, ...optional({ signal, unreachableHint, tls: tlsOf(values, sources) }) },
    };
  }
  refuseTls(sources, named);
  const place = ownKeeperLocation(values, sources);
  const own = `unix:${place.socketPath}`;
  const address = named === undefined || named === "embedded" ? own : named;
  const servers = atOrigin("servers", sources, () => parseServers(address));
  const startServer = async () =>
    (await import("../../keeper/lifecycle/ensure_keeper.ts")).ensureKeeper(place, optional({ signal }));
  const hint = place.dir === null ? {} : { unreachableHint: `see ${place.dir}/${keeperLogName}` };
  return {
    servers: address,
    root: values.root,
    scope: address === own ? place.scope : socketScope(address.slice("unix:".length)),
    assumed: named === undefined,
    // No TLS: nobody listens in between on a unix socket, and a keeper does not speak it.
    // In the stead of a keeper that somebody else runs, nothing is started.
    connect: { servers, ...connection, ...optional({ signal }), ...(address === own ? { startServer, ...hint } : {}) },
  };
}

/** What stands in a file or a variable may be meant for servers; what was just typed is meant for these. Throws USAGE. */
function refuseTls({ flags }: ConfigSources, named = "embedded"): void {
  const typed = tlsNames.find((name) => flags.has(name) && flags.get(name) !== "false");
  if (typed === undefined) return;
  const here = named === "embedded" ? "this machine's own keeper" : named;
  const { flag } = connectionSettings[typed];
  throw new BatonError("USAGE", `${flag} is for servers that --servers names, and ${here} is a socket of this machine`);
}

/** Where this user's keeper is, by `keeper.dir` and the rules of place.ts. Throws CONFIG. */
export function ownKeeperLocation(
  { keeperDir }: Pick<ConnectionValues, "keeperDir">,
  sources: ConfigSources,
): KeeperLocation {
  const env = keeperDir === undefined ? sources.env : { ...sources.env, BATON_KEEPER_DIR: keeperDir };
  return atOrigin("keeperDir", sources, () => keeperLocation(env));
}

/** Undefined where the caller has just typed it. */
function originOfServers(sources: ConfigSources): string | undefined {
  if (sources.flags.has("servers")) return undefined;
  const variable = variableOf("servers");
  if (sources.env[variable]) return `${variable} names these servers`;
  const file = sources.files.find(({ values }) => values.has("servers"));
  return file === undefined ? undefined : `${file.path} names these servers`;
}

/** Throws SCOPE_MISMATCH when the lock would reach less far than demanded. */
export function demandScope(demanded: Scope | undefined, { scope, servers }: Coordination): void {
  if (demanded === undefined || scopes.indexOf(scope) >= scopes.indexOf(demanded)) return;
  throw new BatonError(
    "SCOPE_MISMATCH",
    `--scope ${demanded} is demanded, but a lock at ${servers} reaches ${reach[scope]}; name servers with --servers`,
  );
}

/** How far each scope reaches, as the end of a sentence. */
export const reach: Readonly<Record<Scope, string>> = {
  user: "this user's processes on this machine only",
  machine: "all processes on this machine, and no other machine",
  cluster: "everything that uses the same servers",
};

/** A socket that root owns serves everybody on the machine. */
function socketScope(path: string): Scope {
  try {
    return statSync(path).uid === 0 && process.geteuid?.() !== 0 ? "machine" : "user";
  } catch {
    return "user"; // connecting will say what is wrong with it
  }
}

function connectionOptions(values: ConnectionValues, sources: ConfigSources): Omit<ConnectOptions, "servers"> {
  const auth = [
    ...atOrigin(
      "authCredentials",
      sources,
      () => credentialsOf(values.authCredentials ?? "", (line) => `line ${line} of the value`),
    ),
    ...(values.authFile === undefined ? [] : readCredentials(values.authFile, sources)),
  ];
  const acl = atOrigin("acl", sources, () => {
    // A certificate is a name too, to servers that ask their clients for one.
    const hasName = auth.length > 0 || values.tlsCert !== undefined;
    if (!values.acl.includes("creator") || hasName) return aclOf(values.acl);
    throw new BatonError(
      "CONFIG",
      "creator needs auth.credentials, auth.file or tls.cert, which say who the creator is",
    );
  });
  atOrigin("root", sources, () => validatePath(values.root));
  return {
    auth,
    sessionTimeoutMs: values.sessionTimeout,
    frameBytesMax: values.connectMaxRequestSize,
    ...optional({
      connectTimeoutMs: values.connectTimeout,
      retries: values.connectRetries,
      delayMs: values.connectDelay,
      acl,
    }),
  };
}

function tlsOf(values: ConnectionValues, sources: ConfigSources): TlsOptions | undefined {
  const options = optional({
    ...tlsFilesOf(values, (name, read) => atOrigin(name, sources, read)),
    passphrase: values.tlsPassphrase,
    serverName: values.tlsServerName,
  });
  return values.tls || Object.keys(options).length > 0 ? options : undefined;
}

function readCredentials(file: string, sources: ConfigSources): ReturnType<typeof credentialsOf> {
  return atOrigin("authFile", sources, () => {
    const found = credentialsOf(textOf(file), (line) => `${file}, line ${line}`);
    checkPrivateFile(file, "The file with credentials");
    if (found.length > 0) return found;
    throw new BatonError(
      "CONFIG",
      `${file} has no credentials: a line with scheme:credentials is wanted, as in digest:USER:PASSWORD`,
    );
  });
}

function textOf(file: string): string {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(file);
  } catch (thrown) {
    throw new BatonError("CONFIG", `Cannot read the credentials in ${file}: ${messageOf(thrown)}`, { cause: thrown });
  }
  return utf8Text(bytes, file);
}

function atOrigin<T>(name: keyof ConnectionValues, sources: ConfigSources, read: () => T): T {
  return atOriginOf(name, connectionSettings[name], sources, read);
}

type Present<T> = { [K in keyof T]?: NonNullable<T[K]> };

/** Only what is there: an option that is undefined is not the same as one left out. */
function optional<T extends Record<string, unknown>>(options: T): Present<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Present<T>;
}
