/** `baton config`, `baton help` and what else a user asks before anything is locked. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { commandLoaders, loadProductSettings } from "../../../commands/products.ts";
import { BatonSession } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => {
  session = new BatonSession();
  mkdirSync(session.path(".config/baton"), { recursive: true });
  writeFileSync(
    session.path(".config/baton/config.toml"),
    'servers = "zk1:2181"\nroot = "/app"\n\n[session]\ntimeout = "4s"\n\n[auth]\ncredentials = "digest:ann:pw-7"\n',
  );
});
afterAll(() => session[Symbol.asyncDispose]());

describe("config show", () => {
  test("--origin says where each value came from", async () => {
    const ended = await session.run('"$baton" config show --origin --root /flag', { BATON_SERVERS: "zk2:2181" });
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    const rows = new Map(
      ended.stdout.trim().split("\n").map((line) => {
        const [key = "", value, ...origin] = line.split(/ {2,}/);
        return [key, [value, origin.join(" ")]];
      }),
    );
    expect(rows.get("servers")).toEqual(["zk2:2181", "BATON_SERVERS"]);
    expect(rows.get("root")).toEqual(["/flag", "--root"]);
    expect(rows.get("session.timeout")).toEqual(["4s", `${session.path(".config/baton/config.toml")}, line 5`]);
    expect(rows.get("lock.kill_after")).toEqual(["5s", "default"]);
  });

  test("a secret is not shown, in the table nor in JSON", async () => {
    for (const flags of ["", "--origin", "--json"]) {
      const ended = await session.run(`"$baton" config show ${flags}`);
      expect(ended.code).toBe(0);
      expect(ended.stdout).toContain("(secret)");
      expect(ended.stdout).not.toContain("pw-7");
    }
  });

  test("--json is one object with a version", async () => {
    const report = JSON.parse((await session.run('"$baton" config show --json')).stdout);
    expect(report.version).toBe(1);
    expect(report.settings).toContainEqual({
      key: "root",
      value: "/app",
      origin: { kind: "file", name: session.path(".config/baton/config.toml"), line: 2 },
    });
  });
});

describe("config check", () => {
  test("lists all mistakes, each with its line, not only the first", async () => {
    const lines = [
      'servers = "zk1:x"',
      'root = "app"',
      "rot = 1",
      "[tls]",
      'ca = "none.pem"',
      "[session]",
      'timeout = "soon"',
      "timeot = 2",
      "[retry]",
      "max_retries = -1",
      'cron = "every day"',
      'redact_headers = ["a b"]',
      "[pubsub.server]",
      'listen = "nowhere"',
      'advertise = "tcp://h"',
      "[pubsub]",
      'metrics_listen = "x:y:z"',
    ];
    writeFileSync(session.path("many.toml"), lines.join("\n"));
    const ended = await session.run('"$baton" config check --config many.toml', { BATON_LOCK_KILL_AFTER: "a while" });
    expect([ended.code, ended.stdout]).toEqual([78, ""]);
    const told = ended.stderr.trim().split("\n");
    const named = told.map((line) =>
      /^baton: (?:many\.toml, line (\d+)|(BATON_[A-Z_]+)): /.exec(line)?.slice(1, 3).join("")
    );
    expect(named.sort()).toEqual(
      ["1", "2", "3", "5", "7", "8", "10", "11", "12", "14", "15", "17", "BATON_LOCK_KILL_AFTER"].sort(),
    );
    // Everything else is ended by the first.
    const run = await session.run('"$baton" ls --config many.toml');
    expect([run.code, run.stderr]).toEqual([78, expect.stringMatching(/^baton: many\.toml, line 3: .*\n$/)]);
  });

  test("a file that cannot be read hides nothing of the others, nor of the variables", async () => {
    writeFileSync(session.path("broken.toml"), "a = \n");
    const ended = await session.run('"$baton" config check --config broken.toml', { BATON_RETRY_RETRY_ON: "fast" });
    expect([ended.code, ended.stderr]).toEqual([
      78,
      expect.stringMatching(/broken\.toml, line 1: not valid TOML[^]*BATON_RETRY_RETRY_ON: /),
    ]);
  });

  const files: [name: string, source: string, code: number, stderr: RegExp][] = [
    ["good.toml", 'servers = "zk1"\n', 0, /^baton: the configuration is valid; checked good\.toml\n$/],
    [
      "old.json",
      '{"servers": "zk1"}',
      78,
      /^baton: old\.json, line 1: not valid TOML: .*write the settings as TOML\n$/,
    ],
    [
      "typo.toml",
      "\n[lock]\nkil_after = '1s'\n",
      78,
      /^baton: typo\.toml, line 3: there is no setting "lock\.kil_after", did you mean "lock\.kill_after"\?\n$/,
    ],
    [
      "servers.toml",
      '\nservers = "zk1:x"\n',
      78,
      /^baton: servers\.toml, line 2: servers: Cannot use "zk1:x" as the list of servers/,
    ],
    [
      "root.toml",
      'servers = "zk1"\nroot = "app"\n',
      78,
      /^baton: root\.toml, line 2: root: "app" is not a ZooKeeper path/,
    ],
    ["ca.toml", 'servers = "zk1"\n[tls]\nca = "none.pem"\n', 78, /^baton: ca\.toml, line 3: tls\.ca: .*none\.pem/],
    [
      "acl.toml",
      'servers = "zk1"\nacl = ["world:anyone:x"]\n',
      78,
      /^baton: acl\.toml, line 2: acl: "world:anyone:x" is not open, creator or/,
    ],
    [
      "component.toml",
      '[pool]\ncomponent_path = "/x/{item}"\n',
      78,
      /^baton: component\.toml, line 2: pool\.component_path: Invalid template "\/x\/\{item\}" .* \{item\} is not one of \{root\} and/,
    ],
    [
      "items.toml",
      '[pool]\n\nitem_path = "/x/{component}"\n',
      78,
      /^baton: items\.toml, line 3: pool\.item_path: Invalid template "\/x\/\{component\}" .*: it has no \{item\}/,
    ],
    [
      "relative.toml",
      '[pool]\nitem_path = "{component}/{1}"\n',
      78,
      /^baton: relative\.toml, line 2: pool\.item_path: Invalid template "\{component\}\/\{1\}" .* is not a ZooKeeper path/,
    ],
    [
      "templates.toml",
      '[pool]\nitem_path = "{root}/{component}/B{1}-RT{9}"\n',
      0,
      /^baton: the configuration is valid/,
    ],
    ["codes.toml", '[retry]\nretry_on = "abc"\n', 78, /^baton: codes\.toml, line 2: retry\.retry_on: .*"abc"/],
    ["delays.toml", '[retry]\ndelays = ["1s", "x"]\n', 78, /^baton: delays\.toml, line 2: retry\.delays: "x" is not a/],
    [
      "letters.toml",
      '[retry]\ndead_letter = "kafka:/x"\n',
      78,
      /^baton: letters\.toml, line 2: retry\.dead_letter: .*is not a dest/,
    ],
    [
      "retry.toml",
      '[retry]\nname = "a/b"\n',
      78,
      /^baton: retry\.toml, line 2: retry\.name: "a\/b" is not a valid name/,
    ],
    [
      "rate.toml",
      '[retry]\nlease = "10s"\n',
      78,
      /^baton: rate\.toml, line 2: there is no setting "retry\.lease": --lease is an option only\n$/,
    ],
    [
      "listen.toml",
      '[pubsub.proxy]\nlisten = ["tcp://a:1", "b"]\n',
      78,
      /^baton: listen\.toml, line 2: pubsub\.proxy\.listen: Cannot use "b" as an endpoint/,
    ],
    [
      "proxies.toml",
      '[pubsub]\nproxies = ["x"]\n',
      78,
      /^baton: proxies\.toml, line 2: pubsub\.proxies: Cannot use "x"/,
    ],
    [
      "page.toml",
      '[pubsub]\nmetrics_listen = "x"\n',
      78,
      /^baton: page\.toml, line 2: pubsub\.metrics_listen: Cannot list/,
    ],
    [
      "all.toml",
      '[retry]\nretry_on = ["65", "5xx", "404-410"]\nbackoff = "list"\n' +
      'dead_letter = "topic:x"\n[pubsub]\nproxies = "a:1,tcp://b:2"\n[pubsub.server]\nlisten = "tcp://0.0.0.0:0"\n',
      0,
      /^baton: the configuration is valid/,
    ],
    [
      "relative_root.toml",
      'root = "baton"\n',
      78,
      /^baton: relative_root\.toml, line 1: root: "baton" is not a ZooKeeper path: .*\n$/,
    ],
    ["text.toml", "scope = cluster\n", 78, /^baton: text\.toml, line 1: not valid TOML: .*; put the text in quotation/],
    ["broken.toml", "servers = \n", 78, /^baton: broken\.toml, line 1: not valid TOML/],
  ];
  for (const [name, source, code, stderr] of files) {
    test(`${name} gives ${code}`, async () => {
      writeFileSync(session.path(name), source);
      const ended = await session.run(`"$baton" config check --config ${name}`);
      expect(ended).toMatchObject({ code, stdout: "" });
      expect(ended.stderr).toMatch(stderr);
    });
  }
});

test("a file that is named without --config is an argument too many, and the option is named", async () => {
  for (const [words, end] of [["check a.toml", "; use --config a.toml"], ["check a", ""], ["schema a.toml", ""]]) {
    const ended = await session.run(`"$baton" config ${words}`);
    expect(ended).toMatchObject({ code: 64, stdout: "" });
    expect(ended.stderr).toContain(`unexpected argument "${words?.split(" ")[1]}"${end}\n`);
  }
});

describe("a new file", () => {
  test("init writes settings in comments, which are valid when they are used, and a schema beside them", async () => {
    const env = { XDG_CONFIG_HOME: session.path("xdg") };
    const file = session.path("xdg/baton/config.toml");
    const ended = await session.run('"$baton" config init', env);
    expect(ended).toMatchObject({ code: 0, stdout: "" });
    expect(ended.stderr).toContain(`wrote ${file};`);
    const text = readFileSync(file, "utf8");
    expect(text).toStartWith("#:schema ./config.schema.json\n");
    expect(await session.run('"$baton" config check', env)).toMatchObject({ code: 0 });
    const used = text.replace(/^# (?=[a-z_.]+ = )/gm, "");
    expect(used.match(/^[a-z_.]+ = /gm)).toHaveLength(10);
    writeFileSync(file, used.replace(/^(?:tls\.ca|auth\.file|acl) = .*$/gm, "")); // their files are not on this machine
    expect(await session.run('"$baton" config check', env)).toMatchObject({ code: 0 });
    const again = await session.run('"$baton" config init', env);
    expect([again.code, again.stderr]).toEqual([
      73,
      expect.stringContaining("there is such a file; it stays as it is"),
    ]);
    expect(readFileSync(file, "utf8")).toContain("\nretry.dead_letter = ");
    const { stdout } = await session.run('"$baton" config schema');
    expect(readFileSync(session.path("xdg/baton/config.schema.json"), "utf8")).toBe(stdout);
  });

  test("init writes the file that is named", async () => {
    expect(await session.run('"$baton" config init -q mine/baton.toml')).toMatchObject({ code: 0, stderr: "" });
    expect(await session.run('"$baton" config check --config mine/baton.toml')).toMatchObject({ code: 0 });
  });

  test("the schema has each key of a file, with its help, and rejects others", async () => {
    interface Schema {
      readonly properties?: Readonly<Record<string, Schema>>;
      readonly additionalProperties?: Schema | false;
      readonly description?: string;
      readonly enum?: readonly string[];
    }
    const root = JSON.parse((await session.run('"$baton" config schema')).stdout) as Schema;
    for (const { key, type } of Object.values((await loadProductSettings()).inFiles)) {
      if (key === undefined) continue;
      let at: Schema | undefined = root;
      for (const name of key.split(".")) {
        if (name === "NAME") at = at?.additionalProperties || undefined;
        else {
          expect(at?.additionalProperties).toBe(false);
          at = at?.properties?.[name];
        }
      }
      expect([key, at?.description]).toEqual([key, expect.stringMatching(/^.{10}/)]);
      expect(at?.enum).toEqual(type.words as string[] | undefined);
    }
  });

  test("mistakes come in the order of their lines, those of variables last", async () => {
    writeFileSync(
      session.path("order.toml"),
      '[pubsub]\nproxies = ["x"]\n[connect]\nretries = "many"\n[retry]\nretry_on = ["x"]\nname = "a\\u0000b"\n',
    );
    const ended = await session.run('"$baton" config check --config order.toml', { BATON_SCOPE: "moon" });
    expect(ended.code).toBe(78);
    const begins = ended.stderr.trim().split("\n").map((line) => /line \d+|BATON_\w+/.exec(line)?.[0]);
    expect(begins).toEqual(["line 2", "line 4", "line 6", "line 7", "BATON_SCOPE"]);
    expect(ended.stderr).toContain("retry.name: the value contains a NUL character");
  });

  test("numbers may be written as numbers or as strings", async () => {
    writeFileSync(
      session.path("numbers.toml"),
      '[connect]\nretries = "3"\n[history]\nkeep = 150\n[lock]\nkill_after = "2"\n',
    );
    const { code, stdout } = await session.run('"$baton" config show --config numbers.toml');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^connect\.retries +3$/m);
    expect(stdout).toMatch(/^history\.keep +150$/m);
    expect(stdout).toMatch(/^lock\.kill_after +2s$/m);
  });
});

describe("help", () => {
  test("every command has a page with usage, options and an example", async () => {
    for (const name of Object.keys(commandLoaders)) {
      const ended = await session.run(`"$baton" ${name} --help`);
      expect(ended).toMatchObject({ code: 0, stderr: "" });
      expect(ended.stdout).toStartWith(`baton ${name} `);
      expect(ended.stdout).toMatch(/\nGeneral:\n[^]*--help[^]*\nExamples:\n {2}\S*baton /);
      for (const line of ended.stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(110);
    }
  });

  test("the tables are there, and an unknown one is 64 with a suggestion", async () => {
    expect((await session.run('"$baton" help exit-codes')).stdout).toMatch(
      /\n +79 {2,}the lock or the leadership was lost/,
    );
    expect((await session.run('"$baton" help environment')).stdout).toMatch(/\n {2}BATON_FENCING_TOKEN /);
    expect((await session.run('"$baton" help config')).stdout).toMatch(/\n {2}session\.timeout = "duration"/);
    const ended = await session.run('"$baton" help exitcodes');
    expect(ended.code).toBe(64);
    expect(ended.stderr).toStartWith('baton: There is no help on "exitcodes", did you mean "exit-codes"?\n');
  });

  test("the example of the configuration file is valid", async () => {
    const { stdout } = await session.run('"$baton" help config');
    const [, example = ""] = /\nExample:\n((?: {2}.*\n)+?) {6}/.exec(stdout) ?? [];
    expect(example).toContain("[lock]");
    writeFileSync(session.path("example.toml"), example.replaceAll(/^ {2}/gm, ""));
    expect((await session.run('"$baton" config check --config example.toml')).code).toBe(0);
  });

  test("where no command is run, -- ends the options and what follows it is not lost", async () => {
    const [plain, behind] = await Promise.all(
      ['"$baton" help lock', '"$baton" help -- lock'].map((line) => session.run(line)),
    );
    expect(behind).toMatchObject({ code: 0, stdout: plain?.stdout ?? "" });
    for (const line of ["ls -- x", "config -- chek", "who a -- b", "keeper -- verifi", "help lock who"]) {
      expect(await session.run(`"$baton" ${line}`)).toMatchObject({ code: 64, stdout: "" });
    }
  });

  test("no word at all is a mistake, and the list of commands", async () => {
    expect((await session.run('"$baton"')).code).toBe(64);
    expect((await session.run('"$baton"')).stderr).toContain("baton help describes each command");
    expect((await session.run('"$baton" --help')).stdout).toContain("See also: baton COMMAND -h");
  });
});

describe("an address that cannot be is told where it stands", () => {
  const commands: readonly [command: string, section: string, key: string, flag: string][] = [
    ["pubsub server --id s --data-dir s", "pubsub.server", "listen", "--listen"],
    ["pubsub server --id s --data-dir s", "pubsub.server", "advertise", "--advertise"],
    ["pubsub server --id s --data-dir s", "pubsub", "metrics_listen", "--metrics-listen"],
    ["pubsub proxy", "pubsub.proxy", "listen", "--listen"],
    ["pubsub proxy", "pubsub.proxy", "advertise", "--advertise"],
    ["pubsub proxy", "pubsub", "metrics_listen", "--metrics-listen"],
    ["retry-processor run --once", "retry", "metrics_listen", "--metrics-listen"],
    ["retry-processor serve --url http://h/", "retry", "metrics_listen", "--metrics-listen"],
  ];
  for (const [command, section, key, flag] of commands) {
    test(`${command}: ${section}.${key}`, async () => {
      writeFileSync(session.path("address.toml"), `[${section}]\n\n${key} = "what:is:this"\n`);
      const file = await session.run(`"$baton" ${command} --config address.toml`);
      expect([file.code, file.stderr]).toEqual([
        78,
        expect.stringContaining(`address.toml, line 3: ${section}.${key}: `),
      ]);
      const name = `BATON_${section.replace(".", "_")}_${key}`.toUpperCase();
      const variable = await session.run(`"$baton" ${command}`, { [name]: "what:is:this" });
      expect([variable.code, variable.stderr]).toEqual([78, expect.stringContaining(`baton: ${name}: `)]);
      const typed = await session.run(`"$baton" ${command} ${flag} what:is:this`);
      expect([typed.code, typed.stderr]).toEqual([64, expect.stringContaining(`baton: ${flag}: `)]);
    });
  }

  test("every address of this machine, which no one could dial", async () => {
    writeFileSync(session.path("all.toml"), '[pubsub.proxy]\nlisten = "tcp://0.0.0.0:0"\n');
    const ended = await session.run('"$baton" pubsub proxy --config all.toml');
    expect([ended.code, ended.stderr]).toEqual([
      78,
      expect.stringContaining(
        "all.toml, line 2: pubsub.proxy.listen: tcp://0.0.0.0:0 is every address of this machine",
      ),
    ]);
  });
});

test("a mistake in a file does not keep a script from releasing its lock, nor a user from reading help", async () => {
  const script = 'eval "$("$baton" hold x)"; echo "servers = [" >"$dir/wrong.toml"; mkdir -p "$dir/own/baton"; ' +
    'mv "$dir/wrong.toml" "$dir/own/baton/config.toml"; export XDG_CONFIG_HOME="$dir/own"; ' +
    '"$baton" release x; echo $?; "$baton" help lock >help; echo $?; "$baton" lock y true; echo $?';
  const env = { XDG_CONFIG_HOME: session.path("none"), BATON_KEEPER_DIR: session.path("keeper") };
  const ended = await session.run(script, env);
  expect([ended.stdout, ended.stderr]).toEqual([
    "0\n0\n78\n",
    expect.stringMatching(/config\.toml, line 2: not valid TOML/),
  ]);
});
