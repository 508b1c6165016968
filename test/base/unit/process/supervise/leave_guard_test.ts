/** What the guard hears at the end of a job: above all, when it is not to end the session of a baton that dies next. */
import { expect, test } from "bun:test";
import { reportEndToGuard } from "../../../../../src/base/process/supervise/supervise_child.ts";

async function heard(options: Parameters<typeof reportEndToGuard>[2]): Promise<string[]> {
  const lines: string[] = [];
  reportEndToGuard(
    {
      leave: (job) => lines.push(`left ${job}`),
      forget: (job) => lines.push(`forget ${job}`),
      end: () => lines.push("done"),
    },
    "a",
    options,
  );
  await new Promise(setImmediate);
  return lines;
}

test("after a breach it goes on watching and must not end the session, whatever else it watches", async () => {
  for (const more of [{}, { isBesideOthers: true }, { keepsGuard: true }]) {
    expect(await heard({ ending: { kind: "breach" }, ...more })).toEqual(["left a"]);
  }
});

test("after a breach whose processes are dead it forgets a job beside others, and goes on with those", async () => {
  const ending = { kind: "breach", isDead: true } as const;
  expect(await heard({ ending, isBesideOthers: true })).toEqual(["forget a"]);
  expect(await heard({ ending })).toEqual(["left a"]);
});

test("after any other end it is done, forgets this job, or hears of it from the caller", async () => {
  const ending = { kind: "exited" } as const;
  expect(await heard({ ending })).toEqual(["forget a", "done"]);
  expect(await heard({ ending, isBesideOthers: true })).toEqual(["forget a"]);
  expect(await heard({ ending, keepsGuard: true })).toEqual([]);
});
