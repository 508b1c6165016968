/**
 * Histories that are right, and the same with one thing changed that no right system can do: the first is accepted, the
 * other is not.
 */
import { describe, expect, test } from "bun:test";
import { checkHistory } from "./check_history.ts";
import type { HistoryOperation } from "./operation.ts";

type Fields = Record<string, unknown>;
type Row = readonly [from: number, to: number, client: string, what: string, input: Fields, output: Fields | null];

/** `what` is "do key…"; without output the outcome is unknown. */
function historyOf(model: string, rows: readonly Row[]): HistoryOperation[] {
  return rows.map(([from, to, client, what, input, output]) => {
    const [name = "", ...keys] = what.split(" ");
    const outcome = output === null ? "unknown" : "ok";
    return { model, client, session: client, do: name, keys, input, from, to, outcome, output };
  });
}

/** The right rows, and what to put in the place of some of them: by number, null to leave one out. */
interface Mutation {
  readonly what: string;
  readonly model: string;
  readonly good: readonly Row[];
  readonly bad: Readonly<Record<number, Row | null>>;
}

const forever = Infinity;
const znodes: readonly Row[] = [
  [0, 1, "a", "create /x", { data: "0" }, { version: 0, zxid: 1 }],
  [2, 3, "a", "set /x", { data: "1", version: 0 }, { version: 1, zxid: 2 }],
  [2, 6, "b", "get /x", {}, { data: "0", version: 0 }],
  [4, 5, "c", "get /x", {}, { data: "1", version: 1, mzxid: 2 }],
  [7, 8, "b", "delete /x", { version: 1 }, {}],
  [9, 10, "c", "get /x", {}, { error: "NONODE" }],
  [9, forever, "d", "create /x", { data: "2" }, null],
  [12, 13, "c", "get /x", {}, { data: "2", version: 0 }],
];
const multi: readonly Row[] = [
  [0, 1, "a", "create /x", { data: "0" }, {}],
  [0, 1, "b", "create /y", { data: "0" }, {}],
  [2, 5, "a", "multi /x /y", { parts: ["/x", "/y"].map((key) => ({ do: "set", key, data: "1", version: 0 })) }, {}],
  [3, 4, "b", "get /x", {}, { data: "1", version: 1 }],
  [6, 7, "b", "get /y", {}, { data: "1", version: 1 }],
  [8, 9, "a", "multi /x /y", {
    parts: [{ do: "check", key: "/x", version: 1 }, { do: "delete", key: "/y", version: 1 }],
  }, {}],
  [10, 11, "b", "get /y", {}, { error: "NONODE" }],
];
const ephemeral: readonly Row[] = [
  [0, 1, "a", "create /e", { data: "0", ephemeral: true }, {}],
  [2, 3, "b", "get /e", {}, { data: "0", version: 0 }],
  [4, 5, "a", "end /e", {}, {}],
  [6, 7, "b", "get /e", {}, { error: "NONODE" }],
];
const lock: readonly Row[] = [
  [0, 1, "a", "acquire l", { holder: "a" }, { token: 5 }],
  [0, 12, "b", "acquire l", { holder: "b" }, { token: 9 }],
  [2, 3, "c", "acquire l", { holder: "c" }, { busy: true }],
  [6, 7, "a", "release l", { holder: "a", token: 5 }, {}],
  [13, 14, "b", "release l", { holder: "b", token: 9 }, {}],
  [15, 16, "c", "acquire l", { holder: "c" }, { token: 11 }],
];
const permits = (holder: string, count = 1) => ({ holder, limit: 2, permits: count });
const semaphore: readonly Row[] = [
  [0, 1, "a", "acquire s", permits("a"), {}],
  [2, 3, "b", "acquire s", permits("b"), {}],
  [4, 9, "c", "acquire s", permits("c"), {}],
  [7, 8, "a", "release s", { holder: "a" }, {}],
  [10, 11, "b", "release s", { holder: "b" }, {}],
  [12, 13, "c", "release s", { holder: "c" }, {}],
  [14, 15, "a", "acquire s", permits("a", 2), {}],
];
const arrive = (member: string) => ({ member, parties: 2 });
const barrier: readonly Row[] = [
  [0, forever, "a1", "arrive b", arrive("a"), null],
  [5, forever, "b1", "arrive b", arrive("b"), null],
  [0, 7, "a2", "depart b", { member: "a" }, { token: 3 }],
  [5, 8, "b2", "depart b", { member: "b" }, { token: 3 }],
  [9, forever, "c1", "arrive b", arrive("c"), null],
  [10, forever, "d1", "arrive b", arrive("d"), null],
  [9, 12, "c2", "depart b", { member: "c" }, { token: 7 }],
  [10, 12, "d2", "depart b", { member: "d" }, { token: 7 }],
];
const log: readonly Row[] = [
  [0, 1, "p", "append t", { value: "x" }, { id: 1 }],
  [2, 3, "p", "append t", { value: "y" }, { id: 2 }],
  [4, 5, "r", "take t", { reader: "r" }, { entries: [[1, "x"], [2, "y"]] }],
  [4, forever, "q", "append t", { value: "z" }, null],
  [6, 7, "s", "read t", { after: 1 }, { entries: [[2, "y"], [3, "z"]] }],
  [8, 9, "r", "take t", { reader: "r" }, { entries: [[3, "z"]] }],
  [10, 11, "r", "take t", { reader: "r" }, { entries: [] }],
];

const mutations: readonly Mutation[] = [
  {
    what: "stale read",
    model: "znode",
    good: znodes,
    bad: { 3: [4, 5, "c", "get /x", {}, { data: "0", version: 0 }] },
  },
  { what: "lost write", model: "znode", good: znodes, bad: { 4: [7, 8, "b", "delete /x", { version: 0 }, {}] } },
  {
    what: "data without its version",
    model: "znode",
    good: znodes,
    bad: { 3: [4, 5, "c", "get /x", {}, { data: "1", version: 2 }] },
  },
  {
    what: "deleted node read",
    model: "znode",
    good: znodes,
    bad: { 5: [9, 10, "c", "get /x", {}, { data: "1", version: 1 }] },
  },
  { what: "write that no client has made", model: "znode", good: znodes, bad: { 6: null } },
  {
    what: "zxids against the order of time",
    model: "znode",
    good: znodes,
    bad: { 1: [2, 3, "a", "set /x", { data: "1", version: 0 }, { version: 1, zxid: 1 }], 3: null },
  },
  {
    what: "another zxid read than was answered",
    model: "znode",
    good: znodes,
    bad: { 3: [4, 5, "c", "get /x", {}, { data: "1", version: 1, mzxid: 3 }] },
  },
  {
    what: "compare-and-set of a wrong version",
    model: "znode",
    good: znodes,
    bad: { 1: [2, 3, "a", "set /x", { data: "1", version: 7 }, { version: 1, zxid: 2 }] },
  },
  {
    what: "refusal of a right version",
    model: "znode",
    good: znodes,
    bad: { 4: [7, 8, "b", "delete /x", { version: 1 }, { error: "BADVERSION" }], 5: null, 6: null, 7: null },
  },
  {
    what: "acknowledged without effect",
    model: "znode",
    good: znodes,
    bad: { 5: [9, 10, "c", "get /x", {}, { data: "1", version: 1, mzxid: 2 }], 6: null, 7: null },
  },
  { what: "created twice", model: "znode", good: znodes, bad: { 5: [5.5, 6, "c", "create /x", { data: "3" }, {}] } },
  {
    what: "half a transaction",
    model: "znode",
    good: multi,
    bad: { 4: [6, 7, "b", "get /y", {}, { data: "0", version: 0 }] },
  },
  {
    what: "transaction in spite of a failed check",
    model: "znode",
    good: multi,
    bad: {
      5: [8, 9, "a", "multi /x /y", {
        parts: [{ do: "check", key: "/x", version: 0 }, { do: "delete", key: "/y", version: 1 }],
      }, {}],
    },
  },
  {
    what: "transaction that failed with effect",
    model: "znode",
    good: multi,
    bad: {
      5: [8, 9, "a", "multi /x /y", {
        parts: [{ do: "check", key: "/x", version: 0 }, { do: "delete", key: "/y", version: 1 }],
      }, { error: "BADVERSION", index: 0 }],
    },
  },
  {
    what: "ephemeral node that outlives its session",
    model: "znode",
    good: ephemeral,
    bad: { 3: [6, 7, "b", "get /e", {}, { data: "0", version: 0 }] },
  },
  {
    what: "ephemeral node gone before its session",
    model: "znode",
    good: ephemeral,
    bad: { 1: [2, 3, "b", "get /e", {}, { error: "NONODE" }] },
  },
  {
    what: "two holders",
    model: "lock",
    good: lock,
    bad: { 1: [0, 5, "b", "acquire l", { holder: "b" }, { token: 9 }] },
  },
  {
    what: "token goes back",
    model: "lock",
    good: lock,
    bad: { 5: [15, 16, "c", "acquire l", { holder: "c" }, { token: 7 }] },
  },
  {
    what: "token twice",
    model: "lock",
    good: lock,
    bad: { 1: [0, 12, "b", "acquire l", { holder: "b" }, { token: 5 }], 4: null, 5: null },
  },
  {
    what: "busy while free",
    model: "lock",
    good: lock,
    bad: { 5: [15, 16, "c", "acquire l", { holder: "c" }, { busy: true }] },
  },
  {
    what: "release by another process",
    model: "lock",
    good: lock,
    bad: { 3: [6, 7, "a", "release l", { holder: "c" }, {}] },
  },
  {
    what: "permit over the limit",
    model: "semaphore",
    good: semaphore,
    bad: { 3: [9.5, 9.7, "a", "release s", { holder: "a" }, {}] },
  },
  {
    what: "two permits where one is left",
    model: "semaphore",
    good: semaphore,
    bad: { 1: [2, 3, "b", "acquire s", permits("b", 2), {}] },
  },
  {
    what: "permit lost without reason",
    model: "semaphore",
    good: semaphore,
    bad: { 4: [10, 11, "b", "release s", { holder: "b" }, { lost: true }] },
  },
  {
    what: "early release",
    model: "barrier",
    good: barrier,
    bad: { 2: [0, 4, "a2", "depart b", { member: "a" }, { token: 3 }] },
  },
  { what: "member of no generation", model: "barrier", good: barrier, bad: { 5: null, 7: null } },
  {
    what: "two tokens in a generation",
    model: "barrier",
    good: barrier,
    bad: { 3: [5, 8, "b2", "depart b", { member: "b" }, { token: 4 }] },
  },
  {
    what: "generation with an older token",
    model: "barrier",
    good: barrier,
    bad: {
      6: [9, 12, "c2", "depart b", { member: "c" }, { token: 2 }],
      7: [10, 12, "d2", "depart b", { member: "d" }, { token: 2 }],
    },
  },
  {
    what: "member that had ended",
    model: "barrier",
    good: barrier,
    bad: {
      0: [0, 2, "a1", "arrive b", arrive("a"), {}],
      4: [3, 4, "a1", "quit b", { member: "a" }, {}],
      2: null,
      5: null,
      6: null,
      7: null,
    },
  },
  {
    what: "entry twice",
    model: "log",
    good: log,
    bad: { 5: [8, 9, "r", "take t", { reader: "r" }, { entries: [[2, "y"], [3, "z"]] }] },
  },
  {
    what: "entry lost",
    model: "log",
    good: log,
    bad: { 2: [4, 5, "r", "take t", { reader: "r" }, { entries: [[2, "y"]] }] },
  },
  {
    what: "entries swapped",
    model: "log",
    good: log,
    bad: { 2: [4, 5, "r", "take t", { reader: "r" }, { entries: [[2, "y"], [1, "x"]] }] },
  },
  { what: "ID goes back", model: "log", good: log, bad: { 1: [2, 3, "p", "append t", { value: "y" }, { id: 0 }] } },
  { what: "entry of no writer", model: "log", good: log, bad: { 3: null } },
  {
    what: "nothing where something is left",
    model: "log",
    good: log,
    bad: { 5: [8, 9, "r", "take t", { reader: "r" }, { entries: [] }] },
  },
  {
    what: "acknowledged entry missing",
    model: "log",
    good: log,
    bad: { 4: [6, 7, "s", "read t", { after: 1 }, { entries: [[3, "z"]] }] },
  },
];

describe("one thing changed", () => {
  for (const { what, model, good, bad } of mutations) {
    test(`${model}: ${what}`, () => {
      const verdictOf = (rows: readonly Row[], withoutWitness: boolean) =>
        checkHistory(historyOf(model, rows), { withoutWitness }).partitions.map(({ verdict }) => verdict).sort().at(-1);
      const changed = good.map((row, index) => (index in bad ? bad[index] ?? null : row)).filter((row) => row !== null);
      for (const withoutWitness of [false, true]) {
        expect(verdictOf(good, withoutWitness)).toBe("linearizable");
        expect(verdictOf(changed, withoutWitness)).toBe("violated");
      }
    });
  }
});
