/**
 * Three participants meet twice; none starts the second round before all have finished the first:
 *
 *     bun docs/examples/library/barrier.ts [SERVERS]        deno run -A docs/examples/library/barrier.ts [SERVERS]
 */
import process from "node:process";
import { enterBarrier } from "../../../src/library/baton.ts";

const servers = process.argv[2];

async function participant(): Promise<void> {
  for (const round of [1, 2]) {
    const held = await enterBarrier("meeting", 3, { servers, wait: 60_000 });
    console.log(`round ${round}: ${held.rank + 1} of ${held.size}`);
    await held.leave();
  }
}

await Promise.all([participant(), participant(), participant()]);
