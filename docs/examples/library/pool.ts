/**
 * Two pools share a list; each item runs once, in one of them:
 *
 *     bun docs/examples/library/pool.ts SERVERS        deno run -A docs/examples/library/pool.ts SERVERS
 */
import process from "node:process";
import { parseServers, Pool } from "../../../src/library/baton.ts";

const servers = parseServers(process.argv[2] ?? "127.0.0.1:2181");
const items = Array.from({ length: 12 }, (_, index) => `batch ${index + 1}`);
const began: string[] = [];

await using pool = new Pool({ servers }, `import-${process.pid}`, {
  jobs: 2,
  loop: true,
  wait: 10_000,
  doneTtlMs: 60_000,
  retries: 1,
});

async function importBatch(batch: string, attempt: number): Promise<void> {
  await Promise.resolve(); // the work; it stops when the `lost` of the lease aborts
  if (batch === "batch 5" && attempt === 1) throw new Error("succeeds only at the second try");
  began.push(batch);
}

const work = () => pool.run(items, (batch, { attempt }) => importBatch(batch, attempt));
const [one, other] = await Promise.all([work(), work()]);

console.log(`once each: ${began.length === 12 && new Set(began).size === 12}`);
console.log(`done: ${one.done + other.done}, failed: ${one.failed + other.failed}`);
console.log(`all items are done: ${(await pool.status(items)).items.every(({ state }) => state === "done")}`);
await pool.clear();
