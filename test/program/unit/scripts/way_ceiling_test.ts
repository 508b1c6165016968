/** The pure parts of scripts/way. */
import { expect, test } from "bun:test";
import { checkWayCeiling } from "../../../../scripts/ways/ceilings.ts";
import type { InstrumentedFunction } from "../../../../scripts/ways/instrumented_copy.ts";
import { commonWay } from "../../../../scripts/ways/list_ways.ts";

const functionOf = (file: string, line = 1): InstrumentedFunction => ({ file, line, name: "f" });

test("a way over its ceiling is named with both figures", () => {
  const functions = Array.from({ length: 1000 }, (_, line) => functionOf("a.ts", line));
  expect(checkWayCeiling({ name: "lock", functions, files: ["a.ts"] })).toMatch(
    /^lock runs 1000 functions of 1 files; the ceiling is \d+ functions of \d+ files/,
  );
});

test("what only one of two runs did is not counted", () => {
  const [always, timer] = [functionOf("always.ts"), functionOf("timer.ts")];
  const busy = { name: "lock", functions: [always, timer], files: ["always.ts", "timer.ts"], idleFiles: ["idle.ts"] };
  const quiet = { ...busy, functions: [always], files: ["always.ts"] };
  const common = { name: "lock", functions: [always], files: ["always.ts"], idleFiles: ["timer.ts", "idle.ts"] };
  expect(commonWay(busy, quiet)).toEqual(common);
});
