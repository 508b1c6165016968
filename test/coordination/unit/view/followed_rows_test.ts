import { expect, test } from "bun:test";
import type { RowChange } from "../../../../src/base/rows/row_kinds.ts";
import { newGuid } from "../../../../src/base/support/guid.ts";
import { holderNodeName } from "../../../../src/coordination/lock/lock_nodes.ts";
import { lockPath } from "../../../../src/coordination/nodes/node_paths.ts";
import { poolPath } from "../../../../src/coordination/pool/pool_path.ts";
import { followObjectRows } from "../../../../src/coordination/view/followed_rows.ts";
import { LockBench } from "../../../support/lock_bench.ts";

test("a pool has the jobs that hold its items, without their sessions; what is gone is told", async () => {
  const bench = new LockBench();
  const zk = bench.client();
  const shown = new Map<string, RowChange["row"]>();
  const end = new AbortController();
  const following = (async () => {
    const options = { root: "/baton", signal: end.signal, clock: bench.clock, gatherMs: 100 };
    for await (const { changes } of followObjectRows(bench.client(), options)) {
      for (const { kind, key, row } of changes) {
        if (row === null) shown.delete(`${kind} ${key}`);
        else shown.set(`${kind} ${key}`, row);
      }
    }
  })();
  const put = async (path: string, data = {}) => {
    const parts = path.split("/").slice(1);
    for (const [index] of parts.entries()) {
      const bytes = new TextEncoder().encode(index === parts.length - 1 ? JSON.stringify(data) : "");
      await zk.create(`/${parts.slice(0, index + 1).join("/")}`, bytes).catch(() => {});
    }
  };
  await put(poolPath("papers", { root: "/baton" }).own);
  const node = holderNodeName({ mode: "exclusive", slot: null, guid: newGuid() });
  const holder = `${lockPath("papers/a").holders}/${node}`;
  await put(holder, { host: "db1", pid: 7, user: "root", argv0: "job.sh --password secret", sinceMs: 1 });
  await bench.clock.advance(2000);
  expect([...shown.keys()].sort()).toEqual(["lock papers/a", "pool papers"]);
  expect(shown.get("pool papers")).toMatchObject({
    holders: 1,
    items: [{ item: "a", state: "running", holder: { host: "db1", command: "job.sh" } }],
  });
  expect(shown.get("lock papers/a")).toMatchObject({ first_holders: [{ command: "job.sh", session_id: null }] });
  await zk.delete(holder, -1);
  await bench.clock.advance(2000);
  expect([...shown]).toEqual([["pool papers", expect.objectContaining({ holders: 0, items: [] })]]);
  end.abort(new Error("enough"));
  await following;
});
