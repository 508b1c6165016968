import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfigFiles } from "../../../src/config/config_file.ts";
import { parseConfigFile } from "../../../src/config/config_syntax.ts";
import { allSettings } from "../../../src/config/settings.ts";
import { messageOf } from "../../../src/errors.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-config-"));
afterAll(() => rmSync(folder, { recursive: true }));

function complaintOf(path: string, source: string): string {
  try {
    parseConfigFile(allSettings, { path, source });
  } catch (thrown) {
    return messageOf(thrown);
  }
  throw new Error("the file was accepted");
}

describe("what is wrong is named with file, line, key, value and what was wanted", () => {
  const cases: [name: string, toml: string, json: string, complaint: string][] = [
    [
      "a bad value",
      'servers = "a:1"\n# why\n[lock]\nkill_after = "10"\n',
      '{\n "servers": "a:1",\n "lock": {\n  "kill_after": "10"}}',
      'line 4: lock.kill_after: "10" is not a duration: write a number with a unit, such as 250ms, 10s, 5m or 2h',
    ],
    [
      "a wrong type",
      "\n\nconnect.retries = 'three'",
      '{\n\n"connect": {"retries": "three"}}',
      'line 3: connect.retries = "three" is not written as a whole number without quotation marks',
    ],
    [
      "an unknown key",
      "[session]\ntimout = '10s'",
      '{"session": {\n"timout": "10s"}}',
      'line 2: there is no setting "session.timout", did you mean "session.timeout"?',
    ],
    [
      "an unknown section",
      "root='/a'\n[looock]\nx = 1",
      '{"root": "/a",\n"looock": {}}',
      'line 2: there is no setting "looock"',
    ],
    ["a value for a section", "lock = 3", '{"lock": 3}', "line 1: lock = 3 is not a section with settings in it"],
    [
      "a key inside a value of several lines is not taken for the key",
      'root = """\nservers = 1\n"""\nservers = 2',
      '{"root": "/",\n\n\n"servers": 2}',
      "line 4: servers = 2 is not written as a text in quotation marks",
    ],
  ];
  for (const [name, toml, json, complaint] of cases) {
    test(`${name}, in TOML`, () => expect(complaintOf("/etc/c.toml", toml)).toBe(`/etc/c.toml, ${complaint}`));
    test(`${name}, in JSON`, () => expect(complaintOf("/etc/c.json", json)).toBe(`/etc/c.json, ${complaint}`));
  }

  test("JSON that is not an object", () => {
    for (const source of ["[]", "null", '"x"', "3", '[{"root": "/a"}]']) {
      expect(complaintOf("/c.json", source)).toBe("/c.json must contain an object with settings");
    }
  });

  test("a keeper's folder that depends on the working folder", () => {
    expect(complaintOf("/c.toml", "[keeper]\ndir = 'k'")).toBe(
      '/c.toml, line 2: keeper.dir: "k" is not an absolute path',
    );
  });

  test("a secret is not quoted", () => {
    expect(complaintOf("/c.toml", "[auth]\ncredentials = 12345")).not.toContain("12345");
    expect(complaintOf("/c.toml", "[tls]\npassphrase = ''")).toBe(
      "/c.toml, line 2: tls.passphrase = (secret) is not written as a text in quotation marks",
    );
  });

  test("a secret is not quoted with the section it stands in either", () => {
    expect(complaintOf("c.toml", "[[auth]]\ncredentials = 'digest:a:pw-7'")).toBe(
      "c.toml, line 1: auth = (secret) is not a section with settings in it",
    );
    expect(complaintOf("c.json", '{"tls": "pw-7"}')).not.toContain("pw-7");
  });

  test("a section's name and a key's in one pair of quotation marks", () => {
    expect(complaintOf("c.toml", "root = '/a'\n\"session.timeout\" = '5s'")).toBe(
      'c.toml, line 2: "session.timeout" is one name in its quotation marks: write session.timeout = … without them',
    );
    expect(complaintOf("c.json", '{"lock": {\n"foreground.wait": "5s"}}')).toBe(
      'c.json, line 2: "foreground.wait" is one name in its quotation marks: write "foreground": {"wait": …}',
    );
  });

  test("a broken file is named with the line", () => {
    expect(complaintOf("/c.toml", "root = '/a'\nservers = \n")).toStartWith("/c.toml, line 2: this is not TOML: ");
    expect(complaintOf("/c.json", '{"root": "/a",\n"servers" 1}')).toBe(
      "/c.json, line 2: this is not JSON: 1 stands where : should be",
    );
    expect(complaintOf("/c.json", '{"root": "/a",\n"root": "/b"}')).toBe(
      "/c.json, line 2: this is not JSON: the key root is there twice",
    );
    expect(complaintOf("/c.json", '{"root": "/a"')).toBe(
      "/c.json, line 1: this is not JSON: the text ends where , should be",
    );
  });
});

describe("which files count", () => {
  const system = join(folder, "system");
  const config = join(folder, "user");
  mkdirSync(join(config, "baton"), { recursive: true });
  mkdirSync(system);
  writeFileSync(join(system, "config.json"), '{"root": "/system", "scope": "user"}');
  writeFileSync(join(config, "baton/config.toml"), 'root = "/user"');
  writeFileSync(join(folder, "named.toml"), 'root = "/named"');
  const read = (options: { named?: string; env?: Record<string, string>; accountHome?: () => string }) =>
    readConfigFiles(allSettings, { env: {}, ...options, systemFolder: system });
  const roots = (files: Awaited<ReturnType<typeof read>>) => files.map((file) => file.values.get("root"));

  test("the user's before the machine's, TOML or JSON", async () => {
    expect(roots(await read({ env: { XDG_CONFIG_HOME: config } }))).toEqual(["/user", "/system"]);
  });

  test("~/.config without XDG_CONFIG_HOME, and a relative one does not count", async () => {
    const home = join(folder, "home");
    mkdirSync(join(home, ".config/baton"), { recursive: true });
    writeFileSync(join(home, ".config/baton/config.toml"), 'root = "/home"');
    expect(roots(await read({ env: { HOME: home } }))).toEqual(["/home", "/system"]);
    expect(roots(await read({ env: { HOME: home, XDG_CONFIG_HOME: "relative" } }))).toEqual(["/home", "/system"]);
  });

  test("a named file takes the place of the user's", async () => {
    const files = await read({ named: join(folder, "named.toml"), env: { XDG_CONFIG_HOME: config } });
    expect(roots(files)).toEqual(["/named", "/system"]);
  });

  test("a named file that is not there is an error", async () => {
    await expect(read({ named: join(folder, "none.toml") })).rejects.toThrow(
      /Cannot read the configuration file .*none\.toml/,
    );
  });

  test("one without an end is too long, and not read for ever", async () => {
    await expect(readConfigFiles(allSettings, { named: "/dev/zero", env: {} })).rejects.toThrow(
      "The configuration file /dev/zero is larger than 262144 bytes",
    );
  });

  test("one that cannot be read is reported with the variable that its path follows from", async () => {
    const home = join(folder, "other");
    mkdirSync(join(home, ".config/baton/config.toml"), { recursive: true }); // unreadable for root too
    const advice = (name: string) => `the path follows from ${name}: set it to a folder of this user's, or name a file`;
    await expect(read({ env: { HOME: home } })).rejects.toThrow(advice("HOME"));
    await expect(read({ env: { XDG_CONFIG_HOME: join(home, ".config") } })).rejects.toThrow(advice("XDG_CONFIG_HOME"));
    await expect(read({ named: home })).rejects.toThrow(/EISDIR((?!follows from).)*$/);
  });

  test("without HOME the account's own home counts, and an account without one has no file", async () => {
    const home = join(folder, "account");
    mkdirSync(join(home, ".config/baton"), { recursive: true });
    writeFileSync(join(home, ".config/baton/config.toml"), 'root = "/account"');
    expect(roots(await read({ accountHome: () => home }))).toEqual(["/account", "/system"]);
    const accountHome = () => {
      throw new Error("ENOENT: no such file or directory, uv_os_homedir"); // as containers have
    };
    expect(roots(await read({ accountHome }))).toEqual(["/system"]);
  });

  test("no file at all is fine", async () => {
    expect(await readConfigFiles(allSettings, { env: { HOME: join(folder, "empty") }, systemFolder: folder })).toEqual(
      [],
    );
  });
});
