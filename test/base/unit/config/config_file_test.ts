import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfigFiles } from "../../../../src/base/config/config_file.ts";
import { parseConfigFile } from "../../../support/parse_config_file.ts";
import { loadProductSettings } from "../../../../commands/products.ts";
import { errorMessage } from "../../../../src/base/errors.ts";

const { all: allSettings } = await loadProductSettings();

const folder = mkdtempSync(join(tmpdir(), "baton-config-"));
afterAll(() => rmSync(folder, { recursive: true }));

function complaintOf(path: string, source: string): string {
  try {
    parseConfigFile(allSettings, { path, source });
  } catch (thrown) {
    return errorMessage(thrown);
  }
  throw new Error("the file was accepted");
}

describe("what is wrong is named with file, line, key, value and what was wanted", () => {
  const cases: [name: string, toml: string, complaint: string][] = [
    [
      "a bad value",
      'servers = "a:1"\n# why\n[lock]\nkill_after = "10 s"\n',
      'line 4: lock.kill_after: "10 s" is not a duration: ' +
      "write seconds, or a number with a unit, such as 250ms, 5m or 2h",
    ],
    [
      "a wrong type",
      "\n\nconnect.retries = 'three'",
      'line 3: connect.retries: "three" is not a whole number from 0 to 1000000',
    ],
    [
      "a duration of another type",
      "lock.kill_after = true",
      'line 1: lock.kill_after = true is not a number of seconds, or a string with a unit such as "250ms" or "5m"',
    ],
    [
      "an unknown key",
      "[session]\ntimout = '10s'",
      'line 2: there is no setting "session.timout", did you mean "session.timeout"?',
    ],
    [
      "an unknown section",
      "root='/a'\n[looock]\nx = 1",
      'line 2: there is no setting "looock"',
    ],
    [
      "a value for a section",
      "lock = 3",
      "line 1: lock = 3 is not a section: write it as [SECTION] with settings below it",
    ],
    [
      "a key inside a value of several lines is not taken for the key",
      'root = """\nservers = 1\n"""\nservers = 2',
      "line 4: servers = 2 is not a string in quotation marks",
    ],
  ];
  for (const [name, toml, complaint] of cases) {
    test(name, () => expect(complaintOf("/etc/c.toml", toml)).toBe(`/etc/c.toml, ${complaint}`));
  }

  test("a JSON file is refused with what to do", () => {
    expect(complaintOf("/c.json", '{"root": "/a"}')).toMatch(
      /^\/c\.json, line 1: not valid TOML: .*; JSON files are not read: write the settings as TOML$/,
    );
  });

  test("a keeper's folder that depends on the working folder", () => {
    expect(complaintOf("/c.toml", "[keeper]\ndir = 'k'")).toBe(
      '/c.toml, line 2: keeper.dir: "k" is not an absolute path',
    );
  });

  test("a secret is not quoted", () => {
    expect(complaintOf("/c.toml", "[auth]\ncredentials = 12345")).not.toContain("12345");
    expect(complaintOf("/c.toml", "[tls]\npassphrase = ''")).toBe(
      "/c.toml, line 2: tls.passphrase = (secret) is not a string in quotation marks",
    );
  });

  test("a secret is not quoted with the section it stands in either", () => {
    expect(complaintOf("c.toml", "[[auth]]\ncredentials = 'digest:a:pw-7'")).toBe(
      "c.toml, line 1: auth = (secret) is not a section: write it as [SECTION] with settings below it",
    );
    expect(complaintOf("c.toml", "tls = 'pw-7'")).not.toContain("pw-7");
  });

  test("a section's name and a key's in one pair of quotation marks", () => {
    expect(complaintOf("c.toml", "root = '/a'\n\"session.timeout\" = '5s'")).toBe(
      'c.toml, line 2: "session.timeout" in quotation marks is a single name: ' +
        "write session.timeout = … without the quotation marks",
    );
  });

  const notToml: [toml: string, advice: string | null][] = [
    ["scope = cluster", "put the text in quotation marks"],
    ["servers = zk1:2181 # two", "put the text in quotation marks"],
    ["servers = 10.0.0.1:2181", "put the text in quotation marks"],
    ["retry.delays = [1, 5m]", "put the text in quotation marks"],
    ["root = /a", "put the text in quotation marks"],
    ["tls.enabled = yes", "write true or false, in small letters"],
    ['servers = "zk1:2181', "the quotation mark is not closed on this line"],
    ['servers = "zk1:2181\r\nroot = "/a"', "the quotation mark is not closed on this line"],
    ["servers: zk1:2181", "write NAME = VALUE, with = between them"],
    ["servers = ", null],
    ["[lock\nwait = 5", null],
    ['root = """/a', null],
    ['root = "\u0001"', null],
  ];
  for (const [toml, advice] of notToml) {
    test(`${JSON.stringify(toml)}: ${advice ?? "no advice"}`, () => {
      const complaint = complaintOf("/c.toml", toml);
      expect(complaint).toStartWith("/c.toml, line 1: not valid TOML: ");
      expect(/; (.*)$/.exec(complaint)?.[1] ?? null).toBe(advice);
    });
  }

  test("a broken file is named with the line", () => {
    expect(complaintOf("/c.toml", "root = '/a'\nservers = \n")).toStartWith("/c.toml, line 2: not valid TOML: ");
  });
});

test("a duration in a file is a string, or a number of seconds", () => {
  const source =
    '[lock]\nkill_after = 2\nforeground.wait = 0.5\nbackground.wait = "3"\n[retry]\ndelays = [1, "5m", 0.5]\n';
  const { values } = parseConfigFile(allSettings, { path: "/c.toml", source });
  expect(Object.fromEntries(values)).toEqual({
    "lock.kill_after": "2",
    "lock.foreground.wait": "0.5",
    "lock.background.wait": "3",
    "retry.delays": "1,5m,0.5",
  });
});

describe("which files count", () => {
  const system = join(folder, "system");
  const config = join(folder, "user");
  mkdirSync(join(config, "baton"), { recursive: true });
  mkdirSync(system);
  writeFileSync(join(system, "config.toml"), 'root = "/system"\nscope = "user"');
  writeFileSync(join(config, "baton/config.toml"), 'root = "/user"');
  writeFileSync(join(folder, "named.toml"), 'root = "/named"');
  const read = (options: { named?: string; env?: Record<string, string>; accountHome?: () => string }) =>
    readConfigFiles(() => allSettings, { env: {}, ...options, systemFolder: system });
  const roots = (files: Awaited<ReturnType<typeof read>>) => files.map((file) => file.values.get("root"));

  test("the user's before the machine's", async () => {
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
    await expect(readConfigFiles(() => allSettings, { named: "/dev/zero", env: {} })).rejects.toThrow(
      "The configuration file /dev/zero is larger than 262144 bytes",
    );
  });

  test("one that cannot be read is reported with the variable that its path follows from", async () => {
    const home = join(folder, "other");
    mkdirSync(join(home, ".config/baton/config.toml"), { recursive: true }); // unreadable for root too
    const advice = (name: string) => `the path comes from ${name}: set it to a folder of this user, or use --config`;
    await expect(read({ env: { HOME: home } })).rejects.toThrow(advice("HOME"));
    await expect(read({ env: { XDG_CONFIG_HOME: join(home, ".config") } })).rejects.toThrow(advice("XDG_CONFIG_HOME"));
    await expect(read({ named: home })).rejects.toThrow(/: it is a folder$/);
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
    expect(await readConfigFiles(() => allSettings, { env: { HOME: join(folder, "empty") }, systemFolder: folder }))
      .toEqual(
        [],
      );
  });
});
