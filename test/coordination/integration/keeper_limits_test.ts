/** Everything that can grow has a limit: what happens at each of them. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { connectToZooKeeper as connectClient } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { digestIdentityId } from "../../../src/coordination/keeper/state/acl_check.ts";
import { type Keeper, startKeeper } from "../../../src/coordination/keeper/lifecycle/start_keeper.ts";
import { type KeeperOptions } from "../../../src/coordination/keeper/lifecycle/keeper_server.ts";
import { encodeLengthFrame } from "../../../src/base/wire/length_frame.ts";
import {
  aclPermission,
  createFlag,
  zooKeeperOperations,
} from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { PathWatchRequest, RequestHeader } from "../../../src/protocols/zookeeper/jute/zookeeper_records.ts";
import { connectRequestCodec } from "../../../src/protocols/zookeeper/jute/session_frames.ts";
import { node } from "../conformance/zookeeper_fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { fourLetterWord } from "../../support/four_letter_word.ts";
import { batonCommand } from "../../support/keeper_server.ts";
import { RawClient } from "../../support/raw_client.ts";
import { ServerProcess } from "../../support/server_process.ts";

setDefaultTimeout(30_000);

let root = "";
let keeper: Keeper | null = null;
beforeEach(() => root = mkdtempSync(join(tmpdir(), "baton-limits-")));
afterEach(async () => {
  await keeper?.close();
  rmSync(root, { recursive: true, force: true });
});

const address = () => ({ kind: "unix" as const, path: join(root, "k.sock") });
async function start(options: Partial<KeeperOptions>): Promise<RawClient> {
  keeper = await startKeeper({ dataDir: join(root, "data"), listen: [address()], ...options });
  return await RawClient.connect(address());
}

test("one connection more than allowed is closed, and a place that is given back can be had", async () => {
  const first = await start({ limits: { connectionsMax: 2 } });
  const second = await RawClient.connect(address());
  expect(await RawClient.connect(address()).catch(() => "closed")).toBe("closed");
  await second.close();
  expect(await eventually(() => RawClient.connect(address()))).toBeInstanceOf(RawClient);
  expect((await first.ping()).err).toBe(0);
});

test("connections that open no session do not keep out those that do", async () => {
  const first = await start({ limits: { connectionsMax: 4 } });
  const silent = await Promise.all([1, 2, 3].map(() => RawClient.open(address())));
  const others = [await RawClient.connect(address()), await RawClient.connect(address())];
  await eventually(() => silent[0]?.isClosed && silent[1]?.isClosed);
  expect(silent[2]?.isClosed).toBe(false);
  for (const client of [first, ...others]) expect((await client.ping()).err).toBe(0);
});

test.skipIf(process.platform !== "linux")(
  "a keeper of few descriptors is open to sessions, however many hold them without",
  async () => {
    const words = [
      "-c",
      'ulimit -n 160; exec "$@"',
      "sh",
      ...batonCommand(),
      "keeper",
      "--data-dir",
      join(root, "data"),
    ];
    const server = new ServerProcess(["/bin/sh", ...words], { folder: root });
    try {
      const socket = { kind: "unix" as const, path: join(root, "data/keeper.sock") };
      await eventually(async () => await fourLetterWord(socket, "ruok", 500) === "imok", { withinMs: 15_000 });
      await Promise.all(Array.from({ length: 300 }, () => RawClient.open(socket).catch(() => "closed")));
      const client = await eventually(() => RawClient.connect(socket)); // the others would leave after 10 s
      expect((await client.ping()).err).toBe(0);
    } finally {
      await server.kill();
    }
  },
  30_000,
);

test("where there is no room for a session, one goes that has no connection and owns nothing", async () => {
  const owner = await start({ limits: { sessionsMax: 2 } });
  await owner.call("create", node("/held", { flags: createFlag.ephemeral }));
  await owner.drop();
  const idle = await RawClient.connect(address());
  await idle.drop();
  const next = await RawClient.connect(address());
  const resumed = (client: RawClient) => RawClient.connect(address(), client.hello as object);
  expect((await resumed(idle)).sessionId).toBe(0n);
  const again = await resumed(owner);
  expect(again.sessionId).toBe(owner.sessionId);
  expect((await next.call("exists", { path: "/held", watch: false })).err).toBe(0);
  expect(await RawClient.connect(address()).catch(() => "closed")).toBe("closed");
});

test("who shows one identity after the other is stopped, as with a wrong one", async () => {
  const client = await start({ limits: { identitiesMax: 3 } }); // its address is one
  expect((await client.auth("digest", "a:x")).err).toBe(0);
  expect((await client.auth("digest", "b:x")).err).toBe(0);
  expect((await client.auth("digest", "c:x")).err).toBe(-115);
  await client.closed;
});

test("requests that do not end are let go when all of them together take too much, the oldest first", async () => {
  const client = await start({ limits: { readBufferBytesTotalMax: 2_000_000 } });
  const half = async () => {
    const one = await RawClient.connect(address());
    one.sendBytes(new Uint8Array([0, 0x0c, 0, 0, 1])); // of 786,432 bytes
    await fourLetterWord(address(), "ruok");
    return one;
  };
  const [first, second, third] = [await half(), await half(), await half()];
  await first.closed;
  expect([second.isClosed, third.isClosed]).toEqual([false, false]);
  expect((await client.call("create", node("/a", { data: new Uint8Array(900_000) }))).err).toBe(0);
});

test.each([[0, 1000], [1000, 2009.5], [1000, 2 ** 31], [2000, 1000]])(
  "session timeouts from %d to %d ms are refused at the start",
  async (sessionTimeoutMinMs, sessionTimeoutMaxMs) => {
    const error = await start({ sessionTimeoutMinMs, sessionTimeoutMaxMs }).then(() => null, (thrown) => thrown);
    expect(error).toMatchObject({ code: "CONFIG", message: expect.stringContaining(`${sessionTimeoutMaxMs} ms`) });
  },
);

test("a client that asks for a longer session than can be written gets the longest there is", async () => {
  keeper = await startKeeper({ dataDir: join(root, "data"), listen: [address()] });
  await using zk = await connectClient({ servers: { addresses: [address()], chroot: "" }, sessionTimeoutMs: 2 ** 32 });
  expect(zk.session.timeoutMs).toBe(60_000);
});

test("a burst far over the limit of outstanding requests is answered to the end, in order", async () => {
  const client = await start({ limits: { outstandingRequestsMax: 10 } });
  const replies = await Promise.all(
    Array.from(
      { length: 2000 },
      (_, index) => client.call("create", node(`/n-${index}`, { data: new Uint8Array(200) })),
    ),
  );
  expect(replies.every(({ err }) => err === 0)).toBe(true);
  expect(replies.map(({ xid }) => xid)).toEqual(replies.map(({ xid }) => xid).sort((a, b) => a - b));
});

test("who does not read what he asked for is disconnected, and nobody else notices", async () => {
  const client = await start({ limits: { unsentBytesMax: 1 << 30, unsentBytesCloseMax: 1 << 20 } });
  await client.call("create", node("/large", { data: new Uint8Array(500_000) }));
  const deaf = connect(address().path);
  deaf.on("error", () => {});
  deaf.pause();
  const greeting = {
    protocolVersion: 0,
    lastZxidSeen: 0n,
    timeOut: 10_000,
    sessionId: 0n,
    passwd: null,
    readOnly: false,
  };
  deaf.write(encodeLengthFrame((writer) => connectRequestCodec.write(writer, greeting)));
  for (let xid = 1; xid < 50; xid++) {
    deaf.write(encodeLengthFrame((writer) => {
      RequestHeader.write(writer, { xid, type: zooKeeperOperations.getData.code });
      PathWatchRequest.write(writer, { path: "/large", watch: false });
    }));
  }
  // The other one, and the one that asks.
  const two = async () => (await fourLetterWord(address(), "mntr")).includes("zk_num_alive_connections\t2\n");
  await eventually(two, { what: "the end of the deaf connection" });
  expect((await client.ping()).err).toBe(0);
  deaf.destroy();
});

test("who asks for much at once is answered as fast as he reads, and the keeper does not hold it all", async () => {
  const client = await start({ limits: { unsentBytesMax: 1 << 20 } });
  await client.call("create", node("/large", { data: new Uint8Array(500_000) }));
  const slow = await RawClient.connect(address());
  slow.pause();
  const asked = 200;
  const replies = Promise.all(
    Array.from({ length: asked }, () => slow.call("getData", { path: "/large", watch: false })),
  );
  const received = async () => {
    const session = `sid=0x${slow.hello.sessionId.toString(16)}`;
    const line = (await fourLetterWord(address(), "cons")).split("\n").find((one) => one.includes(session));
    return Number(/recved=(\d+)/.exec(line ?? "")?.[1] ?? 0);
  };
  await eventually(async () => await received() > 1, { what: "the first requests to be answered" });
  expect(await received()).toBeLessThan(20);
  expect((await client.ping()).err).toBe(0);
  slow.resume();
  const xids = (await replies).map(({ err, xid }) => (expect(err).toBe(0), xid));
  expect(xids).toEqual([...xids].sort((a, b) => a - b));
  expect(await received()).toBe(asked + 1);
});

test("one request for more than may be asked for at once ends the connection, and nobody else notices", async () => {
  const client = await start({ limits: { multiReadBytesMax: 1 << 20 } });
  await client.call("create", node("/large", { data: new Uint8Array(500_000) }));
  const greedy = await RawClient.connect(address());
  const large = { type: "getData", path: "/large", watch: false } as const;
  expect((await greedy.multiRead(Array(2).fill(large))).value?.length).toBe(2);
  expect(await greedy.multiRead(Array(3).fill(large)).catch(() => "closed")).toBe("closed");
  expect((await client.ping()).err).toBe(0);
});

test("who is silent instead of opening a session is not kept", async () => {
  let nowMs = 0;
  const timers: { at: number; callback: () => void }[] = [];
  const clock = {
    now: () => nowMs,
    noticeSuspend() {},
    startTimer(delayMs: number, callback: () => void) {
      const timer = { at: nowMs + delayMs, callback };
      timers.push(timer);
      return () => void timers.splice(timers.indexOf(timer), 1);
    },
  };
  await start({ clock });
  const silent = await RawClient.open(address());
  const pass = (ms: number) => {
    nowMs += ms;
    for (const timer of timers.filter(({ at }) => at <= nowMs)) {
      timers.splice(timers.indexOf(timer), 1);
      timer.callback();
    }
  };
  await silent.sendBytes(new Uint8Array([0, 0]));
  await eventually(() => {
    pass(100);
    return silent.isClosed;
  });
  expect(nowMs).toBeGreaterThan(10_000);
});

test("at the end of the create counter contenders with names of their own still come in", async () => {
  const client = await start({ sequenceStart: 0x7fffffff });
  await client.call("create", node("/q"));
  const names = await Promise.all(
    ["a", "b"].map(async (name) =>
      (await client.call("create", node(`/q/${name}-`, { flags: createFlag.ephemeralSequential }))).value?.path
    ),
  );
  expect(names).toEqual(["/q/a-2147483647", "/q/b-2147483647"]);
});

test("the super user is above every ACL", async () => {
  const client = await start({ superDigest: digestIdentityId("super:secret") });
  const acl = [{ perms: aclPermission.read, id: { scheme: "digest", id: "x:y" } }];
  await client.call("create", node("/closed", { acl }));
  expect((await client.call("getData", { path: "/closed", watch: false })).err).toBe(-102);
  await client.auth("digest", "super:secret");
  expect((await client.call("getData", { path: "/closed", watch: false })).err).toBe(0);
});
