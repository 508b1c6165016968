import { expect, test } from "bun:test";
import type { Access } from "./history.ts";
import { judgeAppends, judgeHeld, judgeOrder, judgeRegister, judgeWatches } from "./judge.ts";

const access = (kind: "read" | "write", version: number | null, more: Partial<Access> = {}): Access => ({
  session: 1,
  node: "r0",
  kind,
  outcome: version === null ? "CONNECTIONLOSS" : "done",
  stat: version === null ? null : { version, mzxid: BigInt(version) },
  ...more,
});
const last = (version: number) => ({ version, mzxid: BigInt(version) });

test("what was acknowledged is there once; what is unknown may be there; what was not done is not", () => {
  const appends = [
    { id: "a", outcome: "done", name: "a-0000000001" },
    { id: "b", outcome: "CONNECTIONLOSS", name: null },
    { id: "c", outcome: "CONNECTIONLOSS", name: null },
    { id: "d", outcome: "OPERATIONTIMEOUT", name: null },
  ];
  expect(judgeAppends(appends, ["a-0000000001", "c-0000000003"])).toEqual([]);
  expect(judgeAppends(appends, [])).toEqual(["a was acknowledged as a-0000000001, and undefined is there"]);
  const wrong = ["a-0000000001", "c-0000000003", "c-0000000004", "d-0000000005", "e-0000000006"];
  expect(judgeAppends(appends, wrong).map((failure) => failure.slice(0, 20))).toEqual([
    "c was created 2 time",
    "d was said not to be",
    "e is there, and nobo",
  ]);
});

test("a register has as many versions as were written, and the acknowledged ones among them", () => {
  const accesses = [access("write", 1), access("write", null), access("write", 3)];
  expect(judgeRegister("r0", accesses, last(3))).toEqual([]);
  expect(judgeRegister("r0", accesses, last(2))).toHaveLength(1);
  expect(judgeRegister("r0", accesses, last(4))).toHaveLength(1);
  expect(judgeRegister("r0", [access("write", 1), access("write", 1)], last(1))).toHaveLength(1);
});

test("a session that has seen a change reads nothing from before it, of whatever register", () => {
  const own = [access("write", 5), access("read", 5), access("read", 7)];
  expect(judgeOrder(own)).toEqual([]);
  expect(judgeOrder([...own, access("read", 5)])).toHaveLength(1);
  const other = [access("write", 6, { session: 2, node: "r1" })];
  expect(judgeOrder([...own, ...other, access("read", 2, { node: "r1" })])).toHaveLength(1);
  expect(judgeOrder([...own, ...other, access("read", 2, { node: "r1", session: 3 })])).toEqual([]);
  const later = [access("write", 8, { session: 2, node: "r1" })];
  expect(judgeOrder([...own, ...later, access("read", 2, { node: "r1" })])).toEqual([]);
});

test("a lock has one holder at a time, and its tokens grow", () => {
  const held = (fromMs: number, toMs: number, token: bigint, lock = "l") => ({ fromMs, toMs, token, lock });
  expect(judgeHeld([held(0, 2, 1n), held(2, 3, 2n), held(1, 4, 1n, "m")])).toEqual([]);
  expect(judgeHeld([held(0, 2, 1n), held(1, 3, 2n)])).toHaveLength(1);
  expect(judgeHeld([held(0, 2, 2n), held(2, 3, 1n)])).toHaveLength(1);
});

test("a watch tells of a change once, and of nothing else", () => {
  const watch = (expected: string | null, ...told: string[]) => judgeWatches([{ path: "/w", expected, told }]).length;
  expect([watch("created", "created"), watch(null)]).toEqual([0, 0]);
  expect([watch("created"), watch("created", "created", "created"), watch(null, "created")]).toEqual([1, 1, 1]);
  expect(watch("deleted", "created")).toBe(1);
});
