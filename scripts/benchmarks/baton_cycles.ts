/**
 * Acquire–release cycles by many sessions of one process: baton_cycles.ts SERVERS LOCK SESSIONS CYCLES.
 * Prints "ready" when all sessions are there, waits for a line on stdin, runs, prints "done".
 */
import { connectToZooKeeper } from "../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../src/protocols/zookeeper/hosts.ts";
import { acquireLock } from "../../src/coordination/lock/acquire_lock.ts";

const [servers = "", lock = "", sessions = "", cycles = ""] = process.argv.slice(2);
const clients = await Promise.all(
  Array.from(
    { length: Number(sessions) },
    () => connectToZooKeeper({ servers: parseZooKeeperServers(servers), sessionTimeoutMs: 30_000 }),
  ),
);
console.log("ready");
await new Promise((resolve) => process.stdin.once("data", resolve));
await Promise.all(clients.map(async (client) => {
  for (let cycle = 0; cycle < Number(cycles); cycle++) {
    await using _lease = await acquireLock(client, lock, {});
  }
}));
console.log("done");
await Promise.all(clients.map((client) => client.close()));
process.exit(0);
