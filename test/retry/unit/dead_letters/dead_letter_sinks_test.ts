import { describe, expect, test } from "bun:test";
import { appendFileSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { BatonError, type ErrorCode } from "../../../../src/base/errors.ts";
import { FileSink, planDeadLetterAppend } from "../../../../src/retry/dead_letters/file_sink.ts";
import {
  DeadLetterForwarder,
  type DeadLetterSink,
  type DeadLetterSinkSession,
} from "../../../../src/retry/dead_letters/dead_letter_forwarder.ts";
import { deadLetterLine, deadLetterLinePrefix } from "../../../../src/retry/dead_letters/dead_letter_record.ts";
import { makeRedaction, type Redaction } from "../../../../src/retry/dead_letters/redaction.ts";
import type { StoreClient } from "../../../../src/retry/queue/store_methods.ts";
import { claimBytesMax } from "../../../../src/retry/queue/retry_store_limits.ts";
import type { ClaimedMessage } from "../../../../src/retry/queue/stored_message.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import { FakeClock, settled } from "../../../support/fake_clock.ts";
import { property } from "../../../support/property.ts";
import { RetryRig, rigMessage } from "../../../support/retry_rig.ts";

const tried = { outcome: "final", retryAfterMs: null, error: "exited with 64" } as const;

describe("whether a letter is in its file", () => {
  test("whole, half at the end, or not", () => {
    expect(planDeadLetterAppend("", "LETTER\n")).toBe("append");
    expect(planDeadLetterAppend("LETTER\n", "LETTER\n")).toBe("present");
    expect(planDeadLetterAppend("OTHER\nLETTER\nMORE\n", "LETTER\n")).toBe("present");
    expect(planDeadLetterAppend("OTHER\nLET", "LETTER\n")).toBe("cut");
    expect(planDeadLetterAppend("LETTER", "LETTER\n")).toBe("cut");
    expect(planDeadLetterAppend("XLETTER\n", "LETTER\n")).toBe("append");
    expect(planDeadLetterAppend("OTHER", "LETTER\n")).toBe("append");
  });

  test("also where something else was left out of it before the crash", () => {
    const rig = new RetryRig({ letters: "pending" });
    using _ = rig;
    const headers: [string, string][] = [["Cookie", "c=1"], ["X-Key", "k"]];
    rig.call("accept", [rigMessage("x", { tried, head: { kind: "http", method: "POST", path: "/", headers } })], 1);
    const [letter] = rig.call("pendingDeadLetters", 1, 2);
    if (letter === undefined) throw new Error("it is dead");
    const [before, now] = [[], ["X-Key"]].map((names) =>
      deadLetterLine(letter, { storeName: "stock", redaction: makeRedaction(names, []) })
    ) as [string, string];
    expect(now).not.toBe(before);
    expect(planDeadLetterAppend(`OTHER\n${before}`, now, deadLetterLinePrefix(letter))).toBe("present");
    for (let cut = 1; cut < before.length; cut++) {
      expect(planDeadLetterAppend(`OTHER\n${before.slice(0, cut)}`, now, deadLetterLinePrefix(letter))).toBe("cut");
    }
  });

  property(
    "a write that was cut anywhere is mended to one whole letter",
    fc.tuple(fc.nat(40), fc.string({ maxLength: 10 })),
    ([cut, before]) => {
      const letter = '{"id":"a-1","body":"eHl6"}\n';
      const tail = (before === "" ? "" : `${JSON.stringify(before)}\n`) + letter.slice(0, cut);
      const plan = planDeadLetterAppend(tail, letter);
      const kept = plan === "cut" ? tail.slice(0, tail.lastIndexOf("\n") + 1) : tail;
      const mended = plan === "present" ? kept : kept + letter;
      expect(mended.split(letter).length).toBe(2);
      expect(mended.endsWith(letter)).toBe(true);
    },
  );
});

class Bench implements Disposable {
  readonly rig = new RetryRig({ letters: "pending" });
  readonly path = join(this.rig.folder, "dead.jsonl");
  readonly clock = new FakeClock();
  readonly sent: string[] = [];
  readonly failures: string[] = [];
  isLocked = false;
  redaction: Redaction = makeRedaction([], []);
  crashAfter: string | null = null;
  nowMs = 5;

  constructor(count = 2) {
    this.rig.call(
      "accept",
      Array.from({ length: count }, (_, at) => rigMessage(`body ${at}`, { tried, key: "schlüssel" })),
      1,
    );
  }

  office(place?: DeadLetterSink, openMs?: number): DeadLetterForwarder {
    const store: StoreClient = {
      call: async (method, ...values) => {
        await Promise.resolve();
        const result = this.rig.call(method, ...values);
        if (method === this.crashAfter) await new Promise(() => {});
        return result;
      },
    };
    const { path } = this;
    return new DeadLetterForwarder({
      store,
      sink: place ??
        new FileSink({ path, storeName: "stock", redaction: this.redaction, lockFile: () => !this.isLocked }),
      clock: this.clock,
      wallClockMs: () => this.nowMs,
      ...(openMs === undefined ? {} : { openTimeoutMs: openMs }),
      onForwarded: ({ id }) => this.sent.push(id),
      onFailure: (why) => this.failures.push(why),
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
      bench.rig.call("list", { states: ["dead"] }, { afterSeq: 0, max: 9 }).map((
        { forwardState, bytes },
      ) => [forwardState, bytes]),
    )
      .toEqual([["forwarded", 0], ["forwarded", 0]]);
    await bench.office().run(ended);
    expect(bench.lines().length).toBe(2);
  });

  test("are there once, wherever the process died, and though half of one was written", async () => {
    for (const crash of ["markForwarding", "markForwarded"]) {
      using bench = new Bench(1);
      writeFileSync(bench.path, '{"another":1}\n');
      bench.crashAfter = crash;
      void bench.office().run(ended);
      await settled();
      bench.crashAfter = null;
      if (crash === "markForwarding") appendFileSync(bench.path, '{"version":1,"id"');
      await bench.office().run(ended);
      expect([crash, bench.lines().length]).toEqual([crash, 2]);
    }
    using bench = new Bench(1);
    bench.rig.call("markForwarding", 1, 0, 0);
    await bench.office().run(ended);
    const whole = readFileSync(bench.path, "utf8");
    const bytes = Buffer.byteLength(whole);
    const half = Buffer.from(whole).indexOf("schl") + 5;
    for (const length of [0, 1, half, bytes - 1, bytes]) {
      using again = new Bench(1);
      again.rig.call("markForwarding", 1, 0, 0);
      writeFileSync(again.path, whole.replaceAll(/"id":"[^"]*"/g, `"id":"${again.rig.call("show", "1")?.id}"`));
      truncateSync(again.path, length);
      await again.office().run(ended);
      expect([length, again.lines().length]).toEqual([length, 1]);
    }
  });

  test("are whole after one that a crash left incomplete and that was redriven, and after text of others", async () => {
    for (
      const [before, rest] of [['{"version":1,"id":"x-1","na', ""], ['{"ver', ""], ["a note", "a note\n"]] as const
    ) {
      using bench = new Bench();
      writeFileSync(bench.path, `{}\n${before}`);
      bench.rig.call("markForwarding", 1, 0, 3);
      bench.rig.call("change", "1", "redrive", 5);
      await bench.office().run(ended);
      const text = readFileSync(bench.path, "utf8");
      expect(text.startsWith(`{}\n${rest}{"version":1,"id":"`)).toBe(true);
      expect(text.split("\n").length).toBe(rest === "" ? 3 : 4);
    }
  });

  test("wait for a file that another process has, and stay in the store meanwhile", async () => {
    using bench = new Bench(1);
    bench.isLocked = true;
    const stop = new AbortController();
    const running = bench.office().run(stop.signal);
    await bench.clock.advance(3000);
    expect(bench.rig.call("pendingDeadLetters", 9, 5).length).toBe(1);
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
  const place: DeadLetterSink = {
    skipsFailed: true,
    open: () =>
      Promise.resolve({
        nextOffset: () => 0,
        send: () => {
          asked++;
          return works ? Promise.resolve() : Promise.reject(new BatonError("UNREACHABLE", "no such place"));
        },
        close() {},
      }),
  };
  const stop = new AbortController();
  const running = bench.office(place).run(stop.signal);
  await bench.clock.advance(60_000);
  expect([bench.failures[0], asked < 10, bench.rig.call("pendingDeadLetters", 9, 5).length]).toEqual([
    "no such place",
    true,
    1,
  ]);
  expect(bench.rig.call("show", "1")?.forwardError).toBe("no such place");
  works = true;
  await bench.clock.advance(60_000);
  expect([bench.sent.length, bench.rig.call("pendingDeadLetters", 9, 5).length]).toEqual([1, 0]);
  stop.abort();
  await running;
});

/** Letters that are in `bad` fail with that code; the others arrive in `arrived`. */
function placeWithout(bad: Map<string, ErrorCode>, arrived: string[]): DeadLetterSink {
  const send = ({ body }: ClaimedMessage) => {
    const text = new TextDecoder().decode(body);
    const code = bad.get(text);
    if (code !== undefined) return Promise.reject(new BatonError(code, `${text} is not taken`));
    arrived.push(text);
    return Promise.resolve();
  };
  return { skipsFailed: true, open: () => Promise.resolve({ nextOffset: () => null, send, close() {} }) };
}

test("the last letters have all the time they need, unless somebody wants an end: then 10 s", async () => {
  for (const isHurried of [false, true]) {
    using bench = new Bench(3);
    const arrived: string[] = [];
    const slow: DeadLetterSink = {
      ...placeWithout(new Map(), arrived),
      open: async () => {
        const open = await placeWithout(new Map(), arrived).open(ended);
        const send: DeadLetterSinkSession["send"] = async (letter, at, signal) => {
          await sleep(bench.clock, 6000, signal);
          await open?.send(letter, at, signal);
        };
        return open && { ...open, send };
      },
    };
    const hurry = new AbortController();
    const running = bench.office(slow).run(ended, hurry.signal);
    if (isHurried) hurry.abort();
    await bench.clock.advance(20_000);
    await running;
    expect([isHurried, arrived.length]).toEqual([isHurried, isHurried ? 1 : 3]);
    expect(bench.failures).toEqual([]);
  }
});

test("large letters are taken out of the store a few at a time, one of any size", () => {
  using rig = new RetryRig({ letters: "pending", maxBytes: 1 << 30 });
  const sizes = [claimBytesMax - 10, 5, 5, 1, claimBytesMax, claimBytesMax + 1, 1];
  for (const size of sizes) rig.call("accept", [{ ...rigMessage("", { tried }), body: new Uint8Array(size) }], 1);
  const batches: number[] = [];
  for (let seq = 0; seq < sizes.length;) {
    const letters = rig.call("pendingDeadLetters", 16, 5);
    batches.push(letters.length);
    for (const letter of letters) rig.call("markForwarded", letter.seq, 0, 5);
    seq += letters.length;
  }
  expect(batches).toEqual([3, 1, 1, 1, 1]);
});

describe("a letter that cannot be sent", () => {
  test("lets all others go at once when it was refused by itself, and says why", async () => {
    using bench = new Bench(40);
    const arrived: string[] = [];
    const bad = new Map<string, ErrorCode>(Array.from({ length: 20 }, (_, at) => [`body ${at}`, "BAD_DATA"]));
    await bench.office(placeWithout(bad, arrived)).run(ended);
    expect(arrived.length).toBe(20);
    expect(bench.rig.call("show", "1")).toMatchObject({ forwardState: "pending", forwardError: "body 0 is not taken" });
    expect(bench.rig.call("show", "40")).toMatchObject({ forwardState: "forwarded", forwardError: null });
    expect(bench.rig.call("deadLetterBacklog")).toEqual({ count: 20, forwarded: 20, error: "body 0 is not taken" });
  });

  test("waits longer after each unclear failure, is sent when it can be, and delays no other letter", async () => {
    using bench = new Bench(3);
    const arrived: string[] = [];
    const bad = new Map<string, ErrorCode>([["body 0", "CONNECTION_LOST"]]);
    const stop = new AbortController();
    const running = bench.office(placeWithout(bad, arrived)).run(stop.signal);
    const pass = async (ms: number) => {
      for (let at = 0; at < ms; at += 500) {
        bench.nowMs += 500;
        await bench.clock.advance(500);
      }
    };
    await bench.clock.advance(0);
    expect([arrived, bench.failures.length]).toEqual([[], 1]);
    await pass(10_000);
    expect(arrived).toEqual(["body 1", "body 2"]);
    const before = bench.failures.length;
    expect(before).toBeLessThan(5);
    await pass(100_000);
    expect(bench.failures.length - before).toBeLessThan(5);
    bad.clear();
    // A clock that was set back keeps no letter for longer than it would rest.
    bench.nowMs -= 10_000_000;
    await pass(400_000);
    expect([arrived.length, bench.rig.call("deadLetterBacklog")]).toEqual([3, { count: 0, forwarded: 3, error: null }]);
    stop.abort();
    await running;
  });

  test("rests no longer when somebody begins anew", async () => {
    using bench = new Bench(1);
    const arrived: string[] = [];
    const bad = new Map<string, ErrorCode>([["body 0", "CONNECTION_LOST"]]);
    await bench.office(placeWithout(bad, arrived)).run(ended);
    bad.clear();
    await bench.office(placeWithout(bad, arrived)).run(ended);
    expect(arrived).toEqual(["body 0"]);
  });

  test("begins without its failures when it is redriven", async () => {
    using bench = new Bench(1);
    await bench.office(placeWithout(new Map([["body 0", "BAD_DATA"]]), [])).run(ended);
    bench.rig.call("change", "1", "redrive", 6);
    bench.rig.call("change", "1", "cancel", 7);
    expect(bench.rig.call("show", "1")).toMatchObject({ state: "cancelled", forwardState: "none", forwardError: null });
  });
});

describe("a run that ends by itself", () => {
  /** What the place does when it is opened: it is not there, another process has it, or it works. */
  function placeThat(does: () => "fails" | "taken" | "works", opened: string[]): DeadLetterSink {
    return {
      skipsFailed: true,
      open() {
        const how = does();
        opened.push(how);
        if (how === "fails") return Promise.reject(new BatonError("UNREACHABLE", "no broker can be reached"));
        return Promise.resolve(how === "taken" ? null : { nextOffset: () => null, send: async () => {}, close() {} });
      },
    };
  }

  test.each(["fails", "taken"] as const)(
    "asks a place that %s again at the end, and sends when it works",
    async (how) => {
      using bench = new Bench(2);
      const opened: string[] = [];
      const place = placeThat(() => (opened.length < 3 ? how : "works"), opened);
      await bench.clock.within(bench.office(place, 3000).run(ended), { withinMs: 3000 });
      expect([opened.at(-1), bench.rig.call("deadLetterBacklog").count]).toEqual(["works", 0]);
    },
  );

  test("asks for as long as it was told, and no longer", async () => {
    using bench = new Bench(1);
    const opened: string[] = [];
    const startMs = bench.clock.now();
    await bench.clock.within(bench.office(placeThat(() => "fails", opened), 3000).run(ended), { withinMs: 4000 });
    expect(bench.clock.now() - startMs).toBeGreaterThanOrEqual(3000);
    expect([opened.length > 2, bench.rig.call("deadLetterBacklog").count]).toEqual([true, 1]);
  });
});
