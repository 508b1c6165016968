/** `baton who --watch`, `ls --watch`, `-l` and `top`: in a pipe, and on a terminal. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { constants } from "node:os";
import { allJsonShapes } from "../../../commands/json_shapes/all_shapes.ts";
import { parseServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { connect } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
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
  test("who --watch prints a line for each change, ls --watch the new numbers, --json one object per line", async () => {
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
    expect(ls).toMatch(new RegExp(`lock +long +1 +0 +\\S+ +\\S+ +${holder.child.pid} +sh +\\S+Z +\\d+ +0x[0-9a-f]+\n`));
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

const leave = "\x1b[?25h\x1b[?1049l";

describe("top", () => {
  test("once where stdout is no terminal: locks with holders and waiters; JSON of its shape", async () => {
    const holder = hold("first");
    await session.made("first");
    const waiter = session.start('exec "$baton" lock first -- true');
    await eventually(async () => /lock +first +1 +1 /.test((await session.run('"$baton" top')).stdout));
    const text = (await session.run('"$baton" top --filter first')).stdout;
    expect(text).toMatch(/^baton top {2}.*1 holder, 1 waiting/);
    expect(text).toMatch(/lock +first +1 +1 +\S+ \(pid \d+, sh\)/);
    expect((await session.run('"$baton" top --filter nothing-like-it')).stdout).toContain(
      'no row has "nothing-like-it"',
    );
    const json = JSON.parse((await session.run('"$baton" top --json')).stdout);
    const shape = allJsonShapes.find(({ from }) => from.startsWith("baton top"))?.shape;
    expect(shape?.safeParse(json).error?.issues ?? []).toEqual([]);
    expect((await session.run('"$baton" top --json --filter first')).code).toBe(64);
    await release("first");
    for (const running of [holder, waiter]) await running.ended;
  });

  test("shows the message store that --store names, and a process that serves metrics", async () => {
    await session.run('echo body | "$baton" retry-processor submit --store "$dir/store" -- false');
    const text = (await session.run('"$baton" top --store "$dir/store" --metrics 127.0.0.1:1')).stdout;
    expect(text).toMatch(/STORE +WAITING/);
    expect(text).toMatch(/default +1 +0 +0 +0 /);
    expect(text).toMatch(/unreachable +127\.0\.0\.1:1 /);
    const missing = await session.run('"$baton" top --store "$dir/none"');
    expect(missing.stdout).toContain("There is no message store in");
    expect(missing.code).toBe(0);
  });

  test("draws, filters, orders and scrolls; q restores the terminal", async () => {
    await session.run('echo body | "$baton" retry-processor submit --store "$dir/orders" -- false');
    const names = ["topx1", "topx2", "topx3"];
    const holders = names.map(hold);
    for (const name of names) await session.made(name);
    await using pty = terminal('"$baton" top --interval 200ms --store "$dir/orders" --filter topx');
    await pty.showsAll(`${escape}[?1049h`, "topx3");
    expect(await pty.modes()).toEqual({ echo: false, lines: false });
    pty.resize(7, 60);
    await pty.shows("lines 1 to 3 of 4");
    pty.press("\x1b[B");
    await pty.shows("lines 2 to 4 of 4");
    pty.resize(24, 80);
    pty.press("/2");
    await pty.shows("filter: topx2_");
    pty.forget();
    pty.press("\r");
    await pty.shows(/filter: topx2(?!_)/);
    pty.press("\x1b");
    await pty.shows("default");
    pty.press("s");
    await pty.shows("order: name");
    pty.press("?");
    await pty.shows("next order");
    pty.press("xq");
    const { ended, modes } = await pty.ended();
    expect({ ended, modes }).toEqual({ ended: { code: 0 }, modes: { echo: true, lines: true } });
    expect(pty.output).toContain(leave);
    for (const name of names) await release(name);
    await Promise.all(holders.map((holder) => holder.ended));
  });

  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("%s restores the terminal, and is how it ends", async (name) => {
    await using pty = terminal('"$baton" top');
    await pty.shows("q quit");
    pty.signal(constants.signals[name]);
    const { ended, modes } = await pty.ended();
    expect({ ended, modes }).toEqual({
      ended: { signal: constants.signals[name] },
      modes: { echo: true, lines: true },
    });
    expect(pty.output).toContain(leave);
  });

  test("^C ends it by SIGINT", async () => {
    await using pty = terminal('"$baton" top');
    await pty.shows("q quit");
    pty.press("\x03");
    expect((await pty.ended()).ended).toEqual({ signal: constants.signals.SIGINT });
    expect(pty.output).toContain(leave);
  });

  /**
   * A shell with job control on a terminal: it prints the exit code when its job is stopped, and continues it after a
   * key.
   */
  const shell = (job: string) => {
    const script = `set -m; ${job}; echo "stopped $?"; read -r go; fg >/dev/null; echo "ended $?"`;
    return new PtySession(["bash", "-c", script], { env: session.env, cwd: session.folder });
  };

  test.each([
    ["it alone", '"$baton" top'],
    ["it with the script that runs it", `sh -c '"$baton" top; exit 7'`],
  ])("^Z stops %s with a restored terminal; it continues where it was", async (_what, job) => {
    await using pty = shell(job);
    await pty.shows("q quit");
    expect(await pty.modes()).toEqual({ echo: false, lines: false });
    pty.forget();
    pty.press("\x1a");
    await pty.showsAll(leave, "stopped ");
    expect(await pty.modes()).toEqual({ echo: true, lines: true });
    pty.forget();
    pty.press("\r");
    await pty.showsAll(`${escape}[?1049h`, "q quit");
    expect(await pty.modes()).toEqual({ echo: false, lines: false });
    pty.press("q");
    await pty.shows(/ended [07]/);
  });

  test("^Z changes nothing where no shell could continue it", async () => {
    await using pty = terminal('"$baton" top');
    await pty.shows("q quit");
    pty.forget();
    pty.press("\x1a");
    await pty.showsAll(leave, `${escape}[?1049h`, "q quit");
    expect(await pty.modes()).toEqual({ echo: false, lines: false });
    pty.press("q");
    expect((await pty.ended()).ended).toEqual({ code: 0 });
  });

  test("SIGSTOP and SIGCONT: it takes the terminal again", async () => {
    await using pty = terminal('"$baton" top');
    await pty.shows("q quit");
    pty.signal(constants.signals.SIGSTOP);
    await pty.stopped();
    pty.forget();
    pty.signal(constants.signals.SIGCONT);
    await pty.showsAll(`${escape}[?1049h`, "q quit");
    pty.signal(constants.signals.SIGTERM);
    expect(await pty.ended()).toEqual({
      ended: { signal: constants.signals.SIGTERM },
      modes: { echo: true, lines: true },
    });
  });

  test("an error after the first reading restores the terminal, and is printed after it", async () => {
    await using pty = terminal('"$baton" top --interval 100ms --root /refused');
    await pty.shows("q quit");
    await using zk = await connect({ servers: parseServers(`unix:${session.keeperFolder}/keeper.sock`) });
    await zk.create("/refused", new Uint8Array());
    const acl = [{ perms: 31, id: { scheme: "digest", id: "operator:secret" } }];
    await zk.create("/refused/elections", new Uint8Array(), { acl });
    const { ended, modes } = await pty.ended();
    expect(modes).toEqual({ echo: true, lines: true });
    expect(ended?.code).toBeGreaterThan(0);
    expect(pty.output.slice(pty.output.lastIndexOf(leave))).toContain("baton: ");
  });

  test("an error before the first reading is printed on the normal screen", async () => {
    await using pty = terminal('"$baton" top --servers 127.0.0.1:1 --connect-timeout 200ms');
    expect((await pty.ended()).ended).toEqual({ code: 69 });
    expect(pty.output).not.toContain("\x1b[?1049h");
  });
});
