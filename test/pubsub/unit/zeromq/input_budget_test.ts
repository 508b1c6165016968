/** Who is read from while memory for incomplete messages is short. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  IncompleteMessageBudget,
  incompleteMessageMsMax,
  uncountedInputBytesMax,
} from "../../../../src/protocols/zeromq/input_budget.ts";
import { property } from "../../../support/property.ts";

const kib = 1024;
const limits = { bytesMax: 1024 * kib, messageBytesMax: 256 * kib };
const secondMark = limits.bytesMax - limits.messageBytesMax;

/** A budget, and what it has decided so far. */
class Rig {
  readonly budget = new IncompleteMessageBudget<string>(limits);
  readonly stopped = new Set<string>();
  nowMs = 0;

  hold(owner: string, bytes: number, isNext = false): void {
    const { stop, resume } = this.budget.setHeldBytes(owner, bytes, { isNext, nowMs: this.nowMs });
    for (const one of stop) {
      expect(this.stopped.has(one)).toBe(false);
      this.stopped.add(one);
    }
    for (const one of resume) expect(this.stopped.delete(one)).toBe(true);
  }
}

describe("below the first mark", () => {
  test("every connection is read from, for however long", () => {
    const rig = new Rig();
    for (const owner of ["a", "b", "c"]) rig.hold(owner, 100 * kib);
    rig.nowMs = 10 * incompleteMessageMsMax;
    expect([rig.stopped.size, rig.budget.isShort, rig.budget.expiredOwners(rig.nowMs)]).toEqual([0, false, []]);
  });
});

describe("while memory is short", () => {
  const short = () => {
    const rig = new Rig();
    for (const owner of ["a", "b", "c"]) rig.hold(owner, 128 * kib); // the first mark is at 384 KiB
    expect(rig.budget.isShort).toBe(true);
    return rig;
  };

  test("those that hold more than a share stop, but for the one whose message began first", () => {
    const rig = short();
    rig.hold("b", 129 * kib);
    rig.hold("a", 130 * kib);
    rig.hold("c", 131 * kib);
    rig.hold("new", 90 * kib);
    expect([...rig.stopped]).toEqual(["a", "c"]); // b was the first that had to wait
    rig.hold("b", 256 * kib);
    rig.hold("b", 0, true);
    expect([...rig.stopped]).toEqual(["c"]);
  });

  test("the connection that passes the second mark stops all that hold more than next to nothing, but for one", () => {
    const rig = short();
    const owners = Array.from({ length: 8 }, (_, n) => `half a share ${n}`);
    for (const owner of owners) rig.hold(owner, 17 * kib);
    rig.hold("b", 192 * kib); // the first that has to wait is read on
    rig.hold("a", 256 * kib);
    expect(rig.budget.total).toBeLessThan(secondMark);
    expect([...rig.stopped]).toEqual(["a"]);
    rig.hold("c", 200 * kib);
    expect(rig.budget.total).toBeGreaterThanOrEqual(secondMark);
    expect([...rig.stopped].sort()).toEqual(["a", "c", ...owners].sort());
  });

  test("a connection that holds next to nothing is never stopped, nor closed", () => {
    const rig = short();
    for (let n = 0; n < 1000; n++) rig.hold(`small ${n}`, uncountedInputBytesMax);
    rig.nowMs = 2 * incompleteMessageMsMax;
    expect(rig.budget.expiredOwners(rig.nowMs).sort()).toEqual(["a", "b", "c"]);
    expect([...rig.stopped].filter((owner) => owner.startsWith("small"))).toEqual([]);
  });

  test("a message has its time from its beginning, from the shortage, and from when it is read to its end", () => {
    const rig = short();
    rig.nowMs = 6000;
    rig.hold("late", 200 * kib);
    rig.hold("b", 129 * kib);
    rig.nowMs = 9999;
    expect(rig.budget.expiredOwners(rig.nowMs)).toEqual([]);
    rig.nowMs = 10_000;
    expect(rig.budget.expiredOwners(rig.nowMs)).toEqual(["a", "b", "c"]);
    rig.hold("a", 0, true);
    rig.hold("b", 0, true);
    rig.hold("c", 0, true);
    expect([rig.budget.isShort, rig.stopped.size]).toEqual([false, 0]);
  });
});

const chunkBytesMax = 64 * kib;
const steps = fc.array(fc.record({ who: fc.nat(11), bytes: fc.integer({ min: 1, max: chunkBytesMax }) }), {
  minLength: 100,
  maxLength: 600,
});

property(
  "memory stays within the budget, and what is sent to its end arrives, whatever others leave unfinished",
  fc.record({ steps, unfinished: fc.nat(11) }),
  ({ steps, unfinished }) => {
    const rig = new Rig();
    const held = new Map<number, number>();
    const arrived = new Set<number>();
    const send = (who: number, bytes: number): void => {
      const after = Math.min((held.get(who) ?? 0) + bytes, limits.messageBytesMax);
      const isWhole = after === limits.messageBytesMax && who >= unfinished;
      if (isWhole) arrived.add(who);
      held.set(who, isWhole ? 0 : after);
      rig.hold(String(who), isWhole ? 0 : after, isWhole);
      const total = [...held.values()].reduce((sum, one) => sum + one, 0);
      // Each connection that holds next to nothing may add what was on its way.
      const onTheWay = chunkBytesMax + 12 * (uncountedInputBytesMax + chunkBytesMax);
      expect(total).toBeLessThanOrEqual(limits.bytesMax + onTheWay);
      const isRead = ([who, bytes]: [number, number]) =>
        bytes > uncountedInputBytesMax && !rig.stopped.has(String(who));
      if (rig.budget.total >= secondMark) expect([...held].filter(isRead).length).toBeLessThanOrEqual(1);
    };
    for (const { who, bytes } of steps) if (!rig.stopped.has(String(who))) send(who, bytes);
    const finishing = Array.from({ length: 12 - unfinished }, (_, n) => unfinished + n);
    const sendOn = (): boolean => {
      const next = finishing.find((who) => !arrived.has(who) && !rig.stopped.has(String(who)));
      if (next !== undefined) send(next, chunkBytesMax);
      return next !== undefined;
    };
    while (sendOn());
    // Those that are left wait for those that stopped sending.
    rig.nowMs += incompleteMessageMsMax - 1;
    expect(rig.budget.expiredOwners(rig.nowMs)).toEqual([]);
    rig.nowMs++;
    for (const owner of rig.budget.expiredOwners(rig.nowMs)) {
      rig.hold(owner, 0, true);
      held.set(Number(owner), 0);
    }
    while (sendOn());
    expect(finishing.filter((who) => !arrived.has(who))).toEqual([]);
  },
);
