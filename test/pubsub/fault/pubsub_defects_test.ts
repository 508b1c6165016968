/**
 * The judge is judged: each defect of the paper's program, put back, is seen in its scene. `BATON_DOSE=full` plays the
 * scenes without the defect as well: then nothing is wrong.
 */
import { beforeAll, expect, test } from "bun:test";
import { isFullDose } from "../../support/dose.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { defects, slowDefect } from "./pubsub/defects/defects.ts";
import { type DefectResult, runDefects } from "./pubsub/defects/run_defects.ts";

const allMsMax = 5 * 60_000;
/** Most of a scene is waiting for processes to start. */
const parallel = 3;

describeWithPeer("cc", "defects of the paper's program", () => {
  let results: readonly DefectResult[] = [];
  beforeAll(async () => {
    results = await runDefects({ controls: isFullDose, parallel });
  }, allMsMax);

  for (const { number, what } of [...defects, slowDefect]) {
    test(`${number}, ${what}: it is caught`, () => {
      const result = results.find((each) => each.what === what);
      expect(result).toMatchObject({ number, caught: expect.any(String), alarm: null });
    });
  }
});
