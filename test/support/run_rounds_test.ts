import { expect, test } from "bun:test";
import { runRounds } from "./run_rounds.ts";

const late = 'victim ended with 79, saying ""; the lock should have been kept';
const unsafe = "two holders at once for 3 ms";
const crashed = 'victim ended with 70, saying ""; the lock should have been kept';

for (
  const [what, { parallel, attempts }, runs, failures] of [
    ["without a failure runs once", { parallel: 2, attempts: [[]] }, 1, []],
    ["that is late beside others, and not alone, has passed", { parallel: 2, attempts: [[late], [], []] }, 3, []],
    ["that is late alone, too, has failed", { parallel: 2, attempts: [[late], [], [late]] }, 3, [late]],
    ["that breaks a promise alone has failed", { parallel: 2, attempts: [[late], [unsafe]] }, 2, [unsafe]],
    ["that breaks a promise beside others has failed", { parallel: 2, attempts: [[late, unsafe]] }, 1, [late, unsafe]],
    ["that ends with an internal error has failed", { parallel: 2, attempts: [[crashed]] }, 1, [crashed]],
    ["that is late without others has failed", { parallel: 1, attempts: [[late]] }, 1, [late]],
  ] as const
) {
  test(`a round ${what}`, async () => {
    let count = 0;
    const run = () => Promise.resolve({ failures: attempts[count++] ?? [] });
    const finished: (readonly string[])[] = [];
    const lines: string[] = [];
    const results = await runRounds([{ number: 1 }], {
      parallel,
      run,
      finished: (result) => finished.push(result.failures),
      report: (line) => lines.push(line),
    });
    expect(count).toBe(runs);
    expect(lines).toEqual(runs > 1 && failures.length === 0 ? [`UNSTABLE: round 1 beside others: ${late}`] : []);
    expect(finished).toEqual([failures]);
    expect(results).toEqual([{ failures }]);
  });
}

test("rounds that were late run again one at a time, after all others", async () => {
  const running = new Set<number>();
  const order: string[] = [];
  const tried = new Map<number, number>();
  await runRounds([1, 2, 3].map((number) => ({ number })), {
    parallel: 3,
    async run({ number }) {
      running.add(number);
      const tries = (tried.get(number) ?? 0) + 1;
      tried.set(number, tries);
      await Promise.resolve();
      if (tries > 1) expect([...running]).toEqual([number]);
      running.delete(number);
      return { failures: number < 3 && tries === 1 ? [late] : [] };
    },
    finished: () => order.push([...tried.values()].join(" ")),
    report: () => {},
  });
  expect(order).toEqual(["1 1 1", "3 1 1", "3 3 1"]);
});
