/**
 * Three participants meet twice; none starts the second round before all have finished the first:
 *
 *     bun docs/examples/library/barrier.ts SERVERS        deno run -A docs/examples/library/barrier.ts SERVERS
 */
import process from "node:process";
import { Barrier, parseServers } from "../../../src/library/baton.ts";

const servers = parseServers(process.argv[2] ?? "127.0.0.1:2181");
await using barrier = new Barrier({ servers }, "meeting", 3);

async function participant(): Promise<void> {
  for (const round of [1, 2]) {
    await barrier.pass(({ rank, size }) => console.log(`round ${round}: ${rank + 1} of ${size}`));
  }
}

await Promise.all([participant(), participant(), participant()]);
