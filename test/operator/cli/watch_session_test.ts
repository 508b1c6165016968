/** `baton who --watch`, `ls --watch`, `-l`, and `ls` of other kinds: in a pipe, and on a terminal. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { constants } from "node:os";
import { allJsonShapes } from "../../../scripts/docs/json_shapes.ts";
import { BatonSession, type Running, untilMade } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { PtySession } from "../../support/pty_session.ts";

setDefaultTimeout(60_000);

const escape = "\x1b";

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded" }));
afterAll(() => session[Symbol.asyncDispose]());

const hold = (name: string) =>
  session.start(`exec "$baton" lock ${name} -- sh -c 'touch ${name}; ${untilMade(`${name}.end`)}'`);
const release = (name: string) => session.run(`touch ${name}.end`);
const printed = (running: Running, text: string | RegExp) =>
  eventually(() => typeof text === "string" ? running.stdout().includes(text) : text.test(running.stdout()), {
    what: `${text} in ${JSON.stringify(running.stdout())}`,
    withinMs: 15_000,
  });
const terminal = (command: string, env: Readonly<Record<string, string>> = {}) =>
  new PtySession(["/bin/sh", "-c", `exec ${command}`], { env: { ...session.env, ...env }, cwd: session.folder });

async function stop(running: Running): Promise<void> {
  running.child.kill("SIGTERM");
  expect((await running.ended).signal).toBe("SIGTERM");
}

describe("in a pipe", () => {
  test("who --watch prints a line for each change, ls --watch new numbers, and --json one object a line", async () => {
    const who = session.start('exec "$baton" who piped --watch');
    const json = session.start('exec "$baton" who piped --watch --json');
    const ls = session.start('exec "$baton" ls --watch');
    await printed(json, '"holders":[]');
    const holder = hold("piped");
    await session.made("piped");
    await printed(who, /^\S+Z {2}holds {2}\S+ \(pid \d+, sh\) {2}exclusive {2}[0-9a-f]{6}\n/m);
    await printed(ls, /Z {2}lock {2}piped {2}1 {2}0\n/);
    const waiter = session.start('exec "$baton" lock piped -- true');
    await printed(who, /Z {2}waits {2}\S+ \(pid \d+, true\)/);
    await printed(ls, /Z {2}lock {2}piped {2}1 {2}1\n/);
    await release("piped");
    for (const running of [holder, waiter]) expect((await running.ended).code).toBe(0);
    await printed(who, /Z {2}gone .*sh\)/);
    await printed(ls, /Z {2}lock {2}piped {2}0 {2}0\n/);
    await printed(json, /"holders":\[\][^\n]*\n[^]*"holders":\[\][^\n]*\n$/);
    const lines = json.stdout().trimEnd().split("\n").map((line) => JSON.parse(line));
    const shape = allJsonShapes.find(({ from }) => from.startsWith("baton who"))?.shape;
    for (const line of lines) expect(shape?.safeParse(line).error?.issues ?? []).toEqual([]);
    expect(who.stdout()).not.toContain("\x1b");
    for (const running of [who, json, ls]) await stop(running);
  });

  test("a session that the server ends is replaced", async () => {
    const who = session.start('exec "$baton" who again --watch --json');
    await printed(who, '"holders":[]');
    process.kill(session.keeperPid() ?? 0, "SIGKILL");
    const holder = hold("again");
    await session.made("again");
    await printed(who, '"mode":"exclusive"');
    await release("again");
    expect((await holder.ended).code).toBe(0);
    await stop(who);
  });

  test("-l prints user, host, pid, start, token and session", async () => {
    const holder = hold("long");
    await session.made("long");
    const who = (await session.run('"$baton" who -l long')).stdout.split("\n").map((line) => line.split(/ {2,}/));
    expect(who[0]).toEqual(
      ["STATE", "QUEUE", "USER", "HOST", "PID", "COMMAND", "SINCE", "HOW", "TOKEN", "SESSION", "ID", "REASON"],
    );
    expect(who[1]?.[4]).toBe(String(holder.child.pid));
    expect(who[1]?.[9]).toMatch(/^0x[0-9a-f]+$/);
    const ls = (await session.run('"$baton" ls -l')).stdout;
    expect(ls).toMatch(
      new RegExp(`lock +long +1 +0 +\\S+ +\\S+ +${holder.child.pid} +sh +\\S+Z +\\d+ +0x[0-9a-f]+ +-\n`),
    );
    const json = JSON.parse((await session.run('"$baton" ls -l --json')).stdout);
    expect(json.details).toMatchObject([{ kind: "lock", name: "long", holders: [{ pid: holder.child.pid }] }]);
    await release("long");
    await holder.ended;
  });

  test("a short id is enough for break", async () => {
    const holder = hold("short");
    await session.made("short");
    const id = /([0-9a-f]{6}) *$/m.exec((await session.run('"$baton" who short')).stdout)?.[1];
    expect((await session.run(`"$baton" break short --holder ${id}`)).code).toBe(0);
    expect((await holder.ended).code).toBe(80);
  });
});

test("a short id is enough for release", async () => {
  const script = 'held=$("$baton" hold -q mine --pid $$) || exit; eval "$held"; ' +
    'id=$("$baton" who mine --json | grep -o \'"id":"......\' | cut -c 7-); ' +
    '"$baton" release "$id" && "$baton" who -q mine; echo $?';
  expect((await session.run(script)).stdout).toBe("1\n");
});

describe("on a terminal", () => {
  test("who --watch draws the table again in its place, and ends by the signal", async () => {
    await using pty = terminal('"$baton" who drawn --watch');
    await pty.shows('lock "drawn" is free');
    const holder = hold("drawn");
    await pty.showsAll(`${escape}[2A`, "holds");
    await release("drawn");
    await holder.ended;
    pty.forget();
    await pty.shows("is free");
    pty.press("\x03");
    expect((await pty.ended()).ended).toEqual({ signal: constants.signals.SIGINT });
  });

  test("who --watch says in its table that no server responds, and draws over it when one does", async () => {
    await using keeper = new BatonSession({ BATON_SERVERS: "embedded", BATON_SESSION_TIMEOUT: "2s" });
    await using pty = new PtySession(["/bin/sh", "-c", 'exec "$baton" who paused --watch'], {
      env: keeper.env,
      cwd: keeper.folder,
    });
    await pty.shows("is free");
    const pid = keeper.keeperPid() ?? 0;
    expect(pid).toBeGreaterThan(1);
    process.kill(pid, "SIGSTOP");
    pty.forget();
    await pty.shows("no server has responded for 2 s");
    expect(pty.output).not.toContain("baton: ");
    process.kill(pid, "SIGCONT");
    await eventually(() => {
      pty.forget();
      return pty.shows("is free").then(() => !pty.output.includes("no server"));
    }, { what: "the table without the message", withinMs: 20_000 });
    pty.signal(constants.signals.SIGTERM);
    expect((await pty.ended()).ended).toEqual({ signal: constants.signals.SIGTERM });
  });

  test("colours, and none with NO_COLOR or in a pipe", async () => {
    const holder = hold("coloured");
    await session.made("coloured");
    await using pty = terminal('"$baton" who coloured');
    expect((await pty.ended()).ended).toEqual({ code: 0 });
    expect(pty.output).toContain("\x1b[32mholds\x1b[39m");
    await using plain = terminal('"$baton" who coloured', { NO_COLOR: "1" });
    await plain.ended();
    expect(plain.output).toContain("holds");
    expect(plain.output).not.toContain("\x1b[");
    expect((await session.run('"$baton" who coloured')).stdout).not.toContain("\x1b");
    await release("coloured");
    await holder.ended;
  });
});

describe("ls of other kinds", () => {
  test("shows the message store that --store names, and a process that serves metrics", async () => {
    await session.run('echo body | "$baton" retry-processor submit --store "$dir/store" -- false');
    const { stdout } = await session.run('"$baton" ls --store "$dir/store" --metrics 127.0.0.1:1');
    expect(stdout).toMatch(/STORE +WAITING/);
    expect(stdout).toMatch(/default +1 +0 +0 +0 /);
    expect(stdout).toMatch(/unreachable +127\.0\.0\.1:1 /);
    const missing = await session.run('"$baton" ls --store "$dir/none"');
    expect(missing.stderr).toContain("There is no message store in");
    expect(missing.code).toBe(0);
  });

  test("shows schedules and the results of pools; --kind selects one", async () => {
    await session.run('"$baton" lock nightly-tick --tick "* * * * *" --timezone UTC -- true');
    await session.run("printf 'a\\nb\\n' | \"$baton\" pool papers --items - --done-ttl 1h -- true");
    expect((await session.run('"$baton" ls --all')).stdout).toMatch(/nightly-tick +\* \* \* \* \* \(UTC\) +in /);
    const json = JSON.parse((await session.run('"$baton" ls --json --all --kind pool')).stdout);
    expect(json.pools).toMatchObject([{ name: "papers", done: 2, failed: 0 }]);
    expect(json.schedules).toEqual([]);
    const { schedules } = JSON.parse((await session.run('"$baton" ls --json --kind schedule')).stdout);
    expect(schedules).toMatchObject([{ name: "nightly-tick", schedule: "* * * * *", running: null }]);
  });

  test("a watched store is drawn again with its rate", async () => {
    await session.run('echo body | "$baton" retry-processor submit --store "$dir/watched" --name watched -- false');
    await using pty = terminal('"$baton" ls --watch --kind store --store "$dir/watched" --name watched');
    await pty.shows(/watched +1 +0 +0 +0 +- /);
    await pty.shows(/watched +1 +0 +0 +0 +0\/s /);
    pty.signal(constants.signals.SIGTERM);
    await pty.ended();
  });
});
