import { describe, expect, test } from "bun:test";
import { appendFileSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { BatonError } from "../../../../src/errors.ts";
import { FileLetters } from "../../../../src/recipes/retry/letters/file_letters.ts";
import { LetterOffice, type LetterPlace } from "../../../../src/recipes/retry/letters/letter_office.ts";
import { planLetter } from "../../../../src/recipes/retry/letters/plan_letter.ts";
import type { AskStore } from "../../../../src/recipes/retry/processor.ts";
import { FakeClock, settled } from "../../../support/fake_clock.ts";
import { property } from "../../../support/property.ts";
import { RetryRig, rigMessage } from "../../../support/retry_rig.ts";

const tried = { verdict: "final", retryAfterMs: null, error: "exited with 64" } as const;

describe("whether a letter is in its file", () => {
  test("whole, half at the end, or not", () => {
    expect(planLetter("", "LETTER\n")).toBe("append");
    expect(planLetter("LETTER\n", "LETTER\n")).toBe("there");
    expect(planLetter("OTHER\nLETTER\nMORE\n", "LETTER\n")).toBe("there");
    expect(planLetter("OTHER\nLET", "LETTER\n")).toBe("cut");
    expect(planLetter("LETTER", "LETTER\n")).toBe("cut");
    expect(planLetter("XLETTER\n", "LETTER\n")).toBe("append");
    expect(planLetter("OTHER", "LETTER\n")).toBe("append");
  });

  property(
    "a write that was cut anywhere is mended to one whole letter",
    fc.tuple(fc.nat(40), fc.string({ maxLength: 10 })),
    ([cut, before]) => {
      const letter = '{"id":"a-1","body":"eHl6"}\n';
      const tail = (before === "" ? "" : `${JSON.stringify(before)}\n`) + letter.slice(0, cut);
      const plan = planLetter(tail, letter);
      const kept = plan === "cut" ? tail.slice(0, tail.lastIndexOf("\n") + 1) : tail;
      const mended = plan === "there" ? kept : kept + letter;
      expect(mended.split(letter).length).toBe(2);
      expect(mended.endsWith(letter)).toBe(true);
    },
  );
});

class Bench implements Disposable {
  readonly rig = new RetryRig({ sendsLetters: true });
  readonly path = join(this.rig.folder, "dead.jsonl");
  readonly clock = new FakeClock();
  readonly sent: string[] = [];
  readonly troubles: string[] = [];
  isLocked = false;
  crashAfter: string | null = null;

  constructor(count = 2) {
    this.rig.call(
      "accept",
      Array.from({ length: count }, (_, at) => rigMessage(`body ${at}`, { tried, key: "schlüssel" })),
      1,
    );
  }

  office(place?: LetterPlace): LetterOffice {
    const store: AskStore = {
      call: async (method, ...values) => {
        await Promise.resolve();
        const result = this.rig.call(method, ...values);
        if (method === this.crashAfter) await new Promise(() => {});
        return result;
      },
    };
    const { path } = this;
    return new LetterOffice({
      store,
      place: place ?? new FileLetters({ path, storeName: "stock", lockFile: () => !this.isLocked }),
      clock: this.clock,
      wallClockMs: () => 5,
      onSent: ({ id }) => this.sent.push(id),
      onTrouble: (why) => this.troubles.push(why),
    });
  }

  lines(): { id: string; body: string }[] {
    return readFileSync(this.path, "utf8").split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
  }

  [Symbol.dispose](): void {
    this.rig[Symbol.dispose]();
  }
}
const ended = AbortSignal.abort();

describe("letters to a file", () => {
  test("are there, each a line, when they leave the store", async () => {
    using bench = new Bench();
    await bench.office().run(ended);
    expect(bench.lines().map(({ body }) => atob(body))).toEqual(["body 0", "body 1"]);
    expect(
      bench.rig.call("list", { states: ["dead"] }, { afterSeq: 0, max: 9 }).map(({ letter, bytes }) => [letter, bytes]),
    )
      .toEqual([["there", 0], ["there", 0]]);
    await bench.office().run(ended);
    expect(bench.lines().length).toBe(2);
  });

  test("are there once, wherever the process died, and though half of one was written", async () => {
    for (const crash of ["letterBegun", "letterThere"]) {
      using bench = new Bench(1);
      writeFileSync(bench.path, '{"another":1}\n');
      bench.crashAfter = crash;
      void bench.office().run(ended);
      await settled();
      bench.crashAfter = null;
      if (crash === "letterBegun") appendFileSync(bench.path, '{"version":1,"id"');
      await bench.office().run(ended);
      expect([crash, bench.lines().length]).toEqual([crash, 2]);
    }
    using bench = new Bench(1);
    bench.rig.call("letterBegun", 1, 0);
    await bench.office().run(ended);
    const whole = readFileSync(bench.path, "utf8");
    const bytes = Buffer.byteLength(whole);
    const half = Buffer.from(whole).indexOf("schl") + 5;
    for (const length of [0, 1, half, bytes - 1, bytes]) {
      using again = new Bench(1);
      again.rig.call("letterBegun", 1, 0);
      writeFileSync(again.path, whole.replaceAll(/"id":"[^"]*"/g, `"id":"${again.rig.call("show", "1")?.id}"`));
      truncateSync(again.path, length);
      await again.office().run(ended);
      expect([length, again.lines().length]).toEqual([length, 1]);
    }
  });

  test("wait for a file that another process has, and stay in the store meanwhile", async () => {
    using bench = new Bench(1);
    bench.isLocked = true;
    const stop = new AbortController();
    const running = bench.office().run(stop.signal);
    await bench.clock.advance(3000);
    expect(bench.rig.call("owedLetters", 9).length).toBe(1);
    bench.isLocked = false;
    await bench.clock.advance(1000);
    expect(bench.lines().length).toBe(1);
    stop.abort();
    await running;
  });
});

test("a place in trouble keeps its letters in the store, says so, and is asked again less and less often", async () => {
  using bench = new Bench(1);
  let works = false, asked = 0;
  const place: LetterPlace = {
    open: () =>
      Promise.resolve({
        next: () => 0,
        send: () => {
          asked++;
          return works ? Promise.resolve() : Promise.reject(new BatonError("IO", "no such place"));
        },
        close() {},
      }),
  };
  const stop = new AbortController();
  const running = bench.office(place).run(stop.signal);
  await bench.clock.advance(60_000);
  expect([bench.troubles[0], asked < 10, bench.rig.call("owedLetters", 9).length]).toEqual(["no such place", true, 1]);
  works = true;
  await bench.clock.advance(60_000);
  expect([bench.sent.length, bench.rig.call("owedLetters", 9).length]).toEqual([1, 0]);
  stop.abort();
  await running;
});
