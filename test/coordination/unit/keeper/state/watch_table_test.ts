import { expect, test } from "bun:test";
import { watchMode, WatchTable } from "../../../../../src/coordination/keeper/state/watch_table.ts";
import { watchEventType } from "../../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";

const fire = (
  table: WatchTable<string>,
  type: number,
  path: string,
  mayLearn: (watcher: string) => boolean = () => true,
) => [...table.fire({ type, path, mayLearn })].sort();

test("one watcher of a node and of its children hears of its end once", () => {
  const table = new WatchTable<string>();
  table.data.add("/a", "w", watchMode.once);
  table.children.add("/a", "w", watchMode.once);
  expect(fire(table, watchEventType.deleted, "/a")).toEqual(["w"]);
  expect(fire(table, watchEventType.deleted, "/a")).toEqual([]);
  expect(table.count).toBe(0);
});

test("a persistent watch stays, also where the same watcher has a one-shot one", () => {
  const table = new WatchTable<string>();
  table.addPersistent("/a", "w", watchMode.persistent);
  table.data.add("/a", "w", watchMode.once);
  for (let round = 0; round < 3; round++) expect(fire(table, watchEventType.dataChanged, "/a")).toEqual(["w"]);
  expect(fire(table, watchEventType.childrenChanged, "/a")).toEqual(["w"]);
});

test("a recursive watch hears of everything below, and never of children as such", () => {
  const table = new WatchTable<string>();
  table.addPersistent("/a", "w", watchMode.recursive);
  expect(fire(table, watchEventType.created, "/a/b/c")).toEqual(["w"]);
  expect(fire(table, watchEventType.deleted, "/a")).toEqual(["w"]);
  expect(fire(table, watchEventType.childrenChanged, "/a")).toEqual([]);
  expect(fire(table, watchEventType.created, "/ab")).toEqual([]);
});

test("nothing is left of a watcher that is gone", () => {
  const table = new WatchTable<string>();
  table.data.add("/a", "w", watchMode.once);
  table.children.add("/b", "w", watchMode.once);
  table.addPersistent("/c", "w", watchMode.recursive);
  table.removeAll("w");
  expect(table.count).toBe(0);
  expect([...table.data.watchers, ...table.children.watchers]).toEqual([]);
  expect(fire(table, watchEventType.created, "/c/d")).toEqual([]);
});
