import { expect, test } from "bun:test";
import { BulkProgressLine, progressText } from "../../../commands/bulk_progress.ts";
import { fakeIo } from "../../support/fake_io.ts";

const so = { count: 1, noun: "message", verb: "stored", done: 100, before: 0, total: null, elapsedMs: 500 };

test("how many and how fast; how far where that is known; how long still when there is something to go by", () => {
  expect(progressText(so)).toBe("1 message stored, 2 a second");
  expect(progressText({ ...so, total: 1000 })).toBe("1 message stored, 2 a second, 10 %");
  const known = { ...so, count: 3000, verb: "received", done: 300, before: 200, total: 1000, elapsedMs: 3000 };
  // 300 took 3 s, and 500 are left.
  expect(progressText(known)).toBe("3000 messages received, 1000 a second, 50 %, 5 s left");
  expect(progressText({ ...known, total: 100_500 })).toBe("3000 messages received, 1000 a second, 0 %, 16 m left");
});

test("slow work has a rate by the minute or the hour, and none before its first item", () => {
  const items = { ...so, noun: "item", verb: "done", count: 3, done: 3, total: 10 };
  expect(progressText({ ...items, elapsedMs: 10_000 })).toBe("3 items done, 18 a minute, 30 %, 24 s left");
  expect(progressText({ ...items, elapsedMs: 1_800_000 })).toBe("3 items done, 6 an hour, 30 %, 1 h 10 m left");
  expect(progressText({ ...items, elapsedMs: 2000 })).toBe("3 items done, 1.5 a second, 30 %, 5 s left");
  expect(progressText({ ...items, count: 0, done: 0, elapsedMs: 2000 })).toBe("0 items done, 0 %");
});

test("an input that has grown is at its end, not beyond", () => {
  expect(progressText({ ...so, done: 300, total: 200, elapsedMs: 2000 })).toMatch(/100 %, 0 ms left$/);
});

test("the line is erased for other output and shown again, and never written to a pipe or with --quiet", () => {
  const shownOn = (stderrIsTerminal: boolean, quiet: boolean) => {
    const io = fakeIo({ stderrIsTerminal });
    using line = new BulkProgressLine({ io, values: { quiet } }, {
      verb: "stored",
      total: null,
      isWanted: true,
      everyMs: 0,
    });
    line.addProgress(1, 1);
    line.erase();
    line.erase();
    line.update();
    return io.stderr().replaceAll("\r\x1b[K", "<erase>");
  };
  expect(shownOn(true, false)).toMatch(/^<erase>1 message stored[^<]*<erase><erase>1 message stored[^<]*$/);
  expect([shownOn(false, false), shownOn(true, true)]).toEqual(["", ""]);
});

test("work that is over soon shows no line", () => {
  const io = fakeIo({ stderrIsTerminal: true });
  using line = new BulkProgressLine({ io, values: { quiet: false } }, {
    ...{ verb: "stored", total: null, isWanted: true },
    afterMs: 60_000,
  });
  line.addProgress(1, 1);
  expect(io.stderr()).toBe("");
});
