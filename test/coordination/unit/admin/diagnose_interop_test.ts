import { expect, test } from "bun:test";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import { diagnoseInteropLock, diagnoseInteropLocks } from "../../../../src/coordination/admin/list_interop.ts";

const lock = (sequence: number, ...names: string[]) => ({
  path: "/a",
  recipe: "kazoo" as const,
  children: names.map((name) => ({ name, isEphemeral: true })),
  sequence,
});
const severitiesOf = (found: ReturnType<typeof lock>) => diagnoseInteropLock(found).map(({ severity }) => severity);

test("a counter that two may hold at once at is told before it is there", () => {
  expect(severitiesOf(lock(7, "x__lock__0000000006"))).toEqual([]);
  expect(severitiesOf(lock(2_100_000_000))).toEqual(["warning"]);
  expect(severitiesOf(lock(2 ** 31 - 1))).toEqual(["problem"]);
  expect(severitiesOf(lock(7, "x__lock__-147483648"))).toEqual(["problem"]);
});

test("names of another recipe, and of none, are told with whose they are", () => {
  const [other, none] = diagnoseInteropLock(lock(7, "x-lock-0000000001", "nonsense"));
  expect(other?.what).toContain("belongs to Curator's InterProcessMutex");
  expect(none?.what).toContain('"nonsense" has no name of this recipe');
});

test("a node without children is looked at and counts as no lock; none is read twice", async () => {
  const tree: Record<string, readonly [children: string[], cversion: number]> = {
    "/app": [["held", "folder", "worn"], 3],
    "/app/held": [["x__lock__0000000006"], 7],
    "/app/folder": [[], 0],
    "/app/worn": [[], 2_100_000_000],
  };
  const read: string[] = [];
  const zk = {
    sync: () => Promise.resolve(),
    exists: () => Promise.resolve({ ephemeralOwner: 1n }),
    getChildren(path: string) {
      read.push(path);
      const [children = [], cversion = 0] = tree[path] ?? [];
      return Promise.resolve({ children, stat: { cversion } });
    },
  } as unknown as ZooKeeper;
  const found = await diagnoseInteropLocks(zk, "/app", "kazoo");
  expect([found?.locks, found?.findings.map(({ where }) => where)]).toEqual([1, ['lock "/app/worn"']]);
  expect(read.sort()).toEqual(Object.keys(tree).sort());
  expect((await diagnoseInteropLocks(zk, "/app/worn", "kazoo"))?.findings.length).toBe(1);
});
