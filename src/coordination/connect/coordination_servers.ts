/** Chooses the servers of a command and their scope: the configured servers, or this machine's keeper. */
import { readFileSync, statSync } from "node:fs";
import type { ZooKeeperConnectOptions } from "../../protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../protocols/zookeeper/hosts.ts";
import { validateNodePath } from "../../protocols/zookeeper/node_path.ts";
import { addOriginToErrors as atOriginOf, type ConfigSources } from "../../base/config/resolve_settings.ts";
import { type SettingValues, settingVariableName } from "../../base/config/setting.ts";
import { connectionSettings, type LockScope, lockScopes } from "../settings/coordination_settings.ts";
import { BatonError } from "../../base/errors.ts";
import { findKeeperLocation, type KeeperLocation, keeperLogFileName } from "../keeper/lifecycle/keeper_location.ts";
import type { TlsSource } from "../../base/sockets/connection.ts";
import { TlsFiles } from "../../base/sockets/tls_files.ts";
import { checkPrivateFile, readConfiguredFile } from "../../base/support/private_file.ts";
import { decodeUtf8 } from "../../base/support/text.ts";
import type { Acl } from "../../protocols/zookeeper/zookeeper.ts";

const tlsNames = ["tls", "tlsCa", "tlsCert", "tlsKey", "tlsServerName"] as const;

type ConnectionValues = SettingValues<typeof connectionSettings>;

export interface CoordinationServers {
  /** The value for `--servers` and BATON_SERVERS. */
  readonly servers: string;
  /** Parent node of all objects. */
  readonly root: string;
  readonly scope: LockScope;
  /** True if the user has configured no servers; baton then prints the scope. */
  readonly assumed: boolean;
  readonly connect: ZooKeeperConnectOptions;
}

export interface CoordinationServerOptions {
  /** Aborts connecting and the start of a keeper. */
  readonly signal?: AbortSignal | undefined;
  /** Called with a warning when renewed TLS files cannot be used. */
  readonly warn?: ((text: string) => void) | undefined;
}

/**
 * Returns the servers and the options to connect, and reads certificates and credentials. Never uses the embedded
 * keeper in place of configured servers. Throws USAGE or CONFIG, depending on where the wrong value is.
 */
export function readCoordinationServers(
  values: ConnectionValues,
  sources: ConfigSources,
  { signal, warn }: CoordinationServerOptions = {},
): CoordinationServers {
  const connection = connectionOptions(values, sources);
  const named = values.servers;
  if (named !== undefined && named !== "embedded" && !named.startsWith("unix:")) {
    const servers = readAtOrigin("servers", sources, () => parseZooKeeperServers(named));
    const origin = originOfServers(sources);
    const unreachableHint = origin === undefined ? undefined : () => origin;
    return {
      servers: named,
      root: values.root,
      scope: "cluster",
      assumed: false,
      connect: {
        servers,
        ...connection,
        ...withoutUndefined({ signal, unreachableHint, tls: tlsOf(values, sources, warn) }),
      },
    };
  }
  refuseTls(sources, named);
  const place = ownKeeperLocation(values, sources);
  const own = `unix:${place.socketPath}`;
  const address = named === undefined || named === "embedded" ? own : named;
  const servers = readAtOrigin("servers", sources, () => parseZooKeeperServers(address));
  const startServer = async () =>
    (await import("../keeper/lifecycle/ensure_keeper.ts")).ensureKeeper(place, withoutUndefined({ signal }));
  const hint = { unreachableHint: () => unreachableKeeperHint(place) };
  return {
    servers: address,
    root: values.root,
    scope: address === own ? place.scope : socketScope(address.slice("unix:".length)),
    assumed: named === undefined,
    // A unix socket needs no TLS, and a keeper does not support TLS there. A keeper is started only at this user's own
    // address.
    connect: {
      servers,
      ...connection,
      ...withoutUndefined({ signal }),
      ...(address === own ? { startServer, ...hint } : {}),
    },
  };
}

/**
 * Returns advice for the case that the keeper does not respond. Commands never start a keeper that serves the whole
 * machine.
 */
export function unreachableKeeperHint({ dir }: Pick<KeeperLocation, "dir">): string {
  if (dir !== null) {
    const path = `${dir}/${keeperLogFileName}`;
    const warning = lastWarningIn(path);
    return `see ${path}${warning === null ? "" : `, which ends with: ${warning}`}`;
  }
  return "root has set up a keeper for all users of this machine: see systemctl status baton-keeper";
}

/** Returns the last line of a keeper's log if it is a warning, with its time. Returns null if it is not. */
function lastWarningIn(path: string): string | null {
  try {
    const last = readFileSync(path, "utf8").trimEnd().split("\n").at(-1) ?? "";
    return /^baton keeper: (\S+ warning: .+)$/.exec(last)?.[1] ?? null;
  } catch {
    return null; // there is no log, or this user cannot read it
  }
}

/** Throws USAGE for TLS flags with a unix socket. Ignores TLS settings from a file or a variable. */
function refuseTls({ flags }: ConfigSources, named = "embedded"): void {
  const typed = tlsNames.find((name) => flags.has(name) && flags.get(name) !== "false");
  if (typed === undefined) return;
  const here = named === "embedded" ? "this machine's own keeper" : named;
  const { flag } = connectionSettings[typed];
  throw new BatonError("USAGE", `${flag} needs servers named by --servers; ${here} is a socket of this machine`);
}

/** Returns the location of this user's keeper. Throws CONFIG. */
export function ownKeeperLocation(
  { keeperDir }: Pick<ConnectionValues, "keeperDir">,
  sources: ConfigSources,
): KeeperLocation {
  const env = keeperDir === undefined ? sources.env : { ...sources.env, BATON_KEEPER_DIR: keeperDir };
  return readAtOrigin("keeperDir", sources, () => findKeeperLocation(env));
}

/** Returns the variable or the file that names the servers; undefined if a flag does. */
function originOfServers(sources: ConfigSources): string | undefined {
  if (sources.flags.has("servers")) return undefined;
  const variable = settingVariableName("servers");
  if (sources.env[variable]) return `${variable} names these servers`;
  const file = sources.files.find(({ values }) => values.has("servers"));
  return file === undefined ? undefined : `${file.path} names these servers`;
}

/** Throws SCOPE_MISMATCH if the lock's scope is smaller than required. */
export function requireLockScope(required: LockScope | undefined, { scope, servers }: CoordinationServers): void {
  if (required === undefined || lockScopes.indexOf(scope) >= lockScopes.indexOf(required)) return;
  throw new BatonError(
    "SCOPE_MISMATCH",
    `--scope ${required} is required, but the scope of a lock at ${servers} is: ${
      lockScopeTexts[scope]
    }; use --servers`,
  );
}

/** Texts about each scope for messages. */
export const lockScopeTexts: Readonly<Record<LockScope, string>> = {
  user: "this user's processes on this machine only",
  machine: "all processes on this machine, and no other machine",
  cluster: "all processes that use the same servers",
};

/** A socket that root owns serves all users of the machine. */
function socketScope(path: string): LockScope {
  try {
    return statSync(path).uid === 0 && process.geteuid?.() !== 0 ? "machine" : "user";
  } catch {
    return "user"; // connecting will report the error
  }
}

function connectionOptions(values: ConnectionValues, sources: ConfigSources): Omit<ZooKeeperConnectOptions, "servers"> {
  const { authCredentials, authFile } = values;
  const auth = [
    ...(authCredentials === undefined ? [] : readAtOrigin(
      "authCredentials",
      sources,
      () => parseServerCredentials(authCredentials, (line) => `line ${line} of the value`),
    )),
    ...(authFile === undefined ? [] : readCredentials(authFile, sources)),
  ];
  const acl = readAtOrigin("acl", sources, () => {
    // A client certificate also identifies the creator.
    const hasName = auth.length > 0 || values.tlsCert !== undefined;
    if (!values.acl.includes("creator") || hasName) return parseAclEntries(values.acl);
    throw new BatonError(
      "CONFIG",
      "creator needs auth.credentials, auth.file or tls.cert, which identify the creator",
    );
  });
  readAtOrigin("root", sources, () => validateNodePath(values.root));
  return {
    auth,
    sessionTimeoutMs: values.sessionTimeout,
    frameBytesMax: values.connectMaxRequestSize,
    ...withoutUndefined({
      connectTimeoutMs: values.connectTimeout,
      retries: values.connectRetries,
      delayMs: values.connectDelay,
      acl,
    }),
  };
}

function tlsOf(
  { tls, tlsCa: ca, tlsCert: cert, tlsKey: key, tlsPassphrase: passphrase, tlsServerName: serverName }:
    ConnectionValues,
  sources: ConfigSources,
  warn: CoordinationServerOptions["warn"],
): TlsSource | undefined {
  const names = withoutUndefined({ ca, cert, key, passphrase, serverName });
  if (Object.keys(names).length === 0) return tls ? {} : undefined;
  const settingOf = { ca: "tlsCa", cert: "tlsCert", key: "tlsKey" } as const;
  return new TlsFiles(names, { at: (name, read) => readAtOrigin(settingOf[name], sources, read), warn });
}

function readCredentials(file: string, sources: ConfigSources): ReturnType<typeof parseServerCredentials> {
  return readAtOrigin("authFile", sources, () => {
    const text = decodeUtf8(readConfiguredFile(file, `the credentials in ${file}`), file);
    const found = parseServerCredentials(text, (line) => `${file}, line ${line}`);
    checkPrivateFile(file, "The file with credentials");
    if (found.length > 0) return found;
    throw new BatonError(
      "CONFIG",
      `${file} contains no credentials: write a line scheme:credentials, as in digest:USER:PASSWORD`,
    );
  });
}

function readAtOrigin<T>(name: keyof ConnectionValues, sources: ConfigSources, read: () => T): T {
  return atOriginOf(name, connectionSettings[name], sources, read);
}

type Present<T> = { [K in keyof T]?: NonNullable<T[K]> };

/** Removes options whose value is undefined, because `undefined` and a missing option mean different things. */
function withoutUndefined<T extends Record<string, unknown>>(options: T): Present<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Present<T>;
}

/** The permission bits of the letters that zkCli uses. Source: ZooDefs.Perms. */
const letters: Record<string, number> = { r: 1, w: 2, c: 4, d: 8, a: 16 };
const all = 31;

/**
 * Parses ACL entries. Returns undefined for `open`, which is the client's default. Throws CONFIG; the caller adds where
 * the entries come from.
 */
export function parseAclEntries(entries: readonly string[]): Acl[] | undefined {
  if (entries.length === 1 && entries[0] === "open") return undefined;
  return entries.map((entry) => {
    if (entry === "creator") return { perms: all, id: { scheme: "auth", id: "" } };
    if (entry === "open") {
      throw new BatonError(
        "CONFIG",
        "open must be the only entry; with other entries, write world:anyone:cdrwa for all clients",
      );
    }
    const [, scheme, id, written] = /^([^:]+):(.*):([rwcda]+)$/.exec(entry) ?? [];
    if (scheme === undefined || id === undefined || written === undefined) {
      throw new BatonError(
        "CONFIG",
        `"${entry}" is not open, creator or scheme:id:perms, where perms are letters of rwcda`,
      );
    }
    return { perms: [...written].reduce((bits, letter) => bits | (letters[letter] ?? 0), 0), id: { scheme, id } };
  });
}

/**
 * Reads credentials, one on each line. Ignores empty lines and lines that start with #. Throws CONFIG. `where` returns
 * the name of a line, counted from 1, for the message. Messages never quote a secret.
 */
export function parseServerCredentials(
  text: string,
  where: (line: number) => string,
): { scheme: string; credentials: string }[] {
  return text.split("\n").map((line) => line.trim()).flatMap((line, index) => {
    if (line === "" || line.startsWith("#")) return [];
    const colon = line.indexOf(":");
    if (colon < 1) {
      throw new BatonError(
        "CONFIG",
        `${where(index + 1)}: this is not scheme:credentials, as in digest:USER:PASSWORD`,
      );
    }
    return [{ scheme: line.slice(0, colon), credentials: line.slice(colon + 1) }];
  });
}
