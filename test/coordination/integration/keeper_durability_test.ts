/** kill -9 at moments that chance decides: what was acknowledged is there afterwards, what is there was asked for. */
import { afterEach, expect, test } from "bun:test";
import { createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { bytes, node, text } from "../conformance/zookeeper_fixture.ts";
import type { RunningBackend } from "../../support/backend.ts";
import { eventually } from "../../support/eventually.ts";
import { startKeeperProcess } from "../../support/keeper_server.ts";
import { seededRandom, testSeed } from "../../support/random.ts";
import { RawClient } from "../../support/raw_client.ts";

const seed = testSeed();
const timing = { tickTimeMs: 200, sessionTimeoutMinMs: 600, sessionTimeoutMaxMs: 20_000 };

let keeper: RunningBackend | null = null;
afterEach(async () => {
  await keeper?.close();
  keeper = null;
});

async function start(): Promise<{ keeper: RunningBackend; connect: (options?: object) => Promise<RawClient> }> {
  const running = keeper = await startKeeperProcess(timing);
  const [server] = running.nodes;
  if (server === undefined) throw new Error("The keeper has no node");
  return { keeper: running, connect: (options = {}) => RawClient.connect(server.address, options) };
}

test(`no acknowledged write is lost, whenever the keeper is killed [BATON_SEED=${seed}]`, async () => {
  const { keeper, connect } = await start();
  const random = seededRandom(seed);
  const acknowledged = new Map<string, bigint>();
  const asked = new Set<string>(["zookeeper"]);
  const sessions: { sessionId: bigint; passwd: Uint8Array }[] = [];
  const writers = 16;
  let lastZxid = 0n;
  for (let round = 0; round < 8; round++) {
    const client = await connect();
    if (client.hello.passwd !== null) sessions.push({ sessionId: client.sessionId, passwd: client.hello.passwd });
    const killAfter = 1 + Math.floor(random() * 200);
    let answers = 0;
    let killed: Promise<void> | null = null;
    const writer = async (first: number) => {
      for (let index = first; killed === null; index += writers) {
        const name = `r${round}-${index}`;
        asked.add(name);
        const flags = index % 3 === 0 ? createFlag.ephemeral : createFlag.persistent;
        const reply = await client.call("create", node(`/${name}`, { flags }));
        acknowledged.set(name, reply.zxid);
        expect(reply.zxid).toBeGreaterThan(lastZxid);
        lastZxid = reply.zxid;
        if (++answers === killAfter) killed = keeper.kill();
      }
    };
    const writes = Array.from({ length: writers }, (_, first) =>
      writer(first).catch((error) => {
        if (!client.isClosed) throw error; // an answer was lost: that write may be there or not
      }));
    await Promise.all(writes);
    await killed;
    await keeper.restart();
  }

  // Every session had a client that heard of it, so every one is there, with its ephemerals and a full timeout.
  const resumed = await Promise.all(sessions.map((session) => connect(session)));
  expect(resumed.map(({ sessionId }) => sessionId)).toEqual(sessions.map(({ sessionId }) => sessionId));
  const { value } = await (resumed[0] ?? await connect()).call("getChildren", { path: "/", watch: false });
  const found = new Set(value?.children);
  expect([...acknowledged.keys()].filter((name) => !found.has(name))).toEqual([]);
  expect([...found].filter((name) => !asked.has(name))).toEqual([]);
}, 60_000);

test("data, versions and counters are the same after a kill", async () => {
  const { keeper, connect } = await start();
  const before = await connect();
  await before.call("create", node("/a"));
  await before.call("create", node("/a/s-", { flags: createFlag.persistentSequential }));
  await before.call("delete", { path: "/a/s-0000000000", version: -1 });
  await before.call("setData", { path: "/a", data: bytes("second"), version: 0 });
  const stat = (await before.call("getData", { path: "/a", watch: false })).value;
  await keeper.kill();
  await keeper.restart();
  const after = await connect();
  expect((await after.call("getData", { path: "/a", watch: false })).value).toEqual(stat);
  expect(text(stat?.data ?? null)).toBe("second");
  const next = await after.call("create", node("/a/s-", { flags: createFlag.persistentSequential }));
  expect(next.value?.path).toBe("/a/s-0000000001");
}, 30_000);

test("after a restart a session has its whole timeout again, and ends when nobody comes", async () => {
  const { keeper, connect } = await start();
  const gone = await connect({ timeoutMs: 1000 });
  await gone.call("create", node("/held", { flags: createFlag.ephemeral }));
  await keeper.kill();
  await keeper.restart();
  const serving = performance.now();
  const watcher = await connect();
  const exists = async () => (await watcher.call("exists", { path: "/held", watch: false })).err === 0;
  expect(await exists()).toBe(true);
  await eventually(async () => !await exists(), { what: "the end of the session" });
  // It was restored a little before it served.
  expect(performance.now() - serving).toBeGreaterThan(700);
}, 30_000);

test("a keeper that was stopped longer than the timeout takes no session's time", async () => {
  const { keeper, connect } = await start();
  const holder = await connect({ timeoutMs: 1000 });
  await holder.call("create", node("/held", { flags: createFlag.ephemeral }));
  keeper.pause();
  const pausedMs = performance.now();
  await eventually(() => performance.now() - pausedMs > 2500, { what: "a stop of more than the timeout" });
  keeper.resume();
  const resumedMs = performance.now();
  const other = await connect();
  // Nothing is heard of the holder before the keeper has looked at its sessions a few times.
  await eventually(async () => {
    expect((await other.call("exists", { path: "/held", watch: false })).err).toBe(0);
    return performance.now() - resumedMs > 400;
  });
  expect((await holder.ping()).err).toBe(0);
}, 30_000);
