import { expect, test } from "bun:test";
import { eventually } from "../../../support/eventually.ts";
import { againUnlessShown } from "./attempts.ts";

const late = 'victim ended with 83, saying ""; the lock should have been kept';
const unsafe = "two holders at once for 3 ms";

/** Blocks this process, as a machine that stands still does. */
function standStill(): void {
  const endMs = performance.now() + 600;
  while (performance.now() < endMs) { /* no processor for anybody else here */ }
}

for (
  const [what, { failures, stands = false, isServed = true }, attempts] of [
    ["without a failure is not repeated", { failures: [], stands: true }, 1],
    ["that is late on a machine that stood still is repeated, twice", { failures: [late], stands: true }, 3],
    ["that is late on another machine has failed", { failures: [late] }, 1],
    ["that breaks a promise has failed, wherever", { failures: [late, unsafe], stands: true }, 1],
    ["whose servers commit nothing is repeated, twice", { failures: [late], isServed: false }, 3],
  ] as const
) {
  test(`a round ${what}`, async () => {
    let runs = 0;
    const result = await againUnlessShown(1, async () => {
      runs++;
      if (stands) standStill();
      let looks = 0;
      await eventually(() => looks++ > 2); // timers run between two looks
      return { result: { failures }, isServed };
    });
    expect(runs).toBe(attempts);
    expect(result.failures).toEqual([...failures]);
  });
}
