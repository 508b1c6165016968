/** `baton fence run`, by sessions with the binary. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import process from "node:process";
import { listChildProcesses } from "../../../src/base/process/proc/process_table.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { catches } from "../../support/catches.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

const fence = (store: string, token: number | string, command: string, options = "") =>
  `"$baton" fence run --store "${store}" --token ${token} ${options} -- ${command}`;

test("a token as high as the highest is let through, a lower one is refused with 86", async () => {
  expect(await session.run(fence("order", 5, "echo five"))).toMatchObject({ code: 0, stdout: "five\n", stderr: "" });
  expect(await session.run(fence("order", 7, "sh -c 'exit 3'"))).toMatchObject({ code: 3 });
  expect(await session.run(fence("order", 7, "true"))).toMatchObject({ code: 0 });
  const stale = await session.run(fence("order", 6, "touch stale"));
  expect(stale).toMatchObject({ code: 86, stdout: "" });
  expect(stale.stderr).toMatch(/^baton: Token 6 is stale: "order" has 7, used by \S+ at \S+; the holder .*\n$/);
  expect(readdirSync(session.folder)).not.toContain("stale");
});

test("under baton lock the token is the lock's", async () => {
  const script = `"$baton" lock -q f -- sh -c '"$baton" fence run --store env -- sh -c "echo \\$BATON_FENCING_TOKEN"'`;
  const [first, second] = [await session.run(script), await session.run(script)];
  expect([first.code, second.code]).toEqual([0, 0]);
  expect(BigInt(second.stdout.trim())).toBeGreaterThan(BigInt(first.stdout.trim()));
  expect(await session.run(fence("env", first.stdout.trim(), "true"))).toMatchObject({ code: 86 });
});

test("the command's ending passes through, and what cannot be started has env's codes", async () => {
  expect(await session.run(fence("end", 1, "sh -c 'kill -TERM $$'"))).toMatchObject({ code: 143 });
  expect(await session.run(fence("end", 1, "./no-such-command"))).toMatchObject({ code: 127 });
  writeFileSync(session.path("data"), "x");
  expect(await session.run(fence("end", 1, "./data"))).toMatchObject({ code: 126 });
});

test("one at a time: the store is busy while a command runs, and a signal reaches that command", async () => {
  const running = session.start(
    "exec " + fence("busy", 1, `sh -c 'trap "exit 9" TERM; touch started; while :; do sleep 0.05; done'`, ""),
  );
  await session.made("started");
  const busy = await session.run(fence("busy", 2, "true", "-n"));
  expect(busy).toMatchObject({ code: 75 });
  expect(busy.stderr).toContain('Store "busy" is busy');
  expect(await session.run(fence("busy", 2, "true", "-w 1s"))).toMatchObject({ code: 75 });
  // The shell is this process's child, and has become baton.
  running.child.kill("SIGTERM");
  expect(await running.ended).toMatchObject({ code: 9, signal: null });
  expect(await session.run(fence("busy", 2, "true", "-n"))).toMatchObject({ code: 0 });
});

test("a waiting call that is told to stop dies of the signal and runs nothing", async () => {
  const running = session.start(`mkfifo gate; exec ${fence("stop", 1, "sh -c 'touch holding; read -r _ <gate'")}`);
  await session.made("holding");
  const waiting = session.start(`exec ${fence("stop", 2, "touch ran")}`);
  await eventually(() => readFileSync(`/proc/${waiting.child.pid}/comm`, "utf8").startsWith("baton"));
  await eventually(() => catches(waiting.child.pid ?? 0, "SIGTERM"));
  waiting.child.kill("SIGTERM");
  expect(await waiting.ended).toMatchObject({ code: null, signal: "SIGTERM" });
  expect(readdirSync(session.folder)).not.toContain("ran");
  running.child.kill("SIGTERM");
  await running.ended;
});

test("baton killed: the store stays held for as long as the command runs", async () => {
  const running = session.start(`exec ${fence("killed", 1, "sh -c 'echo $$ >pid; touch there; exec sleep 60'")}`);
  await session.made("there");
  running.child.kill("SIGKILL");
  const pid = Number(session.read("pid"));
  await eventually(() => parentOf(pid) !== running.child.pid);
  expect(await session.run(fence("killed", 2, "true", "-n"))).toMatchObject({ code: 75 });
  process.kill(pid, "SIGKILL");
  expect(await session.run(fence("killed", 2, "true", "-w 10s"))).toMatchObject({ code: 0 });
});

test("a holder that was frozen with its guard, and woken when another holds, cannot write any more", async () => {
  await session.run("mkfifo go");
  const write = (who: string) => `"$baton" fence run --store zombie -- sh -c "echo ${who} >>written"`;
  const old = session.start(
    `exec "$baton" lock -q --session-timeout 2s z -- sh -c 'echo $$ >old; touch held; read -r _ <go; ${
      write("old")
    }; echo $? >code'`,
  );
  await session.made("held");
  const child = Number(session.read("old"));
  const baton = old.child.pid ?? 0;
  const frozen = [baton, ...listChildProcesses(baton)]; // the guard and the command
  expect(frozen.length).toBe(3);
  for (const pid of frozen) process.kill(pid, "SIGSTOP");
  const next = await session.run(`"$baton" lock -q -w 20s --session-timeout 2s z -- sh -c '${write("new")}'`);
  expect(next).toMatchObject({ code: 0 });
  process.kill(child, "SIGCONT"); // nobody is awake who could kill it
  await session.run("echo go >go");
  expect([await session.said("code"), session.read("written").trim()]).toEqual(["86", "new"]);
  for (const pid of frozen) {
    try {
      process.kill(pid, "SIGCONT");
    } catch {
      // the command has ended by now
    }
  }
  // It has outlived its lease, and baton says so.
  expect(await old.ended).toMatchObject({ code: 83 });
});

test("what is no store, and what cannot be one, is refused", async () => {
  writeFileSync(session.path("table.csv"), "a,b,c\n");
  expect(await session.run(fence("table.csv", 1, "true"))).toMatchObject({
    code: 65,
    stderr: 'baton: "table.csv" is not a fencing store: use a separate file; baton creates it\n',
  });
  expect(session.read("table.csv")).toBe("a,b,c\n");
  expect(await session.run(fence("no/such/folder/store", 1, "true"))).toMatchObject({ code: 73 });
  expect(await session.run(fence(".", 1, "true"))).toMatchObject({ code: 73 });
  expect(await session.run(`ulimit -f 0; trap "" XFSZ; ${fence("limited", 1, "touch ran-too")}`)).toMatchObject({
    code: 74,
  });
  expect(readdirSync(session.folder)).not.toContain("ran-too");
});

test("a call inside another one of the same store is told so: it would wait for itself", async () => {
  const inner = await session.run(fence("inner", 5, fence("inner", 5, "touch ran-inside")));
  expect(inner).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('baton: Store "inner" is already held by a baton fence run around this call\n'),
  });
  expect(readdirSync(session.folder)).not.toContain("ran-inside");
  expect(await session.run(fence("inner", 5, fence("other", 1, "echo two")))).toMatchObject({
    code: 0,
    stdout: "two\n",
  });
  // A descriptor of the store that holds no lock is nobody's.
  const running = session.start(fence("inner", 5, "sh -c 'touch in; sleep 0.3'"));
  await session.made("in");
  expect(await session.run(`${fence("inner", 5, "echo after")} 9<>inner`)).toMatchObject({
    code: 0,
    stdout: "after\n",
  });
  await running.ended;
});

test("a store that is replaced while it is waited for is not held by two", async () => {
  const one = session.start(fence("moved", 1, "sh -c 'touch first; until [ -e end-first ]; do sleep 0.02; done'"));
  await session.made("first");
  const waiting = session.start(fence("moved", 3, `sh -c 'mkdir inside && sleep 0.2 && rmdir inside'`));
  await eventually(() => readdirSync(`/proc/${waiting.child.pid}/task`).length > 0);
  await eventually(() =>
    hasOpen(listChildProcesses(waiting.child.pid ?? 0).at(-1) ?? waiting.child.pid ?? 0, session.path("moved"))
  );
  await session.run("cp moved new && mv new moved");
  const other = session.start(
    fence(
      "moved",
      2,
      `sh -c 'mkdir inside && touch second && until [ -e end-second ]; do sleep 0.02; done; rmdir inside'`,
    ),
  );
  await session.made("second");
  await session.run("touch end-first");
  await one.ended;
  expect(await session.run(fence("moved", 3, "true", "-n"))).toMatchObject({ code: 75 });
  await session.run("touch end-second");
  expect([(await other.ended).code, (await waiting.ended).code]).toEqual([0, 0]);
});

test("what does not fit together is a matter of usage", async () => {
  const wrong: [words: string, says: string][] = [
    ["fence", "takes run, but none was given"],
    ["fence walk --store s -- true", 'not "walk"'],
    ["fence run x --store s -- true", 'unexpected argument "x": put the command after --'],
    ["fence run -- true", "needs --store"],
    ["fence run --store s", "needs a command"],
    ["fence run --store s -- true", "There is no fencing token"],
    ["fence run --store s --token 1x -- true", '"1x" is not a fencing token'],
    ["fence run --store s --token 1 -n -w 1s -- true", "cannot be used together"],
  ];
  for (const [words, says] of wrong) {
    const ended = await session.run(`"$baton" ${words}`);
    expect([ended.code, ended.stdout]).toEqual([64, ""]);
    expect(ended.stderr).toContain(says);
  }
  const several = await session.run(`"$baton" fence run --store s -- true`, { BATON_FENCING_TOKEN: "1\n2" });
  expect(several).toMatchObject({ code: 64 });
});

function hasOpen(pid: number, file: string): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`) === file);
  } catch {
    return false; // one was closed between the two looks
  }
}

function parentOf(pid: number): number {
  return Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]);
}
