import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { LockMode } from "../../../../src/base/process/lease.ts";
import { holderNodeName, parseHolderNode } from "../../../../src/coordination/lock/lock_nodes.ts";
import {
  freePermitSlot,
  holdingLockGrants,
  isCompatibleLockMode,
  lockQueuePosition,
  lockRequestAfterGrantChange,
} from "../../../../src/coordination/lock/queue_position.ts";

function position(mode: LockMode, queue: string[], grants: string[] = [], limit = 1) {
  return lockQueuePosition({ queue, grants, guid: "me", mode, limit });
}

describe("a contender's position", () => {
  test("is granted when the own node is among the grants, whatever the queue says", () => {
    expect(position("exclusive", [], ["x-me"])).toEqual({ kind: "granted", grant: "x-me" });
  });

  test("is gone when the own node is nowhere", () => {
    expect(position("exclusive", ["100-x-other-0000000001"])).toEqual({ kind: "gone" });
  });

  test("is eligible when it is first and nobody holds", () => {
    const queue = ["100-x-me-0000000002", "100-x-other-0000000003"];
    expect(position("exclusive", queue)).toEqual({ kind: "eligible", passed: false });
  });

  test("is blocked when it is first and somebody holds", () => {
    expect(position("exclusive", ["100-x-me-0000000002"], ["s-other"])).toEqual({ kind: "blocked", passed: false });
  });

  test("waits for the nearest of those before it, not for the first", () => {
    const queue = ["100-x-a-0000000001", "100-x-me-0000000009", "100-x-b-0000000005", "200-x-c-0000000002"];
    expect(position("exclusive", queue)).toEqual({
      kind: "queued",
      watch: "100-x-b-0000000005",
      ahead: 2,
      passed: true,
    });
  });

  test("goes by priority first, then by the sequence as a number", () => {
    expect(position("exclusive", ["050-x-me-0000000009", "100-x-a-0000000001"]).kind).toBe("eligible");
    const otherNode = "100-x-a--000000002";
    expect(position("exclusive", ["100-x-me-0000000001", otherNode]).kind).toBe("eligible");
    expect(position("exclusive", ["100-x-me-0000000001", "100-x-a--2147483648"]).kind).toBe("queued");
  });

  test("is decided by the guid when the server's counter sticks at 2^31-1", () => {
    const first = "100-x-a-2147483647";
    const second = "100-x-me-2147483647";
    expect(position("exclusive", [second, first])).toMatchObject({ kind: "queued", watch: first });
    expect(position("exclusive", [second, "100-x-z-2147483647"]).kind).toBe("eligible");
  });

  test("lets readers pass readers but not writers", () => {
    expect(position("shared", ["100-s-a-0000000001", "100-s-me-0000000002"], ["s-b"]).kind).toBe("eligible");
    const behindWriter = ["100-x-w-0000000000", "100-s-a-0000000001", "100-s-me-0000000002"];
    expect(position("shared", behindWriter, ["s-b"])).toMatchObject({ kind: "queued", watch: "100-s-a-0000000001" });
  });

  test("counts permits up to the limit, in turn", () => {
    expect(position("permit", ["100-p-me-0000000002"], ["p0-a"], 2).kind).toBe("eligible");
    expect(position("permit", ["100-p-me-0000000002"], ["p0-a", "p1-b"], 2).kind).toBe("blocked");
    expect(position("permit", ["100-p-a-0000000001", "100-p-me-0000000002"], [], 2).kind).toBe("queued");
  });

  test("ignores what is no contender, and yields to a holder it does not understand", () => {
    expect(position("exclusive", ["100-x-me-0000000002", "lock-0000000000"]).kind).toBe("eligible");
    expect(position("shared", ["100-s-me-0000000002"], ["somebody"]).kind).toBe("blocked");
  });
});

test("modes do not mix", () => {
  for (const [mode, other] of [["shared", "p0-a"], ["shared", "x-a"], ["permit", "s-a"], ["permit", "x-a"]] as const) {
    expect(isCompatibleLockMode(mode, [other], 9)).toBe(false);
  }
});

test("after a change of the grants a request is known if there was one, or if all were exclusive", () => {
  expect(lockRequestAfterGrantChange("exclusive", ["s-a"])).toBe("eligible");
  expect(lockRequestAfterGrantChange("shared", ["x-a"])).toBe("eligible");
  expect(lockRequestAfterGrantChange("exclusive", ["x-a", "x-b"])).toBe("next");
  expect(lockRequestAfterGrantChange("shared", ["x-a", "x-b"])).toBeNull();
  expect(lockRequestAfterGrantChange("exclusive", ["s-a", "s-b"])).toBeNull();
  expect(lockRequestAfterGrantChange("exclusive", ["p0-a", "p1-b"])).toBeNull();
});

describe("a grant in advance", () => {
  const me = "100-x-me-0000000005";

  test("is for the first exclusive contender without a grant, while there is room behind exclusive grants", () => {
    expect(position("exclusive", [me], ["x-a"])).toEqual({ kind: "next", passed: false });
    // The holder got its grant in advance: it stays in the queue until it releases the lock.
    expect(position("exclusive", ["100-x-a-0000000004", me], ["x-a"])).toEqual({ kind: "next", passed: false });
    expect(position("exclusive", [me], ["x-a", "x-b"]).kind).toBe("blocked");
    expect(position("exclusive", [me], ["s-a"]).kind).toBe("blocked");
    expect(position("exclusive", [me], ["p0-a"]).kind).toBe("blocked");
    expect(position("shared", ["100-s-me-0000000005"], ["x-a"]).kind).toBe("blocked");
    expect(position("exclusive", ["100-x-b-0000000004", me], ["x-a"]).kind).toBe("queued");
  });

  test("is not made where grants are recorded", () => {
    const view = { queue: [me], grants: ["x-a"], guid: "me", mode: "exclusive", limit: 1, mayAdvance: false } as const;
    expect(lockQueuePosition(view).kind).toBe("blocked");
  });

  test("is withdrawn for a better contender, but the oldest grant, which holds the lock, never", () => {
    const view = {
      queue: ["050-x-me-0000000009", "100-x-a-0000000001", "100-x-b-0000000002"],
      grants: ["x-a", "x-b"],
      guid: "me",
      mode: "exclusive",
      limit: 1,
    } as const;
    expect(lockQueuePosition(view)).toEqual({ kind: "unclear" });
    expect(lockQueuePosition({ ...view, oldest: "x-b" })).toEqual({ kind: "outranks", grants: ["x-a"], oldest: "x-b" });
    expect(lockQueuePosition({ ...view, oldest: "x-a" })).toEqual({ kind: "outranks", grants: ["x-b"], oldest: "x-a" });
    // The holder stays in the queue until it releases the lock.
    expect(lockQueuePosition({ ...view, grants: ["x-a"] })).toEqual({ kind: "next", passed: true });
  });

  test("holds the lock when it is the oldest exclusive one; all readers and permits hold", () => {
    const a = { mode: "exclusive" } as const;
    const b = { mode: "exclusive" } as const;
    expect(holdingLockGrants([a, b])).toEqual([a]);
    expect(holdingLockGrants([{ mode: "shared" }, { mode: "shared" }])).toHaveLength(2);
    expect(holdingLockGrants([])).toEqual([]);
  });
});

test("a slot is the lowest that no holder has, and below the limit whenever a permit is free", () => {
  expect(freePermitSlot([])).toBe(0);
  expect(freePermitSlot(["p0-a", "p2-b"])).toBe(1);
  expect(freePermitSlot(["p1-a", "p0-b"])).toBe(2);
  // The limit was lowered under them.
  expect(freePermitSlot(["p7-a"])).toBe(0);
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(9)), (slots) => {
      const slot = freePermitSlot(slots.map((taken) => holderNodeName({ mode: "permit", slot: taken, guid: "a" })));
      expect(slots).not.toContain(slot);
      expect(slot).toBeLessThanOrEqual(slots.length);
    }),
    { verbose: true },
  );
});

test("a holder's name says mode, slot and guid, and a permit without a slot is none", () => {
  for (const node of [{ mode: "permit", slot: 12, guid: "a" }, { mode: "shared", slot: null, guid: "b" }] as const) {
    const name = holderNodeName(node);
    expect(parseHolderNode(name)).toEqual({ name, ...node });
  }
  for (const name of ["p-a", "x1-a", "s0-a", "p1234567-a"]) expect(parseHolderNode(name)).toBeNull();
});
