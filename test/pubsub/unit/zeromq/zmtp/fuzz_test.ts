import { expect, test } from "bun:test";
import { runFuzz } from "../../../fuzz/zmtp/campaign.ts";
import { frameCost } from "../../../fuzz/zmtp/cost.ts";
import { seededRandom, testSeed } from "../../../../support/random.ts";

const seed = testSeed();

test(`random streams give messages or one protocol error [BATON_SEED=${seed}]`, () => {
  const figures = runFuzz({ random: seededRandom(seed), frames: 20_000 });
  expect(figures.messages).toBeGreaterThan(1000);
  // What damage leads to in every such run; other errors are rarer.
  expect(Object.keys(figures.errors)).toEqual(expect.arrayContaining(["FRAME", "GREETING", "LIMIT"]));
}, 20_000);

test("a frame that comes in single bytes costs no more per byte the longer it is", () => {
  frameCost(1 << 18, 1);
  const small = Math.min(frameCost(1 << 18, 1).ms, frameCost(1 << 18, 1).ms);
  // 16 times as long: a cost that grows with the square would be 256 times as high.
  expect(frameCost(1 << 22, 1).ms / small).toBeLessThan(64);
}, 20_000);
