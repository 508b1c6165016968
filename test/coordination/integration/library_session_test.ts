/** Where the library's functions find their servers, how long a session stays open, and mistakes of the program. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import {
  acquireLock,
  BatonError,
  breakLock,
  campaign,
  enterBarrier,
  listLocks,
  lock,
  lockStatus,
  openSession,
  runPool,
  setGate,
  waitGate,
  watchLeader,
} from "../../../src/library/baton.ts";
import { HeldLease } from "../../../src/library/held_lease.ts";
import { LocalLease } from "../../../src/base/process/local_lease.ts";
import type { RunningBackend } from "../../support/backend.ts";
import { killKeeper } from "../../support/baton_session.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { eventually } from "../../support/eventually.ts";
import { failureCode } from "../../support/failure_code.ts";
import { FakeClock } from "../../support/fake_clock.ts";
import { startKeeperProcess } from "../../support/keeper_server.ts";

setDefaultTimeout(30_000);

let folder: string;
let keeper: RunningBackend;
beforeAll(async () => keeper = await startKeeperProcess());
afterAll(() => keeper.close());
const before = { ...process.env };
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "baton-library-"));
  for (const name of Object.keys(process.env)) if (name.startsWith("BATON_")) delete process.env[name];
  process.env["XDG_CONFIG_HOME"] = folder;
  process.env["BATON_KEEPER_DIR"] = join(folder, "keeper");
});
afterEach(async () => {
  await killKeeper(join(folder, "keeper"));
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, before);
  rmSync(folder, { recursive: true, force: true });
});

test("servers: the option, else the variable, else the file, else this user's keeper, which is started", async () => {
  const hold = (reason: string, servers?: string) => acquireLock("place", { reason, servers });
  const holderAt = async (servers?: string) => (await lockStatus("place", { servers })).holders[0]?.reason;
  await using _own = await hold("embedded");
  expect(await holderAt("embedded")).toBe("embedded");
  expect(await holderAt(keeper.servers)).toBeUndefined();

  mkdirSync(join(folder, "baton"));
  writeFileSync(join(folder, "baton/config.toml"), `servers = "${keeper.servers}"\nroot = "/in-file"\n`);
  await using session = openSession();
  await using _inFile = await acquireLock("place", { reason: "file", session });
  expect((await lockStatus("place", { session })).path).toBe("/in-file/locks/place");

  process.env["BATON_SERVERS"] = keeper.servers;
  process.env["BATON_ROOT"] = "/in-variable";
  await using other = openSession();
  expect((await lockStatus("place", { session: other })).path).toBe("/in-variable/locks/place");
  expect((await lockStatus("place", { root: "/in-option" })).path).toBe("/in-option/locks/place");

  writeFileSync(join(folder, "baton/config.toml"), "servers = 7\n");
  expect(await failureCode(lockStatus("place", { session: openSession() }))).toBe("CONFIG");
});

test("a session is closed when nothing is held and no call waits, and opened again", async () => {
  const [node] = keeper.nodes;
  if (node === undefined) throw new Error("no server");
  const proxy = await ChaosProxy.start(node.address);
  const session = openSession({ servers: proxy.servers });
  const held = await acquireLock("a", { session });
  expect(await failureCode(lock("a", () => {}, { session, wait: "none" }))).toBe("LOCK_BUSY");
  await held.release();
  await eventually(() => proxy.connections === 0);
  const changes = watchLeader("e", { session });
  expect((await changes.next()).value).toEqual({ kind: "vacant" });
  await eventually(() => proxy.connections === 0);
  const next = changes.next();
  await campaign("e", "me", { session });
  expect((await next).value).toMatchObject({ kind: "elected" });
  expect(proxy.counts.connections).toBe(3);
  await session.close();
  await proxy.close();
});

test("a lock that is lost while its session lives on is given back once, and is not waited for", async () => {
  const clock = new FakeClock();
  const lost = new AbortController();
  let releases = 0;
  const lease = Object.assign(new LocalLease(clock, 1000), {
    lost: lost.signal,
    release: () => Promise.resolve(void releases++),
  });
  let ends = 0;
  const held = new HeldLease(lease, { closed: new AbortController().signal, ended: () => ends++ });
  // An operator breaks the lock: it is held until the work has ended.
  lost.abort(new BatonError("REVOKED", "Lock was revoked"));
  expect([held.signal.aborted, held.isHeld(), releases]).toEqual([true, true, 0]);
  await clock.advance(1000);
  expect(await failureCode(held.release())).toBe("REVOKED");
  await held[Symbol.asyncDispose]();
  expect([held.isHeld(), releases, ends]).toEqual([false, 1, 1]);
});

const untyped = (value: unknown) => value as never;

/** A mistake, and what its message names: the argument, the value, and what was expected. */
const mistakes: readonly (readonly [mistake: () => Promise<unknown>, words: readonly string[]])[] = [
  [() => lock(untyped(undefined), () => {}), ["the name is undefined", "expected text"]],
  [() => lock("", () => {}), ['""', "it is empty"]],
  [() => lock("a", untyped({ wait: 1 }), untyped(() => {})), ["the work is an Object", "expected a function"]],
  [() => lock("a", () => {}, untyped(null)), ["the last argument is null", "an object with options"]],
  [() => lock("a", () => {}, { wait: untyped("5s") }), ['wait is "5s"', 'milliseconds, "none" or "forever"']],
  [() => lock("a", () => {}, { wait: Number.NaN }), ["wait is NaN"]],
  [() => lock("a", () => {}, untyped({ server: "zk1" })), ['no option "server"', 'did you mean "servers"?']],
  [() => lock("a", () => {}, { servers: untyped(["zk1"]) }), ["servers is an Array", "expected text"]],
  [() => lock("a", () => {}, { servers: "zk1:none" }), ["servers:", '"zk1:none"', "host:port"]],
  [() => lock("a", () => {}, { root: "baton" }), ["root:", '"baton"', "slash"]],
  [() => lock("a", () => {}, { session: untyped({}) }), ["session is an Object", "openSession"]],
  [() => lock("a", () => {}, { session: openSession(), servers: "zk1" }), ["servers", "openSession"]],
  [() => lock("a", () => {}, { signal: untyped(new AbortController()) }), ["signal is an AbortController"]],
  [() => lock("a", () => {}, { priority: untyped("high") }), ['priority is "high"', '"foreground" or "background"']],
  [() => lock("a", () => {}, { permits: 2, shared: true }), ["permits", "shared"]],
  [() => campaign("a", untyped({})), ["the value is an Object", "expected text"]],
  [() => campaign("a", ""), ["value", "empty"]],
  [() => watchLeader("a", { wait: untyped("none") }).next(), ['wait is "none"', '"forever"']],
  [() => enterBarrier("a", untyped("2")), ['the number of parties is "2"', "a whole number from 1"]],
  [() => enterBarrier("a", 2, { onMemberLost: untyped("break") }), ['onMemberLost is "break"', '"fail" or "wait"']],
  [() => setGate("a", { reason: untyped(1) }), ["reason is 1"]],
  [() => waitGate(untyped(7)), ["the name is 7"]],
  [() => runPool("a", untyped("b"), () => {}), ['items is "b"', "an array of texts"]],
  [() => runPool("a", [untyped(1)], () => {}), ["items[0] is 1", "expected text"]],
  [() => runPool("a", ["b"], () => {}, { jobs: 0 }), ["jobs is 0", "a whole number from 1"]],
  [() => breakLock("a", { holder: untyped(null) }), ["holder is null"]],
  [() => listLocks({ wait: untyped("forever") }), ['wait is "forever"', "a number of milliseconds"]],
  [() => Promise.resolve().then(() => openSession({ sessionTimeoutMs: 5 })), ["sessionTimeoutMs", "2s"]],
  [() => Promise.resolve().then(() => openSession({ tls: untyped({ cafile: "x" }) })), ['no option "cafile"']],
  [() => lock("a", () => {}, { session: openSession({ acl: ["all"] }) }), ["acl:", '"all"']],
  [() => lock("a", () => {}, { session: openSession({ servers: "zk1", tls: { ca: "none.pem" } }) }), [
    "ca:",
    "none.pem",
  ]],
];

for (const [mistake, words] of mistakes) {
  test(`a mistake of the program is named: ${words.join(", ")}`, async () => {
    const thrown = await mistake().then(() => null, (error: unknown) => error);
    expect(thrown).toBeInstanceOf(BatonError);
    expect(thrown).toMatchObject({ code: "USAGE" });
    for (const word of words) expect(String(thrown)).toContain(word);
  });
}
