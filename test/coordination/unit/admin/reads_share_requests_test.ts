import { beforeEach, expect, test } from "bun:test";
import { NodeReadBatch } from "../../../../src/coordination/admin/follow_folders.ts";
import { LockBench } from "../../../support/lock_bench.ts";
import { refuse } from "../../../support/fake_tree.ts";

let bench: LockBench;
beforeEach(() => void (bench = new LockBench()));

const nodes = ["/a", "/b", "/c"];

/** Reads the nodes at the same time. Returns the text or the error of each. */
async function readAll(batch: NodeReadBatch, paths: readonly string[]): Promise<string[]> {
  const reading = Promise.all(paths.map((path) =>
    batch.client.getData(path).then(
      ({ data }) => new TextDecoder().decode(data),
      (thrown: { readonly reason: string }) => thrown.reason,
    )
  ));
  return await bench.clock.within(reading, { withinMs: 1000, state: () => "" });
}

async function batchOf(): Promise<{ batch: NodeReadBatch; zk: ReturnType<LockBench["client"]> }> {
  for (const path of nodes) await bench.client().create(path, new TextEncoder().encode(path.slice(1)));
  const zk = bench.client().knowRecursiveWatches();
  return { batch: new NodeReadBatch(zk, bench.clock), zk };
}

test("reads of one time are one request after join, and a missing node is the error of its read alone", async () => {
  const { batch, zk } = await batchOf();
  expect(await readAll(batch, nodes)).toEqual(["a", "b", "c"]);
  expect(zk.sent.splice(0)).toEqual(["getData", "getData", "getData"]);
  batch.join(true);
  expect(await readAll(batch, ["/a", "/none", "/c"])).toEqual(["a", "NONODE", "c"]);
  expect(zk.sent.splice(0)).toEqual(["multiRead"]);
  batch.join(false);
  await readAll(batch, ["/a"]);
  expect(zk.sent.splice(0)).toEqual(["getData"]);
});

test("after a lost connection requests are for one node, and grow: a response may have been too long", async () => {
  const { batch, zk } = await batchOf();
  batch.join(true);
  const read = zk.getDataOfAll;
  const sizes: number[] = [];
  zk.getDataOfAll = (paths) => {
    sizes.push(paths.length);
    return paths.length > 2 ? Promise.reject(refuse("CONNECTIONLOSS", "read", paths[0] ?? "")) : read?.(paths) as never;
  };
  expect(await readAll(batch, nodes)).toEqual(["CONNECTIONLOSS", "CONNECTIONLOSS", "CONNECTIONLOSS"]);
  expect(await readAll(batch, nodes)).toEqual(["a", "b", "c"]);
  expect(sizes.splice(0)).toEqual([3, 1, 1, 1]);
  await readAll(batch, nodes);
  expect(sizes).toEqual([2, 1]);
});
