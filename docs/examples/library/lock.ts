/**
 * Four tasks hold a lock one after the other, and wait for it in their order:
 *
 *     bun docs/examples/library/lock.ts [SERVERS]        deno run -A docs/examples/library/lock.ts [SERVERS]
 */
import process from "node:process";
import { lock } from "../../../src/library/baton.ts";

const servers = process.argv[2];

async function task(id: number): Promise<void> {
  await lock("resource", async (held) => {
    console.log(`${id} has the lock`);
    await Promise.resolve(); // the work; it stops when held.signal aborts
    console.log(`${id} releases it: ${held.isHeld()}`);
  }, { servers, reason: "the example", wait: 10_000 });
}

await Promise.all([1, 2, 3, 4].map(task));
