/** `get --exec`, as typed: what runs for a message never runs beside what ran for it before, whoever was killed. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTime } from "../../support/quiet_time.ts";
import { startRole } from "../../support/session_talker.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeEach(async () => {
  session = new BatonSession({ BATON_PUBSUB_STATE_DIR: "state", BATON_SERVERS: "embedded" });
  for (const role of ["server --id s1 --data-dir s1", "proxy --id p1"]) await startRole(session, role);
  await session.run('"$baton" pubsub client alice subscribe news; echo one | "$baton" pubsub client bob put news -');
});
afterEach(() => session[Symbol.asyncDispose]());

/** Says its process, waits until it is told to end, and says whether that of the last run lived still when it began. */
const handler = `last=$(cat pid 2>/dev/null); if grep -qs "^State:.[RSDT]" "/proc/$last/status"; then echo OVERLAP; fi
echo "$BATON_MESSAGE_ID $BATON_REDELIVERED" >>runs; echo $$ >pid.new; mv pid.new pid
sleep 1000 & echo $! >sleeper; while ! test -e end; do sleep 0.02; done; kill $!`;

const get = (words = "") =>
  session.start(`exec "$baton" pubsub client alice get news ${words} --exec "$(cat handler)"`);
const write = (name: string, text: string) => session.run(`cat >${name} <<'END'\n${text}\nEND`);
const pidIn = (name: string) => Number(session.read(name));
const lives = (pid: number) =>
  existsSync(`/proc/${pid}`) && !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));

/** Processes of this name below a process. */
const below = (parent: number, name: string) =>
  readdirSync("/proc").filter((pid) => /^\d+$/.test(pid)).map(Number).filter((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      return stat.includes(`(${name})`) && stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1] === String(parent);
    } catch {
      return false; // gone meanwhile
    }
  });

test("all processes of a message are dead within a second of the client's kill -9, and run again later", async () => {
  await write("handler", handler);
  const first = get();
  const sleeper = Number(await session.said("sleeper"));
  const shell = pidIn("pid");
  const quiet = new QuietTime();
  first.child.kill("SIGKILL");
  await eventually(() => !lives(shell) && !lives(sleeper), { withinMs: 5000, what: "the handler to die" });
  expect(quiet.ms).toBeLessThan(2000);
  await first.ended;

  // At once, and again and again: the next one begins while the guard is at its work.
  for (let round = 2; round < 5; round++) {
    const next = get();
    await eventually(() => session.read("runs").trim().split("\n").length === round, { withinMs: 20_000 });
    next.child.kill("SIGKILL");
    await next.ended;
  }
  await session.run("touch end");
  const last = await get().ended;
  expect([last.code, last.stdout]).toEqual([0, ""]);
  expect(session.read("runs")).toBe("1 0\n1 1\n1 1\n1 1\n1 1\n");
  expect((await get().ended).code).toBe(1);
});

test("where the guard was killed with it, the next process ends what is left before it begins", async () => {
  await write("handler", handler);
  const first = get();
  const sleeper = Number(await session.said("sleeper"));
  const shell = pidIn("pid");
  const guards = below(first.child.pid ?? 0, "lock-guard");
  expect(guards.length).toBe(1);
  first.child.kill("SIGSTOP"); // it would see that its guard is dead
  for (const pid of [...guards, first.child.pid ?? 0]) process.kill(pid, "SIGKILL");
  await eventually(() => first.child.signalCode !== null); // its output is open as long as they live
  expect([lives(shell), lives(sleeper)]).toEqual([true, true]);
  const next = get();
  await eventually(() => session.read("runs") === "1 0\n1 1\n", { withinMs: 20_000, what: "the line to run again" });
  expect([lives(shell), lives(sleeper)]).toEqual([false, false]);
  await session.run("touch end");
  expect(await next.ended).toMatchObject({ code: 0, stdout: "" });
});

test("a late guard ends what is left of its own client, and not what the next client runs", async () => {
  await write("handler", handler);
  const first = get();
  const sleeper = Number(await session.said("sleeper"));
  const client = first.child.pid ?? 0;
  const [guard = 0] = below(client, "lock-guard");
  process.kill(guard, "SIGSTOP");
  for (const pid of [client, pidIn("pid"), sleeper]) process.kill(pid, "SIGKILL");
  const next = get();
  await eventually(() => session.read("runs") === "1 0\n1 1\n", { withinMs: 20_000, what: "the line to run again" });
  process.kill(guard, "SIGCONT");
  await eventually(() => !lives(guard), { withinMs: 20_000, what: "the late guard to have done its work" });
  await session.run("touch end");
  expect(await next.ended).toMatchObject({ code: 0, stdout: "" });
});

test("a signal reaches all of the line, a second one kills it, and the message comes again", async () => {
  await write("handler", "trap 'echo stopped; exit 7' TERM; touch ready; while :; do sleep 0.02; done");
  const polite = get("--follow");
  await session.made("ready");
  polite.child.kill("SIGTERM");
  expect(await polite.ended).toMatchObject({ signal: "SIGTERM", stdout: "stopped\n" });
  await write("handler", "trap '' TERM; touch deaf; while :; do sleep 0.02; done");
  const deaf = get();
  await session.made("deaf");
  deaf.child.kill("SIGTERM");
  await eventually(() => {
    deaf.child.kill("SIGTERM");
    return deaf.child.exitCode !== null || deaf.child.signalCode !== null;
  }, { everyMs: 200, withinMs: 10_000 });
  expect(await deaf.ended).toMatchObject({ signal: "SIGTERM" });
  await write("handler", "echo $BATON_REDELIVERED; cat");
  expect(await get().ended).toMatchObject({ code: 0, stdout: "1\none\n" });
});

/** Finishes the message at hand after TERM. */
const careful =
  `trap 'echo asked >>log' TERM; touch busy; while ! test -e finish; do sleep 0.02; done; echo done >>log`;

test.each([
  ["the shell has become the program, whose success counts", "./careful", "SIGTERM", "asked\ndone\n", 1],
  ["the shell is dead, and the program is awaited", "true; ./careful; true", "SIGTERM", "asked\ndone\n", 0],
  [
    "the line has ended at the signal, and what it started is awaited",
    "trap 'exit 0' TERM; ./careful & wait",
    "SIGTERM",
    "asked\ndone\n",
    1,
  ],
])("after TERM to baton %s", async (_, line, signal, log, code) => {
  await write("careful", `#!/bin/sh\n${careful}`);
  await session.run("chmod +x careful");
  await write("handler", line);
  const running = get("--follow");
  await session.made("busy");
  running.child.kill("SIGTERM");
  await eventually(() => existsSync(session.path("log")), { what: "the program to be asked" });
  expect([running.child.exitCode, running.child.signalCode]).toEqual([null, null]);
  await session.run("touch finish");
  expect(await running.ended).toMatchObject({ signal });
  expect(session.read("log")).toBe(log);
  await write("handler", "true");
  expect((await get().ended).code).toBe(code);
});

test("a second signal kills what the shell has left, too", async () => {
  await write("careful", `#!/bin/sh\n${careful}`);
  await session.run("chmod +x careful");
  await write("handler", "true; ./careful; true");
  const running = get();
  await session.made("busy");
  running.child.kill("SIGTERM");
  await eventually(() => session.read("log") !== "", { what: "the program to be asked" });
  running.child.kill("SIGINT");
  expect(await running.ended).toMatchObject({ signal: "SIGTERM" });
  expect(session.read("log")).toBe("asked\n");
});

test("a shell that was killed alone ends the call when its programs have ended", async () => {
  await write("careful", `#!/bin/sh\n${careful}`);
  await session.run("chmod +x careful");
  await write("handler", "echo $$ >pid.new; mv pid.new pid; ./careful; true");
  const running = get();
  await session.made("busy");
  process.kill(pidIn("pid"), "SIGKILL");
  await eventually(() => !lives(pidIn("pid")));
  expect(running.child.exitCode).toBe(null);
  await session.run("touch finish");
  expect(await running.ended).toMatchObject({ code: 137, signal: null });
  expect(session.read("log")).toBe("done\n");
});

test("a command that SIGINT has ended ends the call by it", async () => {
  await write("handler", "kill -INT $$");
  expect(await get().ended).toMatchObject({ signal: "SIGINT", stderr: expect.stringContaining("was ended by SIGINT") });
});

test("credentials are for baton, and not for what it runs", async () => {
  await write("handler", "env | sort | sed -n 's/^BATON_\\([A-Z]*\\)=.*/\\1/p' | tr '\\n' ' '");
  const words = 'exec "$baton" pubsub client alice get news --exec "$(cat handler)"';
  const { code, stdout } = await session.run(words, { BATON_AUTH_CREDENTIALS: "digest:a:b" });
  expect([code, stdout.includes("AUTH"), stdout.includes("TOPIC")]).toEqual([0, false, true]);
});

test("what a line leaves in the background is not waited for, and lives on when its message was had", async () => {
  await write("handler", "sleep 1000 >/dev/null 2>&1 & echo $! >sleeper");
  expect((await get().ended).code).toBe(0);
  const sleeper = pidIn("sleeper");
  expect(lives(sleeper)).toBe(true);
  process.kill(sleeper, "SIGKILL");
});

test("a message's command gets the whole body, although client and guard are killed before it reads", async () => {
  await session.run(
    '"$baton" pubsub client alice get news; head -c 1000000 /dev/zero | "$baton" pubsub client bob put news -',
  );
  await write("handler", "touch begun; while ! test -e go; do sleep 0.02; done; wc -c >size.new; mv size.new size");
  const first = get();
  await eventually(() => existsSync(session.path("begun")), { withinMs: 20_000 });
  const client = first.child.pid ?? 0;
  const guards = below(client, "lock-guard");
  expect(guards.length).toBe(1);
  first.child.kill("SIGSTOP"); // it would see that its guard is dead
  for (const pid of [...guards, client]) process.kill(pid, "SIGKILL");
  await eventually(() => first.child.signalCode !== null);
  await session.run("touch go");
  expect(Number(await session.said("size"))).toBe(1_000_000);
});
