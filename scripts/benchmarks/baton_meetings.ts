/**
 * Meetings at a barrier by many sessions of one process: baton_meetings.ts SERVERS BARRIER PARTIES MEETINGS.
 * Prints "ready" when all sessions are there, waits for a line on stdin, runs, prints "done".
 */
import { connectToZooKeeper } from "../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../src/protocols/zookeeper/hosts.ts";
import { enterBarrier } from "../../src/coordination/barrier/enter_barrier.ts";

const [servers = "", barrier = "", words = "", meetings = ""] = process.argv.slice(2);
const parties = Number(words);
const clients = await Promise.all(
  Array.from(
    { length: parties },
    () => connectToZooKeeper({ servers: parseZooKeeperServers(servers), sessionTimeoutMs: 30_000 }),
  ),
);
console.log("ready");
await new Promise((resolve) => process.stdin.once("data", resolve));
await Promise.all(clients.map(async (client) => {
  for (let meeting = 0; meeting < Number(meetings); meeting++) {
    const membership = await enterBarrier(client, barrier, { parties });
    await membership.leave();
  }
}));
console.log("done");
await Promise.all(clients.map((client) => client.close()));
process.exit(0);
