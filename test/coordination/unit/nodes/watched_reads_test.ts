import { beforeEach, expect, test } from "bun:test";
import { NodeReadCache } from "../../../../src/coordination/nodes/watched_reads.ts";
import { nullIfNoNode, readChildNames } from "../../../../src/coordination/nodes/node_requests.ts";
import { LockBench } from "../../../support/lock_bench.ts";

let bench: LockBench;
beforeEach(() => void (bench = new LockBench()));

const put = (path: string, text = "") => bench.client().create(path, new TextEncoder().encode(text));

/** `count`: how many requests were sent since the last call. */
function watched(options: { readonly watchesData?: boolean } = {}) {
  const zk = bench.client();
  const changed: string[] = [];
  const reads = new NodeReadCache(zk, ({ path }) => changed.push(path), options);
  let before = zk.sent.length;
  const count = () => {
    const sent = zk.sent.length - before;
    before = zk.sent.length;
    return sent;
  };
  const text = async (path: string) => new TextDecoder().decode((await reads.client.getData(path)).data);
  const names = (path: string) => readChildNames(reads.client, path);
  return { reads, changed, count, text, names };
}

/** Lets reports of changes arrive. */
const settle = () => bench.clock.advance(10);

test("what was read is requested again only after a change of it was reported", async () => {
  await put("/a", "1");
  await put("/a/x", "2");
  const { changed, count, text, names } = watched();
  const read = async () => [await text("/a/x"), await names("/a")] as const;
  expect(await read()).toEqual(["2", ["x"]]);
  expect(count()).toBe(2);
  await read();
  expect(count()).toBe(0);
  await bench.client().setData("/a/x", new TextEncoder().encode("3"), -1);
  await settle();
  expect(changed).toEqual(["/a/x"]);
  expect(await read()).toEqual(["3", ["x"]]);
  expect(count()).toBe(1);
  await put("/a/y");
  await settle();
  expect(await read()).toEqual(["3", ["x", "y"]]);
  expect(count()).toBe(1);
});

test("a missing node is read again when its parent's list has changed, and always if that is not watched", async () => {
  await put("/a");
  const { count, names } = watched();
  await names("/a/h");
  await names("/a/h");
  expect(count()).toBe(2);
  await names("/a");
  await names("/a/h");
  await names("/a/h");
  expect(count()).toBe(2);
  await put("/a/h");
  await put("/a/h/x");
  await settle();
  await names("/a");
  expect(await names("/a/h")).toEqual(["x"]);
  await bench.client().delete("/a/h/x", -1);
  await bench.client().delete("/a/h", -1);
  await settle();
  expect(await names("/a/h")).toEqual([]);
});

test("without watches of data it is kept until everything is forgotten", async () => {
  await put("/a", "1");
  const { reads, changed, text } = watched({ watchesData: false });
  await text("/a");
  await bench.client().setData("/a", new TextEncoder().encode("2"), -1);
  await settle();
  expect([await text("/a"), changed]).toEqual(["1", []]);
  reads.forget();
  expect(await text("/a")).toBe("2");
});

test("a refused read is not kept, and does not fail the next one", async () => {
  const { text, reads } = watched();
  expect(await nullIfNoNode(text("/a"))).toBeNull();
  await put("/a", "1");
  expect(await text("/a")).toBe("1");
  reads.forget();
  expect(await text("/a")).toBe("1");
});
