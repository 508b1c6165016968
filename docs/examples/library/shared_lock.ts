/**
 * Four tasks of one process share a lock object and hold the lock one after the other:
 *
 *     bun docs/examples/library/shared_lock.ts SERVERS        deno run -A docs/examples/library/shared_lock.ts SERVERS
 */
import process from "node:process";
import { Lock, parseServers } from "../../../src/library/baton.ts";

const servers = parseServers(process.argv[2] ?? "127.0.0.1:2181");
const lock = new Lock({ servers }, "resource", { reason: "the example", wait: 10_000 });

async function task(id: number): Promise<void> {
  await lock.acquire();
  try {
    console.log(`${id} has the lock`);
    await Promise.resolve(); // the work
    console.log(`${id} releases it`);
  } finally {
    await lock.release();
  }
}

await Promise.all([1, 2, 3, 4].map(task));
await lock.destroy();
