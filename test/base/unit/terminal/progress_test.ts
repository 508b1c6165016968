import { describe, expect, test } from "bun:test";
import {
  BlockingWorkProgress,
  type ProgressFacts,
  ProgressLine,
  progressText,
} from "../../../../src/base/terminal/progress.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { fakeIo } from "../../../support/fake_io.ts";

describe("text", () => {
  const start: ProgressFacts = {
    noun: "message",
    verb: "stored",
    count: 1,
    done: 100,
    before: 0,
    total: null,
    countsTotal: false,
    elapsedMs: 500,
    note: "",
  };

  test("amount and rate; the percentage if the total is known; the remaining time when the rate is reliable", () => {
    expect(progressText(start)).toBe("1 message stored, 2 a second");
    expect(progressText({ ...start, total: 1000 })).toBe("1 message stored, 2 a second, 10 %");
    const known = { ...start, count: 3000, verb: "received", done: 300, before: 200, total: 1000, elapsedMs: 3000 };
    // 300 took 3 s, and 500 are left.
    expect(progressText(known)).toBe("3000 messages received, 1000 a second, 50 %, 5 s left");
    expect(progressText({ ...known, total: 100_500 })).toBe("3000 messages received, 1000 a second, 0 %, 16 m left");
  });

  test("an input that has grown is at its end, not beyond", () => {
    expect(progressText({ ...start, done: 300, total: 200, elapsedMs: 2000 })).toMatch(/100 %$/);
  });

  test("a total of what is counted, with what was done before", () => {
    const items = { ...start, noun: "item", verb: "run", count: 12, done: 12, total: 100, countsTotal: true };
    expect(progressText({ ...items, elapsedMs: 60_000, note: "1 failed" })).toBe(
      "12 of 100 items run, 1 failed, 12 a minute, 12 %, 7 m 20 s left",
    );
    expect(progressText({ ...items, before: 30, elapsedMs: 60_000 })).toBe(
      "42 of 100 items run, 12 a minute, 42 %, 4 m 50 s left",
    );
  });

  test("slow work has a rate for each minute or hour; nothing done yet has a time", () => {
    const slow = { ...start, count: 2, done: 2, countsTotal: true };
    expect(progressText({ ...slow, elapsedMs: 3_600_000 })).toBe("2 messages stored, 2 an hour");
    expect(progressText({ ...slow, elapsedMs: 10_000 })).toBe("2 messages stored, 12 a minute");
    expect(progressText({ ...slow, elapsedMs: 800 })).toBe("2 messages stored, 2.5 a second");
    expect(progressText({ ...slow, count: 0, done: 0, total: 4, elapsedMs: 12_300 })).toBe(
      "0 of 4 messages stored, 12 s, 0 %",
    );
  });

  test("work that nothing counts", () => {
    const check = { ...start, noun: null, verb: "checking the index" };
    expect(progressText({ ...check, elapsedMs: 999 })).toBe("checking the index");
    expect(progressText({ ...check, elapsedMs: 2500 })).toBe("checking the index, 2 s");
  });
});

describe("line", () => {
  const options = { noun: "message", verb: "stored", total: null } as const;
  const values = { quiet: false, progress: false };
  const terminal = () => fakeIo({ stderrIsTerminal: true, env: { TERM: "xterm" } });

  test("appears after a second, is updated while nothing is reported, and is erased", async () => {
    const io = terminal();
    const clock = new FakeClock();
    {
      using progress = new ProgressLine({ io, values }, { ...options, clock });
      progress.add(5);
      await clock.advance(900);
      progress.add(5);
      expect(io.stderr()).toBe("");
      await clock.advance(1100);
      expect(io.stderr()).toBe("\r\x1b[K10 messages stored, 10 a second\r\x1b[K10 messages stored, 5 a second");
      progress.erase();
      progress.erase();
      io.err("a message\n");
      await clock.advance(2000);
      expect(io.stderr()).toContain("5 a second\r\x1b[Ka message\n\r\x1b[K10 messages stored, 3.3 a second");
    }
    expect(io.stderr()).toEndWith("2.5 a second\r\x1b[K");
    expect(clock.timers).toBe(0);
  });

  test("work that is over soon shows no line", async () => {
    const io = terminal();
    const clock = new FakeClock();
    {
      using progress = new ProgressLine({ io, values }, { ...options, clock, afterMs: 60_000 });
      await clock.advance(59_000);
      progress.add(1);
    }
    expect(io.stderr()).toBe("");
  });

  test("many reports write few updates", async () => {
    const io = terminal();
    const clock = new FakeClock();
    using progress = new ProgressLine({ io, values }, { ...options, clock });
    await clock.advance(1000);
    const before = io.stderr();
    for (let one = 0; one < 1000; one++) progress.add(1);
    expect(io.stderr()).toBe(before);
  });

  test("nothing in a pipe, with -q, and if it is not wanted", async () => {
    const clock = new FakeClock();
    const quiet = terminal();
    const pipe = fakeIo();
    const unwanted = terminal();
    for (
      const progress of [
        new ProgressLine({ io: quiet, values: { quiet: true, progress: true } }, { ...options, clock }),
        new ProgressLine({ io: pipe, values }, { ...options, clock }),
        new ProgressLine({ io: unwanted, values }, { ...options, clock, isWanted: false }),
      ]
    ) {
      progress.add(1);
      await clock.advance(30_000);
      progress.add(1);
      progress[Symbol.dispose]();
    }
    expect([quiet.stderr(), pipe.stderr(), unwanted.stderr()]).toEqual(["", "", ""]);
    expect(clock.timers).toBe(0);
  });

  test("--progress writes lines where stderr is no terminal, and one at the end", async () => {
    const io = fakeIo();
    const clock = new FakeClock();
    {
      using progress = new ProgressLine({ io, values: { ...values, progress: true } }, { ...options, clock });
      progress.add(20);
      await clock.advance(15_000);
      progress.add(10);
    }
    expect(io.stderr()).toBe(
      "baton: 20 messages stored, 2 a second\nbaton: 30 messages stored, 2 a second\n",
    );
  });
});

describe("parts of work that blocks the event loop", () => {
  const values = { quiet: false, progress: true };
  const structure = { noun: null, verb: "checking the structure", total: null };
  const rows = { noun: "row", verb: "checked", total: 4 };

  test("a terminal shows each part when it begins, and its count each second in which it counts", async () => {
    const io = fakeIo({ stderrIsTerminal: true, env: { TERM: "xterm" } });
    const clock = new FakeClock();
    {
      using progress = new BlockingWorkProgress({ io, values }, clock);
      progress.startPart(structure);
      expect(io.stderr()).toBe("\r\x1b[Kchecking the structure");
      progress.startPart(rows);
      expect(io.stderr()).toEndWith("\r\x1b[K0 of 4 rows checked, 0 %");
      progress.add(1);
      expect(io.stderr()).toEndWith("0 of 4 rows checked, 0 %");
      await clock.advance(1000);
      progress.add(1);
      expect(io.stderr()).toEndWith("\r\x1b[K1 of 4 rows checked, 1 a second, 25 %, 3 s left");
    }
    expect(io.stderr()).toEndWith("left\r\x1b[K");
    expect(clock.timers).toBe(0);
  });

  test("a log has the beginning of a part that counts nothing, and the end of one that counts", () => {
    const io = fakeIo();
    const clock = new FakeClock();
    {
      using progress = new BlockingWorkProgress({ io, values }, clock);
      progress.startPart(structure);
      expect(io.stderr()).toBe("baton: checking the structure\n");
      progress.startPart(rows);
      progress.add(4);
    }
    expect(io.stderr()).toMatch(/^baton: checking the structure\nbaton: 4 of 4 rows checked, .*, 100 %\n$/);
  });
});
