import { describe, expect, test } from "bun:test";
import {
  RequestBudget,
  type RequestMemoryShare,
  slowRequestLimits,
} from "../../../../src/retry/http_proxy/request_budget.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

/** 10,000 bytes for requests that arrive, the same for those at the backend; one takes 1,000 at most. */
class Rig {
  readonly clock = new FakeClock();
  readonly budget = new RequestBudget({ bytesMax: 20_000, requestBytesMax: 1000, callsMax: 3, clock: this.clock });
  readonly refused: string[] = [];
  readonly read = new Map<string, boolean>();

  open(name: string, left: number): RequestMemoryShare {
    this.read.set(name, true);
    return this.budget.openShare({ bytes: 0, left }, {
      pause: () => void this.read.set(name, false),
      resume: () => void this.read.set(name, true),
      refuse: () => void this.refused.push(name),
    });
  }

  /** Unfinished requests of 900 bytes each, up to the mark from which on memory is short. */
  fill(): RequestMemoryShare[] {
    return Array.from({ length: 10 }, (_, at) => {
      const share = this.open(`full ${at}`, 1000);
      this.budget.addReceived(share, 900);
      return share;
    });
  }

  isRead(name: string): boolean {
    return this.read.get(name) ?? false;
  }
}

describe("the memory for requests in progress", () => {
  test("is taken by what has arrived, whatever a request announces", () => {
    const rig = new Rig();
    for (let at = 0; at < 100; at++) rig.open(`silent ${at}`, 1000);
    expect([rig.budget.bytes, [...rig.read.values()].includes(false)]).toEqual([0, false]);
  });

  test("is short: the requests that lack least are read, as many as can be completed, and short ones pass", () => {
    const rig = new Rig();
    rig.fill();
    const last = rig.open("last", 600);
    rig.budget.addReceived(last, 1);
    rig.open("short", 10);
    expect([rig.isRead("short"), rig.isRead("full 0"), rig.isRead("full 9"), rig.isRead("last")]).toEqual(
      [true, true, false, false],
    );
    expect(rig.budget.bytes).toBe(9001);
  });

  test("lets every request complete in the end when each that has arrived is stored", () => {
    const rig = new Rig();
    const left = new Map<string, RequestMemoryShare>();
    for (let at = 0; at < 40; at++) left.set(`r${at}`, rig.open(`r${at}`, 1000));
    let rounds = 0;
    for (; left.size > 0 && rounds < 10_000; rounds++) {
      for (const [name, share] of left) {
        if (!rig.isRead(name)) continue;
        rig.budget.addReceived(share, 100);
        expect(rig.budget.bytes).toBeLessThanOrEqual(10_000);
        if (share.bytesLeft > 0) continue;
        rig.budget.finishReading(share);
        left.delete(name);
        rig.budget.release(share);
      }
    }
    expect([left.size, rig.budget.bytes, rig.clock.timers]).toEqual([0, 0, 0]);
  });

  test("is taken from requests that are read and do not arrive, and never from one that waits", async () => {
    const rig = new Rig();
    rig.fill();
    rig.budget.addReceived(rig.open("last", 600), 1);
    await rig.clock.advance(slowRequestLimits.ms + 1000);
    expect(rig.refused.length).toBeGreaterThan(0);
    expect(rig.refused).not.toContain("last");
    expect(rig.isRead("last")).toBe(true);
  });

  test("of one half is the backend's: large requests there leave the other half to others", () => {
    const rig = new Rig();
    const shares = Array.from({ length: 11 }, (_, at) => {
      const share = rig.open(`r${at}`, 900);
      rig.budget.addReceived(share, 900);
      rig.budget.finishReading(share);
      return share;
    });
    const [first, second, third, fourth] = shares as [
      RequestMemoryShare,
      RequestMemoryShare,
      RequestMemoryShare,
      RequestMemoryShare,
    ];
    for (const share of [first, second, third]) {
      expect(rig.budget.mayCall(share)).toBe(true);
      rig.budget.beginCall(share);
    }
    expect([rig.budget.calls, rig.budget.mayCall(fourth)]).toEqual([3, false]);
    rig.budget.endCall(first);
    rig.budget.endCall(first);
    expect([rig.budget.calls, rig.budget.mayCall(fourth)]).toEqual([2, true]);
    for (const share of shares) rig.budget.release(share);
    expect([rig.budget.calls, rig.budget.bytes]).toEqual([0, 0]);

    const large = new RequestBudget({ bytesMax: 3000, requestBytesMax: 1000, callsMax: 100, clock: rig.clock });
    const [one, other] = [1, 2].map(() => large.openShare({ bytes: 1000, left: 0 }, rigless));
    if (one === undefined || other === undefined) throw new Error("two were opened");
    large.beginCall(one);
    expect([large.calls, large.mayCall(other)]).toEqual([1, false]);
  });

  test("has room for one request that is alone, however small the budget is", () => {
    const rig = new Rig();
    const small = new RequestBudget({ bytesMax: 2000, requestBytesMax: 1000, callsMax: 1, clock: rig.clock });
    const share = small.openShare({ bytes: 100, left: 1000 }, rigless);
    small.addReceived(share, 900);
    expect(share.isRead).toBe(true);
  });
});

const rigless = { pause() {}, resume() {}, refuse() {} };
