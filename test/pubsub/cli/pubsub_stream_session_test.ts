/** Streams as typed: lines that come one by one and never end, readers that go away, signals at any moment. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import process from "node:process";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTime } from "../../support/quiet_time.ts";
import { startRole } from "../../support/session_talker.ts";

setDefaultTimeout(60_000);

/** How long a put waits for the requests that are on their way when it is stopped, in milliseconds. */
const lastRequestsMs = 5000;

let session: BatonSession;
beforeEach(async () => {
  session = new BatonSession({ BATON_PUBSUB_STATE_DIR: "state", BATON_SERVERS: "embedded" });
  for (const role of ["server --id s1 --data-dir s1", "proxy --id p1"]) await startRole(session, role);
  await session.run('"$baton" pubsub client alice subscribe news; mkfifo feed');
});
afterEach(() => session[Symbol.asyncDispose]());

const client = (words: string) => session.run(`"$baton" pubsub client ${words}`);
const pending = async () => Number((await client("alice pending news")).stdout);

test("a line of an endless stream is put at once, as is what was read when the put is stopped", async () => {
  const put = session.start('exec "$baton" pubsub client bob put news --lines <feed');
  const feed = openSync(session.path("feed"), "w");
  const getter = session.start('exec "$baton" pubsub client alice get news --follow');
  // The first pays for the start of both processes.
  writeSync(feed, "begin\n");
  await eventually(() => getter.stdout() === "begin\n", { withinMs: 20_000 });
  const latencies: number[] = [];
  for (let line = 0; line < 10; line++) {
    const quiet = new QuietTime();
    writeSync(feed, `line ${line}\n`);
    await eventually(() => getter.stdout().endsWith(`line ${line}\n`), { everyMs: 2, withinMs: 10_000 });
    latencies.push(quiet.ms);
  }
  // Far from any batch that waits for more.
  expect(latencies.sort((a, b) => a - b)[5]).toBeLessThan(250);
  writeSync(feed, "the last\nnot a whole li");
  await eventually(() => getter.stdout().endsWith("the last\n"), { withinMs: 10_000 });
  put.child.kill("SIGTERM");
  expect(await put.ended).toMatchObject({
    signal: "SIGTERM",
    stderr: "baton: 12 messages of stdin were put; the rest was not\n",
  });
  closeSync(feed);
  getter.child.kill("SIGTERM");
  await getter.ended;
  expect(await client("bob info news")).toMatchObject({ stdout: expect.stringContaining("unresolved_puts\t0\n") });
  expect((await session.run('echo x | "$baton" pubsub client bob put news -')).stderr).toBe("");
});

test("what was read of a stream is put before a signal ends it, and what was not is in the pipe still", async () => {
  const seq = session.start("seq 1 200000 >feed; echo broken >&2");
  const put = session.start('exec "$baton" pubsub client bob put news --lines <feed');
  await eventually(async () => await pending() > 0, { withinMs: 20_000 });
  const killedMs = performance.now();
  put.child.kill("SIGTERM");
  const { signal, stderr } = await put.ended;
  const tookMs = performance.now() - killedMs;
  expect(signal).toBe("SIGTERM");
  const taken = Number(/(\d+) messages of stdin were put/.exec(stderr)?.[1]);
  // It waits 5 s for what is on its way. A machine that needs longer leaves an unknown outcome, and the put says so.
  const unknown = Number(/the outcome of (\d+) messages? is unknown/.exec(stderr)?.[1] ?? 0);
  if (tookMs < lastRequestsMs) expect([unknown, stderr]).toEqual([0, expect.not.stringContaining("--resume")]);
  const stored = await pending();
  expect(stored).toBeGreaterThanOrEqual(taken);
  expect(stored).toBeLessThanOrEqual(taken + unknown);
  await seq.ended;
});

test("a put that is killed while it waits for more leaves nothing that is unknown", async () => {
  const put = session.start('exec "$baton" pubsub client bob put news --lines <feed');
  const feed = openSync(session.path("feed"), "w");
  writeSync(feed, "one\n");
  await eventually(async () => await pending() === 1, { withinMs: 20_000 });
  put.child.kill("SIGKILL");
  await put.ended;
  closeSync(feed);
  expect(await session.run('echo two | "$baton" pubsub client bob put news -')).toMatchObject({ code: 0, stderr: "" });
});

test("where nobody answers, a signal ends a put at once, and nothing was done", async () => {
  await session.run("seq 1 10 >lines");
  const put = session.start('exec "$baton" pubsub client bob put news --lines lines --proxies tcp://127.0.0.1:9');
  await session.made("state");
  put.child.kill("SIGTERM");
  expect(await put.ended).toMatchObject({ signal: "SIGTERM", stderr: "" });
  expect(await client("bob put news --lines lines --resume")).toMatchObject({ code: 0, stderr: "" });
  expect(await pending()).toBe(10);
});

test("a reader that takes nothing does not keep a get from ending; what was not written comes again", async () => {
  await session.run('seq 1 20000 | "$baton" pubsub client bob put news --lines; mkfifo slow');
  const slow = session.start('sleep 60 <>slow & exec "$baton" pubsub client alice get news --follow >slow');
  // It writes, its state as well, until the pipe is full.
  const written = () => Number(/wchar: (\d+)/.exec(readFileSync(`/proc/${slow.child.pid}/io`, "utf8"))?.[1]);
  let before = 0;
  const stands = () => before > 1_000_000 && written() === before || (before = written(), false);
  await eventually(stands, { what: "the pipe to be full", everyMs: 300, withinMs: 30_000 });
  process.kill(slow.child.pid ?? 0, "SIGTERM");
  await eventually(() => slow.child.signalCode === "SIGTERM", { what: "get to die of it", withinMs: 10_000 });
  const numbers = (await client("alice get news --until-empty")).stdout.trim().split("\n").map(Number);
  const first = numbers[0] ?? 0;
  expect(first).toBeWithin(5000, 20_000);
  expect(numbers).toEqual(Array.from({ length: 20_001 - first }, (_, at) => first + at));
});

test("a reader that goes away ends a get by SIGPIPE, and what was not written comes again", async () => {
  await session.run('seq 1 5000 | "$baton" pubsub client bob put news --lines');
  const script = '{ "$baton" pubsub client alice get news --follow; echo "$?" >code; } | head -1';
  expect(await session.run(script)).toMatchObject({ stdout: "1\n", stderr: "" });
  expect(session.read("code")).toBe("141\n");
  // What is in the pipe has left; all behind it has not.
  const rest = await client("alice get news --until-empty");
  const numbers = rest.stdout.trim().split("\n").map(Number);
  expect(numbers.at(-1)).toBe(5000);
  expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, at) => 5000 - numbers.length + 1 + at));
  expect(numbers[0]).toBeGreaterThan(1);
});
