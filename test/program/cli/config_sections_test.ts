/** Sections of a configuration file that belong to one command, or to one component of `baton pool`. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

describe("the section of the keeper", () => {
  const file = (name: string, source: string) => {
    writeFileSync(session.path(name), source);
    return `--config ${name}`;
  };

  test("[keeper] is for a keeper started by hand; limits and times also for those that commands start", async () => {
    const source = [
      "[keeper]",
      'listen = "127.0.0.1:0"',
      'metrics_listen = "127.0.0.1:0"',
      'limits = ["nodesMax=30"]',
      "[keeper.tls]",
      'cert = "nowhere.pem"',
      'key = "nowhere.pem"',
    ].join("\n");
    const wrong = await session.run(`"$baton" keeper ${file("keeper.toml", source)}`);
    expect([wrong.code, wrong.stderr]).toEqual([78, expect.stringContaining("keeper.toml, line 6: keeper.tls.cert: ")]);
    // As a command starts it, which reads the user's own file: neither TCP nor TLS nor a page, but the limits.
    mkdirSync(session.path("user/.config/baton"), { recursive: true });
    writeFileSync(session.path("user/.config/baton/config.toml"), source);
    const env = { HOME: session.path("user"), BATON_KEEPER_DIR: session.path("own"), XDG_CONFIG_HOME: "" };
    const first = await session.run('"$baton" lock first -- echo held', env);
    expect(first).toMatchObject({ code: 0, stdout: "held\n" });
    const many = await session.run('for i in $(seq 30); do "$baton" lock many$i -- true || exit; done', env);
    expect([many.code, many.stderr]).toEqual([expect.any(Number), expect.stringMatching(/nodesMax|limit/)]);
    const byHand = session.start(
      `exec "$baton" keeper --data-dir hand ${file("hand.toml", source.slice(0, source.indexOf("[keeper.tls]")))}`,
    );
    await eventually(() => /serves 127\.0\.0\.1:\d+[^]*metrics are at 127\.0\.0\.1:\d+/.test(byHand.stderr()), {
      withinMs: 10_000,
    });
    byHand.child.kill("SIGTERM");
    expect((await byHand.ended).code).toBe(0);
  });

  test("what is wrong in them is named with its line, or with its variable", async () => {
    const lines = [
      "[keeper]",
      'listen = ["what"]',
      'limits = ["none=1"]',
      'metrics_listen = "x"',
    ];
    const { stderr } = await session.run(`"$baton" config check ${file("wrong.toml", lines.join("\n"))}`);
    expect(stderr.trim().split("\n").map((line) => /line (\d+): ([a-z_.]+): /.exec(line)?.slice(1).join(" ")).sort())
      .toEqual(
        ["2 keeper.listen", "3 keeper.limits", "4 keeper.metrics_listen"],
      );
    file("wrong.toml", lines.slice(0, 2).join("\n"));
    expect(await session.run('"$baton" keeper --config wrong.toml')).toMatchObject({
      code: 78,
      stderr: expect.stringContaining("wrong.toml, line 2: keeper.listen: "),
    });
    expect(await session.run('"$baton" keeper', { BATON_KEEPER_METRICS_LISTEN: "x" })).toMatchObject({
      code: 78,
      stderr: expect.stringContaining("BATON_KEEPER_METRICS_LISTEN: "),
    });
    expect((await session.run('"$baton" keeper --limit none=1')).stderr).toContain('--limit: there is no limit "none"');
  });
});

describe("a component's section", () => {
  const source = [
    "[pool.component.import]",
    "jobs = 3",
    'query = "seq 5"',
    'command = ["echo", "{}", "in", "{item}"]',
    '[pool.component."a.b".jobs]',
    "x = 1",
    "[pool.component.export]",
    "simultaneous = 2",
    "jops = 2",
    'total = "two"',
    "command = []",
    'done_ttl = "soon"',
    "[pool.component]",
    "broken = 1",
  ];

  test("is used by a call of the pool, whose words go before it", async () => {
    writeFileSync(session.path("pool.toml"), source.slice(0, 4).join("\n"));
    const pool = (words: string) =>
      session.run(`"$baton" pool ${words} --config pool.toml`, { BATON_SERVERS: "embedded" });
    expect(await pool("import")).toMatchObject({ code: 0, stdout: expect.stringMatching(/^(. in .\n){3}$/) });
    expect((await pool("import -j 1")).stdout).toBe("1 in 1\n");
    expect((await pool("import -j 1 --items x")).stdout).toBe("x in x\n");
    expect(
      (await session.run('"$baton" pool import --config pool.toml -j 5 -- printf %s', { BATON_SERVERS: "embedded" }))
        .code,
    )
      .toBe(0);
    expect((await pool("status import")).stdout).toStartWith("5 items: 0 done, 0 failed, 0 running, 5 free\n");
    // A query from a file does not select the results to clear.
    await pool("import -j 5 --done-ttl 1h");
    expect((await pool("clear import")).stderr).toContain("5");
    const other = await pool("other");
    expect([other.code, other.stderr]).toEqual([
      64,
      expect.stringContaining("or pool.component.other.command in a configuration file"),
    ]);
  });

  test("is shown with where each value stands, and no other component's", async () => {
    writeFileSync(session.path("pool.toml"), [...source.slice(0, 4), '[pool.component."x.y"]', "total = 7"].join("\n"));
    const { stdout } = await session.run('"$baton" config show --origin --config pool.toml');
    const rows = stdout.split("\n").filter((line) => line.startsWith("pool.component.")).map((line) =>
      line.split(/ {2,}/)
    );
    expect(rows).toEqual([
      ["pool.component.import.query", "seq 5", "pool.toml, line 3"],
      ["pool.component.import.jobs", "3", "pool.toml, line 2"],
      ["pool.component.import.command", '["echo","{}","in","{item}"]', "pool.toml, line 4"],
      ["pool.component.x.y.total", "7", "pool.toml, line 6"],
    ]);
    const { settings } = JSON.parse((await session.run('"$baton" config show --json --config pool.toml')).stdout);
    expect(settings).toContainEqual({
      key: "pool.component.x.y.total",
      value: "7",
      origin: { kind: "file", name: "pool.toml", line: 6 },
    });
  });

  test("has each of its mistakes named with its line", async () => {
    writeFileSync(session.path("pool.toml"), source.join("\n"));
    const { code, stderr } = await session.run('"$baton" config check --config pool.toml');
    expect([code, stderr.trim().split("\n")]).toEqual([78, [
      'baton: pool.toml, line 5: pool.component.a.b.jobs = {"x":1} is not a whole number',
      'baton: pool.toml, line 8: there is no setting "pool.component.export.simultaneous"',
      'baton: pool.toml, line 9: there is no setting "pool.component.export.jops", did you mean "pool.component.export.jobs"?',
      'baton: pool.toml, line 10: pool.component.export.total: "two" is not a whole number from 1 to 1000000',
      'baton: pool.toml, line 11: pool.component.export.command: "[]" is not a shell command, or an array that begins with a program',
      'baton: pool.toml, line 12: pool.component.export.done_ttl: "soon" is not a duration: write seconds, or a number with a unit, such as 250ms, 5m or 2h',
      "baton: pool.toml, line 14: pool.component.broken = 1 is not a section: write it as [SECTION] with settings below it",
    ]]);
  });
});
