/**
 * Connections that open no session, from the address of good clients: these are let in, and no session is closed for
 * it.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { keeperLimitsDefault } from "../../../src/coordination/keeper/state/keeper_limits.ts";
import { startKeeper } from "../../../src/coordination/keeper/lifecycle/start_keeper.ts";
import type { Address } from "../../../src/base/sockets/connection.ts";
import { encodeLengthFrame } from "../../../src/base/wire/length_frame.ts";
import { createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { connectRequestCodec } from "../../../src/protocols/zookeeper/jute/session_frames.ts";
import { node } from "../conformance/zookeeper_fixture.ts";
import type { RunningBackend } from "../../support/backend.ts";
import { eventually } from "../../support/eventually.ts";
import { batonCommand, startKeeperProcess } from "../../support/keeper_server.ts";
import { RawClient } from "../../support/raw_client.ts";

setDefaultTimeout(60_000);

let keeper: RunningBackend;
let flood: ChildProcess | null = null;
beforeEach(async () => {
  keeper = await startKeeperProcess();
});
afterEach(async () => {
  flood?.kill("SIGKILL");
  flood = null;
  await keeper.close();
});

const address = () => keeper.nodes[0]?.address as Address & { kind: "tcp" };
const silentMax = keeperLimitsDefault.connectionsPerAddressMax;

/** The first bytes of a request for a session. */
function beginning(length: number): Uint8Array {
  const hello = {
    protocolVersion: 0,
    lastZxidSeen: 0n,
    timeOut: 10_000,
    sessionId: 0n,
    passwd: new Uint8Array(16),
    readOnly: false,
  };
  return encodeLengthFrame((writer) => connectRequestCodec.write(writer, hello)).subarray(0, length);
}

async function holder(): Promise<RawClient> {
  const client = await RawClient.connect(address(), { timeoutMs: 4_000 });
  await client.call("create", node("/held", { flags: createFlag.ephemeral }));
  return client;
}

function lock(name: string): { status: number | null; stderr: string } {
  const [program = "", ...args] = batonCommand();
  const words = [...args, "lock", "-w", "20s", name, "--", "true"];
  return spawnSync(program, words, { env: { ...process.env, BATON_SERVERS: keeper.servers }, encoding: "utf8" });
}

test.each([0, 3, 20])(
  "beside as many as an address may have, which have sent %d bytes, a lock is had",
  async (sent) => {
    const held = await holder();
    const silent: RawClient[] = [];
    while (silent.length < silentMax) {
      silent.push(...await Promise.all(Array.from({ length: 100 }, () => RawClient.open(address()))));
    }
    for (const one of silent) one.sendBytes(beginning(sent));
    expect(lock("good")).toMatchObject({ status: 0, stderr: "" });
    // The oldest went for those of the lock, and no more than these.
    await eventually(() => silent[0]?.isClosed);
    expect(silent.filter((one) => !one.isClosed).length).toBeGreaterThan(silentMax - 50);
    expect(await held.call("exists", { path: "/held", watch: false })).toMatchObject({ err: 0 });
    await Promise.all([...silent, held].map((one) => one.drop()));
  },
);

test.each([0, 20])("beside a flood of connections that send %d bytes each good client is let in soon", async (sent) => {
  const held = await holder();
  const program = join(import.meta.dirname, "../../support/connection_flood.ts");
  const words = [program, String(address().port), String(2 * silentMax), Buffer.from(beginning(sent)).toString("hex")];
  const child = flood = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout?.on("data", (chunk: Uint8Array) => said += chunk.toString());
  await eventually(async () => {
    await held.ping();
    return said.includes("at work");
  }, { withinMs: 30_000 });
  const tries: number[] = [];
  for (let round = 0; round < 20; round++) {
    let count = 1;
    for (;; count++) {
      const client = await RawClient.connect(address()).catch(() => null);
      await held.ping();
      if (client === null) continue;
      await client.close();
      break;
    }
    tries.push(count);
  }
  console.log(`tries with ${sent} bytes: ${tries.join(" ")}`);
  expect(Math.max(...tries)).toBeLessThanOrEqual(3);
  expect(lock("good")).toMatchObject({ status: 0 });
  expect(await held.call("exists", { path: "/held", watch: false })).toMatchObject({ err: 0 });
  expect(child.exitCode).toBeNull();
});

test("an address that has as many sessions as it may keeps all, has none more, and may move one", async () => {
  const root = mkdtempSync(join(tmpdir(), "baton-silent-"));
  using _removed = { [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }) };
  await using small = await startKeeper({
    dataDir: join(root, "data"),
    listen: [{ kind: "tcp", host: "127.0.0.1", port: 0 }],
    limits: { connectionsPerAddressMax: 3 },
  });
  const at = small.addresses[0] as Address;
  const clients = [];
  for (let count = 0; count < 3; count++) clients.push(await RawClient.connect(at));
  for (let count = 0; count < 5; count++) await expect(RawClient.connect(at)).rejects.toThrow("closed the connection");
  const [first] = clients;
  const moved = await RawClient.connect(at, first?.hello as object);
  expect(moved.sessionId).toBe(first?.sessionId ?? 0n);
  await first?.closed;
  clients[0] = moved;
  for (const client of clients) expect((await client.ping()).err).toBe(0);
  await clients[1]?.close();
  const another = await eventually(() => RawClient.connect(at));
  expect((await another.ping()).err).toBe(0);
});
