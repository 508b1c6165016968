/** A disk that takes seconds: whoever asks for nothing from it does not notice, and nobody's session pays for it. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Keeper, startKeeper } from "../../../src/coordination/keeper/lifecycle/start_keeper.ts";
import { createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { node } from "../conformance/zookeeper_fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { fourLetterWord } from "../../support/four_letter_word.ts";
import { QuietTime } from "../../support/quiet_time.ts";
import { RawClient } from "../../support/raw_client.ts";

let root = "";
let keeper: Keeper | null = null;
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "baton-slow-"));
  keeper = await startKeeper({ dataDir: join(root, "data"), listen: [address()], tickTimeMs: 100 });
});
afterEach(async () => {
  await keeper?.close();
  rmSync(root, { recursive: true, force: true });
});

const address = () => ({ kind: "unix" as const, path: join(root, "k.sock") });
const connect = (options = {}) => RawClient.connect(address(), options);

/** Commits wait for as long as somebody else is in the middle of a transaction. */
function holdDisk(): () => void {
  const other = new DatabaseSync(join(root, "data/keeper.sqlite"));
  other.exec("BEGIN IMMEDIATE");
  return () => {
    other.exec("ROLLBACK");
    other.close();
  };
}

test("pings are answered, writes and what has seen them are not, and silence costs no session", async () => {
  const [writer, reader, pinger, silent] = [
    await connect(),
    await connect(),
    await connect(),
    await connect({ timeoutMs: 1000 }),
  ];
  await silent.call("create", node("/held", { flags: createFlag.ephemeral }));
  const release = holdDisk();
  const startMs = performance.now();
  let written = false;
  let seen = false;
  const write = writer.call("create", node("/a")).then(() => written = true);
  await pinger.ping();
  const read = reader.call("exists", { path: "/a", watch: false }).then((reply) => seen = reply.err === 0);
  let slowestMs = 0;
  await eventually(async () => {
    const quiet = new QuietTime();
    await pinger.ping();
    slowestMs = Math.max(slowestMs, quiet.ms);
    return performance.now() - startMs > 2500;
  });
  expect([written, seen]).toEqual([false, false]);
  expect(slowestMs).toBeLessThan(2000); // the disk is held for longer
  release();
  await Promise.all([write, read]);
  expect([written, seen]).toEqual([true, true]);
  expect((await silent.ping()).err).toBe(0);
  expect((await pinger.call("exists", { path: "/held", watch: false })).err).toBe(0);
}, 30_000);

test(
  "a session that moves meanwhile is welcomed at once, and its old connection's write is not done twice or lost",
  async () => {
    const old = await connect();
    const { sessionId, passwd } = old.hello;
    const release = holdDisk();
    const lost = old.call("create", node("/s-", { flags: createFlag.ephemeralSequential })).catch(() => "lost");
    await eventually(async () => (await fourLetterWord(address(), "cons")).includes("queued=1"));
    const moved = await connect({ sessionId, passwd });
    expect(moved.sessionId).toBe(sessionId);
    expect((await moved.ping()).err).toBe(0);
    await old.closed;
    release();
    expect(await lost).toBe("lost");
    const { value } = await moved.call("getChildren", { path: "/", watch: false });
    expect(value?.children?.sort()).toEqual(["s-0000000000", "zookeeper"]);
  },
  30_000,
);
