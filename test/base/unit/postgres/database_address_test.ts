import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  chooseTlsVerification,
  describeDatabase,
  isDatabaseUrl,
  parseDatabaseUrl,
  readDatabasePassword,
} from "../../../../src/base/postgres/database_address.ts";

const parse = (url: string, env: Record<string, string> = {}, mayHavePassword = true) =>
  parseDatabaseUrl(url, { mayHavePassword, env });

describe("the URL of a database", () => {
  test("has several hosts, and what is left out comes from the environment", () => {
    const address = parse("postgres://pg1,pg2:5433,[::1]:5434/shop?schema=queues", { PGUSER: "ann", PGPASSWORD: "s" });
    expect(address).toMatchObject({
      hosts: [{ host: "pg1", port: 5432 }, { host: "pg2", port: 5433 }, { host: "::1", port: 5434 }],
      user: "ann",
      database: "shop",
      schema: "queues",
      password: "s",
    });
    expect(describeDatabase(address)).toBe("postgres://pg1:5432,pg2:5433,[::1]:5434/shop?schema=queues");
  });

  test("names the folder of a Unix socket as a host or as a parameter", () => {
    const socket = { host: "/var/run/postgresql", port: 5433 };
    expect(parse("postgres://%2Fvar%2Frun%2Fpostgresql%3A5433/shop").hosts).toEqual([socket]);
    expect(parse("postgres:///shop?host=/var/run/postgresql:5433").hosts).toEqual([socket]);
  });

  test("may have a password only where other users cannot read it, and no message shows it", () => {
    const url = "postgres://ann:geheim@pg1/shop";
    expect(parse(url).password).toBe("geheim");
    expect(describeDatabase(parse(url))).not.toContain("geheim");
    expect(() => parse(url, {}, false)).toThrow(
      /postgres:\/\/ann:\*\*\*@pg1\/shop cannot be used: a password in a URL can be read by others/,
    );
    expect(() => parse(`${url}?sslmode=maybe`)).toThrow(/^[^]*(?!geheim)sslmode is "maybe"; expected disable, require/);
  });

  test.each([
    "mysql://ann:geheim@pg1/shop",
    "Postgres://ann:geheim@pg1/shop",
    "postgres:ann:geheim@pg1/shop",
    "postgres://ann:a@geheim@pg1/shop",
    "postgres://ann:a/geheim@pg1/shop",
    "postgres://ann:1/geheim@pg1/shop",
    "postgres://ann:geheim/a@pg1/shop",
    "postgres://ann:a?geheim@pg1/shop",
    "postgres://ann:geheim?a@pg1/shop",
    "postgres://pg1/shop?password=geheim",
    "postgres://pg1/shop?user=ann&password=geheim&sslmode=maybe",
  ])("%s is refused, and no message shows the password", (url) => {
    expect(isDatabaseUrl(url)).toBe(true);
    for (const mayHavePassword of [true, false]) {
      expect(() => parse(url, {}, mayHavePassword)).toThrow(/^The database URL (?![^]*geheim)[^]* cannot be used: /);
    }
  });

  test.each([
    ["postgres://pg1:99999/x", /"99999" is not a port: use 1 to 65535/],
    ["postgres://pg1/x?shema=a", /the parameter "shema" is not known; known are schema/],
    ["postgres://pg1/x?schema=A-b", /the schema "A-b" is not/],
    ["postgres://pg1,,pg2/x", /"" is not a host/],
    ["postgres://pg1/x?target_session_attrs=any", /the only value of target_session_attrs is read-write/],
    ["postgres://pg1/100%", /write %25/],
    ["postgres://pg1/x?sslrootcert=/none.pem", /sslrootcert of the database URL: Cannot read \/none.pem/],
  ])("%s is refused with the reason", (url, why) => expect(() => parse(url)).toThrow(why));

  test("a folder is no database", () => {
    expect(["postgres://x/y", "postgresql://x", "/var/lib/x", "postgres", "./postgres:x", "a:b/c"].map(isDatabaseUrl))
      .toEqual([
        true,
        true,
        false,
        false,
        false,
        false,
      ]);
  });

  test("TLS verifies everything for other hosts, and is left out on this machine", () => {
    const modeOf = (url: string) => {
      const address = parse(url);
      return address.hosts.map((host) => chooseTlsVerification(address, host));
    };
    expect(modeOf("postgres://pg1,127.0.0.1,localhost,[::1],%2Frun/x")).toEqual([
      "verify-full",
      null,
      null,
      null,
      null,
    ]);
    expect(modeOf("postgres://pg1,127.0.0.1,%2Frun/x?sslmode=require")).toEqual(["require", "require", null]);
    expect(modeOf("postgres://pg1/x?sslmode=disable")).toEqual([null]);
  });
});

describe("the password file", () => {
  const line = (text: string, mode = 0o600) => {
    const folder = mkdtempSync(join(tmpdir(), "baton-pgpass-"));
    const passwordFile = join(folder, "pass");
    writeFileSync(passwordFile, text, { mode });
    try {
      return readDatabasePassword({ database: "shop", user: "ann", passwordFile }, { host: "pg1", port: 5432 });
    } finally {
      rmSync(folder, { recursive: true });
    }
  };

  test("gives the password of the first line that matches", () => {
    expect(line("# comment\npg2:*:*:*:no\npg1:5432:shop:ann:one\n*:*:*:*:two\n")).toBe("one");
    expect(line("*:*:*:ann:a\\:b\\\\c\n")).toBe("a:b\\c");
    expect(line("pg1:5433:*:*:no\n")).toBeUndefined();
  });

  test("is refused if other users can read it", () => {
    expect(() => line("*:*:*:*:x\n", 0o644)).toThrow(
      /The password file .* has mode 644, which lets other users read it/,
    );
  });
});
