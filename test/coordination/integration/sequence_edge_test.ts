import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { startKeeper } from "../../../src/coordination/keeper/lifecycle/start_keeper.ts";
import { lockPath } from "../../../src/coordination/nodes/node_paths.ts";
import { formatAddress } from "../../../src/base/sockets/connection.ts";
import { startCounterEdgeServer } from "../../support/counter_edge_server.ts";
import { LockCrew } from "../../support/lock_crew.ts";
import { describeWithPeer } from "../../support/peers.ts";

/** Where ZooKeeper's sequence counter sticks. */
const counterMax = 2 ** 31 - 1;

/** 40 acquisitions by eight sessions, more than enough to pass the edge. */
async function passTheEdge(crew: LockCrew, mode: "exclusive" | "permit"): Promise<void> {
  const clients = await crew.clients(8);
  const options = mode === "permit" ? { mode, limit: 2 } : { mode };
  await Promise.all(clients.map(async (zk) => {
    for (let round = 0; round < 5; round++) {
      await crew.hold(zk, mode, options, async () => void await zk.exists(crew.root));
    }
  }));
  expect(crew.tokens.length).toBe(40);
  expect(crew.holdersMax).toBeLessThanOrEqual(mode === "permit" ? 2 : 1);
  expect(new Set(crew.tokens).size).toBe(40);
}

describe.each(["exclusive", "permit"] as const)("a lock (%s) at the end of the sequence counter", (mode) => {
  const claim = "is held by as many as it may be, and nobody is stuck";

  test(`on the keeper ${claim}`, async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "baton-edge-"));
    await using keeper = await startKeeper({
      dataDir,
      listen: [{ kind: "tcp", host: "127.0.0.1", port: 0 }],
      sequenceStart: counterMax - 10,
    });
    const [address = { kind: "unix", path: "/" }] = keeper.addresses;
    await using crew = new LockCrew(formatAddress(address));
    await passTheEdge(crew, mode);
    rmSync(dataDir, { recursive: true });
  }, 30_000);

  describeWithPeer("jdk", "Apache ZooKeeper", () => {
    test(claim, async () => {
      await using server = await startCounterEdgeServer();
      await using crew = new LockCrew(server.servers);
      await using zk = await connectToZooKeeper({ servers: parseZooKeeperServers(server.servers) });
      const { queue } = lockPath(mode, crew.root);
      await crew.hold(zk, mode, mode === "permit" ? { mode, limit: 2 } : {}, async () => {
        await server.setCounter(queue, counterMax - 10);
      });
      crew.tokens.length = 0;
      await passTheEdge(crew, mode);
      // The edge was passed: another contender's node has the last number there is.
      const { path: last } = await zk.create(`${queue}/x-`, new Uint8Array(0), { mode: "ephemeralSequential" });
      expect(last).toBe(`${queue}/x-${counterMax}`);
    }, 30_000);
  });
});
