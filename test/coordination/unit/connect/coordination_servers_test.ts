import { afterAll, describe, expect, test } from "bun:test";
import { createPrivateKey } from "node:crypto";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type CoordinationServers,
  parseAclEntries,
  parseServerCredentials,
  readCoordinationServers,
  requireLockScope,
  unreachableKeeperHint,
} from "../../../../src/coordination/connect/coordination_servers.ts";
import { parseConfigFile } from "../../../support/parse_config_file.ts";
import { resolveSettings } from "../../../../src/base/config/resolve_settings.ts";
import { loadProductSettings } from "../../../../commands/products.ts";
import { connectionSettings } from "../../../../src/coordination/settings/coordination_settings.ts";
import { BatonError } from "../../../../src/base/errors.ts";
import { currentTlsOptions, type TlsOptions } from "../../../../src/base/sockets/connection.ts";
import { tlsFixture } from "../../../support/tls_fixture.ts";

const { all: allSettings } = await loadProductSettings();

const folder = mkdtempSync(join(tmpdir(), "baton-coordination-"));
afterAll(() => rmSync(folder, { recursive: true }));
const keeperDir = join(folder, "keeper");

const pem = (name: string) => tlsFixture(name, folder);

function placeOf(flags: Record<string, string>, env: Record<string, string> = {}): CoordinationServers {
  const sources = { flags: new Map(Object.entries(flags)), env: { BATON_KEEPER_DIR: keeperDir, ...env }, files: [] };
  return readCoordinationServers(resolveSettings(connectionSettings, sources), sources);
}

describe("where to coordinate, and how far that reaches", () => {
  const socket = `unix:${keeperDir}/keeper.sock`;
  const rows: [servers: string | undefined, expected: Partial<CoordinationServers>, startsKeeper: boolean][] = [
    [undefined, { servers: socket, scope: "user", assumed: true }, true],
    ["embedded", { servers: socket, scope: "user", assumed: false }, true],
    [socket, { servers: socket, scope: "user", assumed: false }, true],
    ["unix:/elsewhere/keeper.sock", { servers: "unix:/elsewhere/keeper.sock", scope: "user", assumed: false }, false],
    ["zk1,zk2:2182/app", { servers: "zk1,zk2:2182/app", scope: "cluster", assumed: false }, false],
  ];
  for (const [servers, expected, startsKeeper] of rows) {
    test(`--servers ${servers}: ${expected.scope}, a keeper is ${startsKeeper ? "" : "never "}started`, () => {
      const place = placeOf(servers === undefined ? {} : { servers });
      expect(place).toMatchObject(expected);
      expect(place.connect.startServer !== undefined).toBe(startsKeeper);
      expect(place.connect.unreachableHint?.()).toBe(startsKeeper ? `see ${keeperDir}/keeper.log` : undefined);
    });
  }

  test("a scope is required as the least", () => {
    const cluster = placeOf({ servers: "zk1" });
    const user = placeOf({});
    for (const scope of ["user", "machine", "cluster", undefined] as const) requireLockScope(scope, cluster);
    requireLockScope("user", user);
    expect(() => requireLockScope("machine", user)).toThrow(
      /--scope machine is required, but the scope of a lock at unix:/,
    );
  });
});

describe("secrets and certificates come from files and the environment", () => {
  test("credentials from both, certificates by their contents; any of them turns TLS on", () => {
    writeFileSync(join(folder, "auth"), "# ours\ndigest:ann:a:b\n\nip:10.0.0.1\n", { mode: 0o600 });
    const { connect } = placeOf(
      { servers: "zk1", authFile: join(folder, "auth"), tlsCa: pem("ca") },
      {
        BATON_AUTH_CREDENTIALS: "digest:bob:c",
        BATON_TLS_CERT: pem("client"),
        BATON_TLS_KEY: pem("client_key"),
      },
    );
    expect(connect.auth).toEqual([
      { scheme: "digest", credentials: "bob:c" },
      { scheme: "digest", credentials: "ann:a:b" },
      { scheme: "ip", credentials: "10.0.0.1" },
    ]);
    const [ca, cert, key] = ["ca", "client", "client_key"].map((name) => readFileSync(pem(name), "utf8"));
    expect(currentTlsOptions(connect.tls)).toEqual({ ca, cert, key } as TlsOptions);
    expect(currentTlsOptions(placeOf({ servers: "zk1" }, { BATON_TLS_PASSPHRASE: "open" }).connect.tls)).toEqual({
      passphrase: "open",
    });
    expect(placeOf({ servers: "zk1" }).connect.tls).toBeUndefined();
    expect(currentTlsOptions(placeOf({ servers: "zk1", tls: "true" }).connect.tls)).toEqual({});
  });

  test("no TLS to a unix socket, whoever listens there", () => {
    for (const servers of ["embedded", `unix:${keeperDir}/keeper.sock`, "unix:/elsewhere/keeper.sock"]) {
      // The settings are meant for the servers that are named elsewhere.
      const env = { BATON_TLS_ENABLED: "true", BATON_TLS_CA: "/nowhere" };
      expect(placeOf({ servers }, env).connect).not.toHaveProperty("tls");
      expect(placeOf({ servers, tls: "false" }).connect).not.toHaveProperty("tls");
      for (const [name, flag] of [["tls", "--tls"], ["tlsCa", "--tls-ca"], ["tlsServerName", "--tls-server-name"]]) {
        expect(() => placeOf({ servers, [String(name)]: "true" })).toThrow(
          new RegExp(`^${flag} needs servers named by --servers; .* is a socket of this machine`),
        );
      }
    }
  });

  test("a file with a secret that others may read is refused", () => {
    const file = join(folder, "open");
    const open = (path: string) => {
      chmodSync(path, 0o644);
      return `${path} has mode 644, which lets other users read it: chmod 600 ${path}`;
    };
    writeFileSync(file, "digest:ann:secret\n");
    const failure = open(file);
    expect(() => placeOf({ servers: "zk1", authFile: file })).toThrow(
      `--auth-file: The file with credentials ${failure}`,
    );
    expect(() => placeOf({}, { BATON_AUTH_FILE: file })).toThrow(
      `BATON_AUTH_FILE: The file with credentials ${failure}`,
    );
    const key = pem("client_key");
    const files = { BATON_TLS_CERT: pem("client"), BATON_TLS_KEY: key };
    expect(placeOf({ servers: "zk1" }, files).connect.tls).toBeDefined();
    const failing = open(key);
    expect(() => placeOf({ servers: "zk1" }, files)).toThrow(`BATON_TLS_KEY: The private key ${failing}`);
  });

  test("a file without credentials says so", () => {
    const file = join(folder, "without");
    for (const text of ["", "\n# digest:ann:secret\n"]) {
      writeFileSync(file, text, { mode: 0o600 });
      expect(() => placeOf({ servers: "zk1", authFile: file })).toThrow(
        /^--auth-file: .*without contains no credentials: /,
      );
    }
    expect(() => placeOf({ servers: "zk1", authFile: "/nope" })).toThrow(
      "--auth-file: Cannot read the credentials in /nope: no such file or directory",
    );
  });

  test("a file that is not there is the flag's fault or the variable's", () => {
    expect(() => placeOf({ servers: "zk1", tlsCa: join(folder, "none") })).toThrow(/^--tls-ca: .*none/);
    expect(() => placeOf({ servers: "zk1" }, { BATON_TLS_CA: join(folder, "none") })).toThrow(/^BATON_TLS_CA: .*none/);
  });

  test("a secret is not quoted when it is not understood", () => {
    expect(() => parseServerCredentials("good:x\nsecret", (line) => `FILE, line ${line}`)).toThrow(
      "FILE, line 2: this is not scheme:credentials",
    );
  });
});

describe("a value that cannot be used is reported with where it stands", () => {
  function failureOf(from: { flags?: Record<string, string>; env?: Record<string, string>; file?: string }): unknown {
    const { flags = {}, env = {}, file = "" } = from;
    const files = [parseConfigFile(allSettings, { path: "/c.toml", source: file })];
    const sources = { flags: new Map(Object.entries({ servers: "zk1", ...flags })), env, files };
    try {
      readCoordinationServers(resolveSettings(connectionSettings, sources), sources);
    } catch (thrown) {
      if (thrown instanceof BatonError) return `${thrown.code} ${thrown.message}`;
    }
    throw new Error("it was accepted");
  }
  const broken = join(folder, "broken.pem");
  writeFileSync(broken, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  const locked = join(folder, "locked.pem");
  const ownKey = createPrivateKey(readFileSync(pem("client_key")));
  const lock = { type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "open" } as const;
  writeFileSync(locked, ownKey.export(lock), { mode: 0o600 });

  test("a key that the passphrase opens is taken", () => {
    const env = { BATON_TLS_CERT: pem("client"), BATON_TLS_KEY: locked, BATON_TLS_PASSPHRASE: "open" };
    expect(currentTlsOptions(placeOf({ servers: "zk1" }, env).connect.tls)).toMatchObject({ passphrase: "open" });
  });

  const notAcl = '"x" is not open, creator or scheme:id:perms, where perms are letters of rwcda';
  const notCredentials = "line 1 of the value: this is not scheme:credentials, as in digest:USER:PASSWORD";
  const rows: [from: Parameters<typeof failureOf>[0], failure: string][] = [
    [{ file: '\nacl = ["creator", "x"]\nauth.credentials = "ip:"' }, `CONFIG /c.toml, line 2: acl: ${notAcl}`],
    [{ env: { BATON_ACL: "x" } }, `CONFIG BATON_ACL: ${notAcl}`],
    [{ env: { BATON_ACL: "open,x" } }, "CONFIG BATON_ACL: open must be the only entry"],
    [{ flags: { acl: "x" } }, `USAGE --acl: ${notAcl}`],
    [
      { flags: { acl: "creator" } },
      "USAGE --acl: creator needs auth.credentials, auth.file or tls.cert, which identify the creator",
    ],
    [{ file: '[auth]\ncredentials = "x"' }, `CONFIG /c.toml, line 2: auth.credentials: ${notCredentials}`],
    [{ env: { BATON_AUTH_CREDENTIALS: "x" } }, `CONFIG BATON_AUTH_CREDENTIALS: ${notCredentials}`],
    [{ env: { BATON_KEEPER_DIR: "k" } }, 'CONFIG BATON_KEEPER_DIR: "k" is not an absolute path'],
    [
      { file: 'keeper.dir = "/dev/null"', flags: { servers: "embedded" } },
      "CONFIG /c.toml, line 1: keeper.dir: The keeper's folder /dev/null is not safe",
    ],
    [
      { file: `\ntls.ca = "${pem("client_key")}"` },
      `CONFIG /c.toml, line 2: tls.ca: ${pem("client_key")} contains no certificate: a PEM file needs a line`,
    ],
    [{ flags: { tlsCa: broken } }, `USAGE --tls-ca: The certificate in ${broken} is not valid: `],
    [
      { env: { BATON_TLS_CERT: pem("client"), BATON_TLS_KEY: pem("ca") } },
      `CONFIG BATON_TLS_KEY: ${pem("ca")} contains no private key: a PEM file needs a line`,
    ],
    [
      { env: { BATON_TLS_CERT: pem("client"), BATON_TLS_KEY: pem("server_key") } },
      `CONFIG BATON_TLS_KEY: The private key in ${pem("server_key")} does not belong to the certificate in ${
        pem("client")
      }`,
    ],
    [
      { env: { BATON_TLS_CERT: pem("client") } },
      "CONFIG BATON_TLS_CERT: a certificate and its private key must be given together",
    ],
    [
      { env: { BATON_TLS_CERT: pem("client"), BATON_TLS_KEY: locked } },
      `CONFIG BATON_TLS_KEY: The private key in ${locked} is encrypted; set its passphrase`,
    ],
    [
      { env: { BATON_TLS_CERT: pem("client"), BATON_TLS_KEY: locked, BATON_TLS_PASSPHRASE: "wrong" } },
      `CONFIG BATON_TLS_KEY: The private key in ${locked} cannot be opened with the passphrase: `,
    ],
    [{ file: 'root = "app"' }, 'CONFIG /c.toml, line 1: root: "app" is not a ZooKeeper path'],
  ];
  for (const [from, failure] of rows) {
    test(JSON.stringify(from), () => expect(failureOf(from)).toStartWith(failure));
  }
});

test("an ACL is written as zkCli writes it", () => {
  expect(parseAclEntries(["open"])).toBeUndefined();
  expect(parseAclEntries(["creator", "digest:ann:x=:cdrwa", "ip:::1:r"])).toEqual([
    { perms: 31, id: { scheme: "auth", id: "" } },
    { perms: 31, id: { scheme: "digest", id: "ann:x=" } },
    { perms: 1, id: { scheme: "ip", id: "::1" } },
  ]);
  expect(() => parseAclEntries(["world:anyone:x"])).toThrow('"world:anyone:x" is not open, creator or scheme:id:perms');
});

test("a keeper that does not respond: its log is named, or the service that root has set up", () => {
  const path = join(folder, "keeper.log");
  const served = "baton keeper: 2026-01-01T00:00:00.000Z process 9 serves unix:/own/keeper.sock";
  const warning = "2026-01-01T00:00:01.000Z warning: The keeper's data cannot be written: database or disk is full";
  writeFileSync(path, `${served}\nbaton keeper: ${warning}\n`);
  expect(unreachableKeeperHint({ dir: folder })).toBe(`see ${path}, which ends with: ${warning}`);
  writeFileSync(path, `baton keeper: ${warning}\n${served}\n`);
  expect(unreachableKeeperHint({ dir: folder })).toBe(`see ${path}`);
  expect(unreachableKeeperHint({ dir: "/own/keeper" })).toBe("see /own/keeper/keeper.log");
  expect(unreachableKeeperHint({ dir: null })).toContain("systemctl status baton-keeper");
});
