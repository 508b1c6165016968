/**
 * The address of a PostgreSQL database, as a URL: postgres://USER@HOST1:PORT,HOST2/DATABASE?schema=baton. If there are
 * several hosts, they are the servers of one cluster, and baton uses the server that accepts writes. Reads the files
 * that the address names; opens no connection.
 */
import process from "node:process";
import { BatonError, errorMessage } from "../errors.ts";
import type { TlsFileNames } from "../sockets/connection.ts";
import { isLoopbackHost } from "../sockets/socket_reach.ts";
import { TlsFiles } from "../sockets/tls_files.ts";
import { ownUserName } from "../support/user_name.ts";
import { readFileSync } from "node:fs";
import { checkPrivateFile } from "../support/private_file.ts";

export interface DatabaseHost {
  /** A host name, an IP address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
}

/**
 * How much of a server's certificate is verified: nothing (`require`), its authority (`verify-ca`), or authority and
 * host name (`verify-full`).
 */
export type TlsVerification = "require" | "verify-ca" | "verify-full";

export interface DatabaseAddress {
  readonly hosts: readonly DatabaseHost[];
  readonly user: string;
  readonly database: string;
  readonly schema: string;
  /**
   * The password in the URL or in PGPASSWORD; undefined if neither has a password. A password file may then have it.
   */
  readonly password: string | undefined;
  /** The name of the password file, which need not exist; null if the user has no home folder. */
  readonly passwordFile: string | null;
  /** The parameter `sslmode`; null if `chooseTlsVerification` decides for each host. */
  readonly sslMode: SslMode | null;
  readonly tlsFiles: TlsFileNames;
}

const sslModes = ["disable", "require", "verify-ca", "verify-full"] as const;
type SslMode = (typeof sslModes)[number];

/** The parameters of the URL, named as in libpq. */
const parameterNames = [
  "schema",
  "host",
  "user",
  "passfile",
  "sslmode",
  "sslrootcert",
  "sslcert",
  "sslkey",
  "target_session_attrs",
] as const;
type Parameters = Partial<Record<(typeof parameterNames)[number], string>>;

/**
 * Returns true if the value of --store is a URL, false if it is a folder. `parseDatabaseUrl` rejects URLs that are not
 * for PostgreSQL.
 */
export function isDatabaseUrl(store: string): boolean {
  return /^([a-z][a-z0-9+.-]*:\/\/|postgres(ql)?:)/i.test(store);
}

/** Describes the database for messages, without the password. */
export function describeDatabase({ hosts, database, schema }: DatabaseAddress): string {
  const names = hosts.map(({ host, port }) => host.startsWith("/") ? host : `${bracketed(host)}:${port}`);
  return `postgres://${names.join(",")}/${database}${schema === "baton" ? "" : `?schema=${schema}`}`;
}

export function describeDatabaseHost({ host, port }: DatabaseHost): string {
  return host.startsWith("/") ? `${host}/.s.PGSQL.${port}` : `${bracketed(host)}:${port}`;
}

function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

/**
 * Parses a URL and checks the TLS files that it names. Throws CONFIG. `mayHavePassword` is false for a URL on the
 * command line, because every user of the machine can read command lines.
 */
export function parseDatabaseUrl(
  url: string,
  { mayHavePassword, env = process.env }: {
    readonly mayHavePassword: boolean;
    readonly env?: Readonly<Record<string, string | undefined>>;
  },
): DatabaseAddress {
  const parts = /^postgres(?:ql)?:\/\/(?:([^@/?]*)@)?([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/.exec(url);
  if (parts === null) {
    throw refused(url, "it is not a URL such as postgres://user@host1,host2:5433/database?schema=baton");
  }
  const [, login, hostList = "", databaseName = "", query = ""] = parts;
  if (hostList.includes("@") || databaseName.includes("@") || /^[^=&]*@/.test(query)) {
    throw refused(url, "one @ ends the user; in a name @, / and ? are written %40, %2F and %3F");
  }
  const parameters = parseParameters(query, url);
  const [userPart = "", ...passwordParts] = (login ?? "").split(":");
  if (passwordParts.length > 0 && !mayHavePassword) {
    const where = "PGPASSWORD, or a password file (PGPASSFILE, ~/.pgpass, ?passfile=)";
    throw refused(url, `a password in a URL can be read by others, in the list of processes and in logs; use ${where}`);
  }
  const user = decoded(userPart, url) || parameters.user || env["PGUSER"] || ownUserName();
  const schema = parameters.schema ?? "baton";
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw refused(url, `the schema "${schema}" is not 1 to 63 lower case letters, digits and underscores`);
  }
  if (parameters.target_session_attrs !== undefined && parameters.target_session_attrs !== "read-write") {
    throw refused(url, "the only value of target_session_attrs is read-write, which is the default");
  }
  return {
    hosts: parseHosts(hostList === "" ? parameters.host ?? "localhost" : hostList, url),
    user,
    database: decoded(databaseName, url) || env["PGDATABASE"] || user,
    schema,
    password: passwordParts.length > 0 ? decoded(passwordParts.join(":"), url) : env["PGPASSWORD"] || undefined,
    passwordFile: parameters.passfile ?? env["PGPASSFILE"] ?? (env["HOME"] ? `${env["HOME"]}/.pgpass` : null),
    sslMode: parseSslMode(parameters.sslmode, url),
    tlsFiles: tlsFilesOf(parameters),
  };
}

/**
 * Returns how to verify a host's certificate, or null for a connection without TLS. The default is `verify-full`;
 * connections within this machine use no TLS.
 */
export function chooseTlsVerification({ sslMode }: DatabaseAddress, { host }: DatabaseHost): TlsVerification | null {
  if (host.startsWith("/") || sslMode === "disable") return null;
  if (sslMode === null && isLoopbackHost(host)) return null;
  return sslMode ?? "verify-full";
}

function parseHosts(list: string, url: string): DatabaseHost[] {
  return list.split(",").map((text) => {
    const plain = decoded(text, url);
    if (plain.startsWith("/")) {
      const [, folder = plain, port] = /^(.*?)(?::(\d+))?$/.exec(plain) ?? [];
      return { host: folder, port: parsePort(port, url) };
    }
    const [, bracketedHost, name, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(plain) ?? [];
    const host = bracketedHost ?? name;
    if (host === undefined || (bracketedHost !== undefined && !bracketedHost.includes(":"))) {
      throw refused(
        url,
        `"${text}" is not a host: use name, name:port, [IPv6 address]:port, or the folder of a Unix socket`,
      );
    }
    return { host, port: parsePort(port, url) };
  });
}

function parsePort(port: string | undefined, url: string): number {
  if (port === undefined) return 5432;
  if (Number(port) > 0 && Number(port) < 65_536) return Number(port);
  throw refused(url, `"${port}" is not a port: use 1 to 65535`);
}

function parseParameters(query: string, url: string): Parameters {
  const parameters: Parameters = {};
  for (const text of query.split("&").filter(Boolean)) {
    const [name = "", value = ""] = text.split(/=(.*)/s);
    const known = parameterNames.find((known) => known === name);
    if (known === undefined) {
      throw refused(url, `the parameter "${name}" is not known; known are ${parameterNames.join(", ")}`);
    }
    parameters[known] = decoded(value, url);
  }
  return parameters;
}

function parseSslMode(value: string | undefined, url: string): SslMode | null {
  if (value === undefined) return null;
  const known = sslModes.find((known) => known === value);
  if (known !== undefined) return known;
  throw refused(url, `sslmode is "${value}"; expected ${sslModes.join(", ")}`);
}

function decoded(text: string, url: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refused(url, "it has a % that does not start an encoded character; write %25");
  }
}

/**
 * Returns the names of the TLS files. Reads the files, so that mistakes in them are reported before the first
 * connection. Throws CONFIG.
 */
function tlsFilesOf({ sslrootcert: ca, sslcert: cert, sslkey: key }: Parameters): TlsFileNames {
  const parameterOf = { ca: "sslrootcert", cert: "sslcert", key: "sslkey" };
  const at = <T>(name: keyof typeof parameterOf, act: () => T): T => {
    try {
      return act();
    } catch (error) {
      const what = `${parameterOf[name]} of the database URL: ${errorMessage(error)}`;
      throw new BatonError("CONFIG", what, { cause: error });
    }
  };
  return new TlsFiles({ ca, cert, key }, { at }).names;
}

function refused(url: string, why: string): BatonError {
  return new BatonError("CONFIG", `The database URL ${urlWithoutPassword(url)} cannot be used: ${why}`);
}

/** Returns the URL with stars in place of everything that may be a password. Accepts any text, also an invalid URL. */
export function urlWithoutPassword(url: string): string {
  return url.replace(/^([a-z][a-z0-9+.-]*:(?:\/\/)?[^:@/?]*):.*@/is, "$1:***@").replace(
    /([?&]password)=[^&]*/gi,
    "$1=***",
  );
}

/**
 * Finds the password in a file with the format of libpq's .pgpass: each line is host:port:database:user:password.
 * Returns undefined if the file does not exist or has no line for the database. Throws CONFIG for a file that other
 * users can read.
 */
export function readDatabasePassword(
  { database, user, passwordFile }: Pick<DatabaseAddress, "database" | "user" | "passwordFile">,
  { host, port }: DatabaseHost,
): string | undefined {
  if (passwordFile === null) return undefined;
  let text: string;
  try {
    text = readFileSync(passwordFile, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new BatonError("CONFIG", `Cannot read the password file: ${errorMessage(error)}`, { cause: error });
  }
  checkPrivateFile(passwordFile, "The password file");
  // libpq also accepts lines that name localhost for a Unix socket.
  const hostNames = host.startsWith("/") ? [host, "localhost"] : [host];
  for (const line of text.split("\n")) {
    const fields = passwordFields(line);
    if (fields === null) continue;
    const [atHost = "", atPort = "", atDatabase = "", atUser = "", password = ""] = fields;
    const matches = [[atPort, String(port)], [atDatabase, database], [atUser, user]] as const;
    const isHere = atHost === "*" || hostNames.includes(atHost);
    if (isHere && matches.every(([wanted, found]) => wanted === "*" || wanted === found)) return password;
  }
  return undefined;
}

/**
 * Splits a line into its five fields, in which a backslash escapes a colon or a backslash. Returns null for a comment
 * or a line with fewer fields.
 */
function passwordFields(line: string): string[] | null {
  if (line.startsWith("#")) return null;
  const fields = line.replace(/\r$/, "").match(/(?:\\.|[^:\\])*(?::|$)/g)?.slice(0, 5) ?? [];
  if (fields.length < 5) return null;
  return fields.map((field) => field.replace(/:$/, "").replace(/\\(.)/g, "$1"));
}
