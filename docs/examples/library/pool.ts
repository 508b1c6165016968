/**
 * Two runs share a list; each item runs once, in one of them:
 *
 *     bun docs/examples/library/pool.ts [SERVERS]        deno run -A docs/examples/library/pool.ts [SERVERS]
 */
import process from "node:process";
import { runPool } from "../../../src/library/baton.ts";

const servers = process.argv[2];
const items = Array.from({ length: 12 }, (_, index) => `batch ${index + 1}`);
const ended: string[] = [];

async function importBatch(batch: string, attempt: number): Promise<void> {
  await Promise.resolve(); // the work; it stops when held.signal aborts
  if (batch === "batch 5" && attempt === 1) throw new Error("succeeds only at the second try");
  ended.push(batch);
}

const options = { servers, jobs: 2, wait: 10_000, doneTtlMs: 60_000, retries: 1 };
const run = () => runPool(`import-${process.pid}`, items, (batch, { attempt }) => importBatch(batch, attempt), options);
const [one, other] = await Promise.all([run(), run()]);

console.log(`once each: ${ended.length === 12 && new Set(ended).size === 12}`);
console.log(`done: ${one.done + other.done}, failed: ${one.failed + other.failed}`);
