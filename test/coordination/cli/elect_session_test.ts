/** `baton elect`, `leader`, `resign` and `forward` as scripts use them: exit codes, options, signals, files. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import process from "node:process";
import { keeper } from "../../support/backends.ts";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTime } from "../../support/quiet_time.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

const elect = (words: string) => `exec "$baton" elect -z embedded ${words}`;
const leader = async (name: string) => (await session.run(`"$baton" leader -z embedded ${name}`)).stdout.trim();
const resign = (name: string, words = "") => session.run(`"$baton" resign -z embedded ${name} ${words}`);
const leads = (name: string, value: string) =>
  eventually(async () => await leader(name) === value, { what: `${value} to lead ${name}`, withinMs: 20_000 });
const says = (running: Running, what: string | RegExp) =>
  eventually(() => running.stderr().search(what) >= 0, { what: `stderr to say ${what}`, withinMs: 20_000 });
const isAlive = (pid: number) => {
  try {
    const state = /^State:\s*(\S)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return state !== "Z";
  } catch {
    return false;
  }
};
const pidIn = async (name: string) => Number(await session.said(name));

describe("the exit code", () => {
  test("is the command's own, by code and by signal", async () => {
    expect((await session.run(elect("codes --value a:1 -- sh -c 'exit 7'"))).code).toBe(7);
    expect((await session.run(elect("codes --value a:1 -- sh -c 'kill -9 $$'"))).code).toBe(137);
  });

  test("is 80 after a resignation and 79 after a loss, with --restart never", async () => {
    const first = session.start(elect("once --value a:1 --restart never -- sleep 60"));
    await leads("once", "a:1");
    expect(await resign("once", "--reason 'an upgrade'")).toMatchObject({ code: 0 });
    const ended = await first.ended;
    expect(ended.code).toBe(80);
    expect(ended.stderr).toMatch(
      /Leadership "once" was ended by .*, reason "an upgrade"; the command was stopped by SIGTERM/,
    );

    const server = await keeper.start();
    try {
      await using own = new BatonSession({ BATON_SERVERS: server.servers });
      const second = own.start(
        'exec "$baton" elect --session-timeout 2s --restart never once --value a:1 -- sh -c ">$dir/up; sleep 60"',
      );
      await own.made("up");
      await server.kill();
      const lost = await second.ended;
      expect(lost.code).toBe(79);
      expect(lost.stderr).toMatch(/Leadership "once" is lost: .*; the command was stopped/);
    } finally {
      await server.close();
    }
  });

  test("is 64 for what cannot be meant, and nothing is begun", async () => {
    const wrong: [string, RegExp][] = [
      ['n --value "" -- true', /--value: the value is empty/],
      ["--value a:1 -- true", /needs the name of an election/],
      ["a b --value a:1 -- true", /takes one name/],
      ["n --value a:1", /needs a command, as in/],
      [`n --value ${"x".repeat(1025)} -- true`, /1025 bytes is too long: the maximum is 1024/],
      ["n --value a:1 --restart sometimes -- true", /one of always, on-loss, never/],
      ["n --value a:1 --health-failures 0 -- true", /whole number from 1/],
      ["n --value a:1 --status-fd 9 -- true", /descriptor 9 is not open/],
    ];
    for (const [words, why] of wrong) {
      const ended = await session.run(elect(words));
      expect([words, ended.code]).toEqual([words, 64]);
      expect(ended.stderr).toMatch(why);
    }
    const nested = await session.run(
      elect(`outer --value a:1 -- "$baton" elect -z embedded outer --value b:1 -- true`),
    );
    expect(nested).toMatchObject({ code: 64 });
    expect(nested.stderr).toContain('"outer" is already led by this command');
  });

  test("is 126, 127, 69, 73 and 78 as for a lock", async () => {
    expect((await session.run(elect("n --value a:1 --restart always -- $dir/nonexistent"))).code).toBe(127);
    expect((await session.run(elect("n --value a:1 --restart always -- /"))).code).toBe(126);
    expect((await session.run(elect("n --value a:1 --scope cluster -- true"))).code).toBe(78);
    expect((await session.run(elect("n --value a:1 --leader-file $dir/no/such -- true"))).code).toBe(73);
    const away = 'exec "$baton" elect -z 127.0.0.1:1 --connect-timeout 200ms n --value a:1 -- true';
    expect((await session.run(away)).code).toBe(69);
  });
});

describe("a term", () => {
  test("gives the command its token and what it is elected for", async () => {
    const script = 'echo "$BATON_ELECTION_NAME $BATON_ELECTION_VALUE $BATON_LOCK_PATH $BATON_FENCING_TOKEN"';
    const tokens: bigint[] = [];
    for (let term = 0; term < 2; term++) {
      const { stdout } = await session.run(elect(`env --value host:1 -- sh -c '${script}'`));
      const [name, value, path, token = "0"] = stdout.trim().split(" ");
      expect([name, value, path]).toEqual(["env", "host:1", "/baton/elections/env"]);
      tokens.push(BigInt(token));
    }
    expect(tokens[1] ?? 0n).toBeGreaterThan(tokens[0] ?? 0n);
  });

  test("its default value is the host name without the pid, which a script can use as an address", async () => {
    const running = session.start(elect("named -- sh -c 'echo $BATON_ELECTION_VALUE; >$dir/named; exec sleep 60'"));
    await session.made("named");
    expect(await leader("named")).toBe(hostname());
    process.kill(running.child.pid ?? 0, "SIGTERM");
    expect((await running.ended).stdout).toBe(`${hostname()}\n`);
  });

  test("is followed by another candidate's when it is resigned from, and the first campaigns again", async () => {
    const [first, second] = [
      session.start(elect("turns --value a:1 -- sh -c 'echo up; exec sleep 60'")),
      await leads("turns", "a:1").then(() => session.start(elect("turns -v --value b:1 -- sleep 60"))),
    ];
    await says(second, "waiting for");
    await resign("turns");
    await leads("turns", "b:1");
    await says(first, "standing again in 1 s");
    await resign("turns");
    await leads("turns", "a:1");
    await eventually(() => first.stdout() === "up\nup\n", { what: "the second term's command" });
    first.child.kill("SIGTERM");
    expect((await first.ended).signal).toBe("SIGTERM");
    await leads("turns", "b:1");
    second.child.kill("SIGTERM");
    await second.ended;
  });

  test("of a killed baton ends with its command, and another leads within the session timeout", async () => {
    const first = session.start(
      elect(
        "crash --session-timeout 2s --value a:1 -- sh -c 'echo $$ >$dir/crash.pid; trap \"\" TERM; while :; do sleep 1; done'",
      ),
    );
    const pid = await pidIn("crash.pid");
    const second = session.start(
      elect("crash -v --session-timeout 2s --value b:1 -- sh -c '>$dir/crash.next; sleep 60'"),
    );
    await says(second, "waiting for");
    const quiet = new QuietTime();
    process.kill(first.child.pid ?? 0, "SIGKILL");
    await session.made("crash.next");
    expect(quiet.ms).toBeLessThan(2000 + 1000 + 1000);
    expect(isAlive(pid)).toBe(false);
    second.child.kill("SIGTERM");
    await second.ended;
  });

  test("ends at TERM with the command's code, and there is no other campaign", async () => {
    const running = session.start(
      elect(
        "term --restart always --value a:1 -- sh -c 'trap \"exit 5\" TERM; >$dir/term.up; while :; do sleep 0.1; done'",
      ),
    );
    await session.made("term.up");
    running.child.kill("SIGTERM");
    expect((await running.ended).code).toBe(5);
  });

  test("never begins for a candidate that is told to stop: it dies of the signal and leaves the queue", async () => {
    const first = session.start(elect("stop --value a:1 -- sleep 60"));
    await leads("stop", "a:1");
    const second = session.start(elect("stop -v --value b:1 -- sh -c '>$dir/never'"));
    await says(second, "waiting for");
    second.child.kill("SIGTERM");
    expect(await second.ended).toMatchObject({ code: null, signal: "SIGTERM" });
    expect(existsSync(session.path("never"))).toBe(false);
    first.child.kill("SIGTERM");
    await first.ended;
  });

  test("follows another with --restart always, later and later while they are short", async () => {
    const running = session.start(
      elect("always -v --restart always --value a:1 -- sh -c 'echo run >>$dir/always; exit 3'"),
    );
    await says(running, "ended with exit code 3; standing again in 2 s");
    expect(session.read("always")).toBe("run\nrun\n");
    running.child.kill("SIGTERM");
    expect((await running.ended).signal).toBe("SIGTERM");
  });

  test("is told by --on-failure when nobody leads; not after a success", async () => {
    const tell = `--on-failure 'cat >told; exec "$baton" leader told --json'`;
    const failed = await session.run(elect(`told -q ${tell} --value a:1 -- sh -c 'exit 4'`));
    expect(failed).toMatchObject({ code: 4, stderr: expect.stringMatching(/--on-failure of "told" exited with 1\n$/) });
    expect(session.read("told")).toMatch(/^name: told\nresult: failed\nexit code: 4\n/);
    expect(await session.run(elect(`told -q ${tell} --value a:1 -- true`))).toMatchObject({ code: 0, stderr: "" });
  });

  test("is reported to --status-file", async () => {
    await session.run(elect("report --status-file $dir/report --value a:1 -- sh -c 'exit 4'"));
    expect(JSON.parse(session.read("report"))).toMatchObject({
      version: 1,
      command: "elect",
      names: ["report"],
      reason: "command_exited",
      exit_code: 4,
      command_status: { code: 4, signal: null },
    });
  });
});

describe("--health", () => {
  test("makes a leader that is unwell give up: its command is stopped and another leads", async () => {
    const health = "--health 'test ! -e $dir/unwell' --health-interval 50ms --health-failures 2";
    const first = session.start(elect(`health ${health} --value a:1 -- sleep 60`));
    await leads("health", "a:1");
    const second = session.start(elect("health -v --value b:1 -- sleep 60"));
    await says(second, "waiting for");
    writeFileSync(session.path("unwell"), "");
    await leads("health", "b:1");
    await says(first, /--health exited with 1, 1 of 2 in a row/);
    await says(
      first,
      /ends: the --health check failed 2 times in a row, the last time: exited with 1; .*again in 1 s/,
    );
    for (const one of [first, second]) one.child.kill("SIGTERM");
    await Promise.all([first.ended, second.ended]);
  });

  test("that hangs is killed with everything it started, and exit 80 says so with --restart never", async () => {
    const line = "sleep 61 & echo $! >$dir/hang.pid; setsid sleep 62 & echo $! >$dir/hang2.pid; wait";
    const running = session.start(elect(
      `hang --restart never --health '${line}' --health-interval 10ms --health-timeout 300ms --health-failures 1 --value a:1 -- sleep 60`,
    ));
    const pids = [await pidIn("hang.pid"), await pidIn("hang2.pid")];
    const ended = await running.ended;
    expect(ended.code).toBe(80);
    expect(ended.stderr).toContain("--health did not end within 300 ms");
    expect(pids.map(isAlive)).toEqual([false, false]);
  });

  test("neither reads the command's input nor writes to its output", async () => {
    const ended = await session.run(
      `echo mine | "$baton" elect -q -z embedded quiet --health 'echo noise; cat; >checked' --health-interval 1ms --value a:1 \\
        -- sh -c 'while [ ! -e checked ]; do sleep 0.02; done; cat'`,
    );
    expect(ended).toMatchObject({ code: 0, stdout: "mine\n" });
    expect(ended.stderr).toMatch(/^(noise\n)+$/);
  });
});

describe("--on-elected and --on-deposed", () => {
  test("run before and after the command, with its environment, and neither's failure stops anything", async () => {
    const ended = await session.run(elect(
      `hooks --on-elected 'echo elected $BATON_ELECTION_VALUE >>$dir/hooks; exit 1' ` +
        `--on-deposed 'echo deposed $BATON_ELECTION_VALUE >>$dir/hooks; exit 2' --value a:1 -- sh -c 'echo runs >>$dir/hooks'`,
    ));
    expect(ended.code).toBe(0);
    expect(session.read("hooks")).toBe("elected a:1\nruns\ndeposed a:1\n");
    expect(ended.stderr).toBe("baton: --on-elected exited with 1\nbaton: --on-deposed exited with 2\n");
  });

  test("are stopped with everything they started when they take too long", async () => {
    const ended = await session.run(elect(
      "slow --hook-timeout 300ms --on-elected 'setsid sleep 63 & echo $! >$dir/slow.pid; wait' --value a:1 -- echo runs",
    ));
    expect(ended).toMatchObject({ code: 0, stdout: "runs\n" });
    expect(ended.stderr).toContain("--on-elected ran longer than 300 ms and was stopped");
    expect(isAlive(await pidIn("slow.pid"))).toBe(false);
  });

  test("do not outlive a baton that is killed", async () => {
    const running = session.start(
      elect("gone --on-elected 'echo $$ >$dir/gone.pid; exec sleep 64' --value a:1 -- true"),
    );
    const pid = await pidIn("gone.pid");
    process.kill(running.child.pid ?? 0, "SIGKILL");
    await eventually(() => !isAlive(pid));
  });
});

test("--preempt makes a leader of worse priority step down, and one of better priority stay", async () => {
  const worse = session.start(elect("rank --priority 200 --value worse:1 -- sleep 60"));
  await leads("rank", "worse:1");
  const better = session.start(elect("rank --priority 50 --preempt --value better:1 -- sleep 60"));
  await leads("rank", "better:1");
  await says(worse, "a candidate of priority 50 is better");
  const again = session.start(elect("rank -v --priority 60 --preempt --value again:1 -- sleep 60"));
  await says(again, "waiting for");
  expect(await leader("rank")).toBe("better:1");
  for (const one of [worse, again, better]) one.child.kill("SIGTERM");
  await Promise.all([worse, again, better].map((one) => one.ended));
});

test("--leader-file says who leads, at the leader's and at those who wait, and nothing when nobody does", async () => {
  const first = session.start(elect("file --leader-file $dir/file.a --value a:1 -- sleep 60"));
  await leads("file", "a:1");
  const second = session.start(elect("file -v --leader-file $dir/file.b --value b:1 -- sleep 60"));
  await says(second, "waiting for");
  await eventually(() => session.read("file.a") === "a:1\n" && session.read("file.b") === "a:1\n");
  await resign("file");
  await eventually(() => session.read("file.a") === "b:1\n" && session.read("file.b") === "b:1\n");
  first.child.kill("SIGTERM");
  await first.ended;
  second.child.kill("SIGTERM");
  await second.ended;
  expect(session.read("file.b")).toBe("");
});

describe("baton leader", () => {
  test("answers 1 when nobody leads, 75 when nobody has within the wait", async () => {
    expect(await session.run('"$baton" leader -z embedded nobody')).toMatchObject({ code: 1, stdout: "" });
    const json = await session.run('"$baton" leader -z embedded --json nobody');
    expect([json.code, JSON.parse(json.stdout)]).toEqual([1, {
      version: 1,
      name: "nobody",
      path: "/baton/elections/nobody",
      leader: null,
    }]);
    expect((await session.run('"$baton" leader -z embedded -w 1s nobody')).code).toBe(75);
    expect((await session.run('"$baton" leader -z embedded --watch --wait 5 nobody')).code).toBe(64);
  });

  test("waits until somebody leads", async () => {
    const waiting = session.start('"$baton" leader -z embedded --wait forever later');
    const running = session.start(elect("later --value a:1 -- sleep 60"));
    expect(await waiting.ended).toMatchObject({ code: 0, stdout: "a:1\n" });
    running.child.kill("SIGTERM");
    await running.ended;
  });

  test("tells every leader once, over a server that was away", async () => {
    const server = await keeper.start();
    try {
      await using own = new BatonSession({ BATON_SERVERS: server.servers });
      const watching = own.start('exec "$baton" leader --session-timeout 2s --watch t');
      const lines = () => watching.stdout().trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));
      const lead = (value: string) => own.run(`"$baton" elect -q t --value ${value} -- true`);
      await eventually(() => lines().length === 1, { withinMs: 20_000 });
      await lead("v1");
      process.kill(watching.child.pid ?? 0, "SIGSTOP");
      for (let term = 2; term <= 70; term++) await lead(`v${term}`);
      await server.restart();
      process.kill(watching.child.pid ?? 0, "SIGCONT");
      await lead("v71");
      await eventually(() => lines().some(({ value }) => value === "v71"), { withinMs: 30_000 });
      const indexes = lines().flatMap(({ index }) => index === undefined ? [] : [index]);
      const missed = lines().reduce((sum, line) => sum + (line.missed ?? 0), 0);
      expect(indexes).toEqual([...indexes].sort((a, b) => a - b));
      expect(new Set(indexes).size + missed).toBe(71);
      expect(lines()[0]).toEqual({ version: 1, vacant: true });
    } finally {
      await server.close();
    }
  });
});

test("baton resign answers 1 when nobody leads, and 75 when the leader takes its time", async () => {
  expect((await resign("nobody")).code).toBe(1);
  const running = session.start(
    elect(
      "stubborn --kill-after 1h --value a:1 -- sh -c 'trap \"\" TERM; >$dir/stubborn; while :; do sleep 0.1; done'",
    ),
  );
  await session.made("stubborn");
  expect((await resign("stubborn", "-w 2s")).code).toBe(75);
  expect((await resign("stubborn", "-w 0s")).code).toBe(0);
  running.child.kill("SIGKILL");
  await running.ended;
});

describe("baton forward", () => {
  test("refuses what it cannot listen on, and says what a value is not", async () => {
    expect((await session.run('"$baton" forward -z embedded n')).code).toBe(64);
    expect((await session.run('"$baton" forward -z embedded n --listen nowhere')).code).toBe(64);
    expect((await session.run('"$baton" forward -z embedded n --listen unix:$dir/no/such/s')).code).toBe(73);
    const running = session.start(elect("strange --value 'not an address' -- sleep 60"));
    await leads("strange", "not an address");
    const forwarding = session.start('exec "$baton" forward -z embedded strange --listen :0');
    await says(
      forwarding,
      'Cannot connect to the leader of "strange": its value "not an address" is not host:port; start it with baton elect --value HOST:PORT',
    );
    for (const one of [forwarding, running]) one.child.kill("SIGTERM");
    expect((await forwarding.ended).signal).toBe("SIGTERM");
    await running.ended;
  });
});
