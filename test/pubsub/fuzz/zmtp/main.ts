/**
 * `scripts/fuzz zmtp [--frames N] [--seed S]`: random streams into the ZMTP state machine; prints figures and the seed.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { seededRandom } from "../../../support/random.ts";
import { runFuzz } from "./campaign.ts";
import { type Cost, frameCost, manyFramesCost } from "./cost.ts";

const { values } = parseArgs({ options: { frames: { type: "string" }, seed: { type: "string" } } });
const frames = Number(values.frames ?? 10_000_000);
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
if (!Number.isSafeInteger(frames) || !Number.isSafeInteger(seed)) throw new Error("--frames and --seed take a number");
console.log(
  `zmtp fuzz: ${frames} frames, seed ${seed} (the same again: scripts/fuzz zmtp --frames ${frames} --seed ${seed})`,
);

const rss = () => process.memoryUsage.rss();
const random = seededRandom(seed);
const doses = 10;
const startMs = performance.now();
let baselineBytes = 0;
for (let dose = 1; dose <= doses; dose++) {
  const figures = runFuzz({ random, frames: Math.ceil(frames / doses) });
  if (dose === 1) baselineBytes = rss();
  console.log(`${dose}/${doses}: ${JSON.stringify(figures)} rss ${Math.round(rss() / 2 ** 20)} MiB`);
}
const seconds = (performance.now() - startMs) / 1000;
const grownMiB = (rss() - baselineBytes) / 2 ** 20;
console.log(`${Math.round(frames / seconds)} frames/s with their making; memory grew by ${grownMiB.toFixed(0)} MiB`);
let failed = grownMiB > 128;
if (failed) console.log("FAILED: memory has grown with the number of frames");

/** Four times the bytes may take no more than eight times as long; the machine is noisy. */
function judgeCost(name: string, small: Cost, large: Cost): void {
  const perByte = (cost: Cost) => cost.ms / cost.bytes * 1e6;
  const ratio = perByte(large) / perByte(small);
  console.log(
    `${name}: ${(large.bytes / 2 ** 20).toFixed(0)} MiB in ${large.ms.toFixed(0)} ms, ` +
      `${perByte(large).toFixed(2)} ns per byte, ${ratio.toFixed(2)} × that of a quarter`,
  );
  if (ratio <= 2) return;
  failed = true;
  console.log("FAILED: the cost grows faster than the length");
}
const MiB = 2 ** 20;
/** The machine is noisy: the best of three. */
function best(measure: () => Cost): Cost {
  return [measure(), measure(), measure()].reduce((least, cost) => cost.ms < least.ms ? cost : least);
}
for (const [name, chunkBytes] of [["1 byte", 1], ["1 KiB", 1024], ["64 KiB", 65_536]] as const) {
  const cost = (bytes: number) => best(() => frameCost(bytes, chunkBytes));
  judgeCost(`one frame in chunks of ${name}`, cost(16 * MiB), cost(64 * MiB));
}
const many = (frames: number) => best(() => manyFramesCost(frames, 0));
judgeCost("empty frames in one chunk", many(500_000), many(2_000_000));
console.log(failed ? "failed" : "passed");
process.exitCode = failed ? 1 : 0;
