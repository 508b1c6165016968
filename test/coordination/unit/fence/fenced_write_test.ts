/**
 * A write that goes by the holder's node: exactly once whatever is lost on the way, and never when the holder is gone.
 */
import { describe, expect, test } from "bun:test";
import {
  type FencedNodeOperation,
  fencedWrite,
  type FencedWriteResult,
  findReservedNodeFolder,
} from "../../../../src/coordination/fence/fenced_write.ts";
import { findOwnHolderNode } from "../../../../src/coordination/admin/own_holder.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { childrenIn, FakeTree } from "../../../support/fake_tree.ts";
import { type Cut, FakeZooKeeper } from "../../../support/fake_zookeeper.ts";

const pipelineMax = 4;
const holder = { name: "n", node: "/baton/locks/n/h/x-abc" };
const text = (value: string) => new TextEncoder().encode(value);
const set: FencedNodeOperation = { do: "set", path: "/app", data: text("new"), version: -1 };

class FenceBench {
  readonly clock = new FakeClock();
  readonly tree = new FakeTree();

  constructor() {
    for (const path of ["/baton", "/baton/locks", "/baton/locks/n", "/baton/locks/n/h", holder.node, "/app"]) {
      this.tree.create(path, text("old"), 0, 0n);
    }
  }

  client(cut?: Cut): FakeZooKeeper {
    return new FakeZooKeeper(this.tree, this.clock, { timeoutMs: 10_000, ...(cut === undefined ? {} : { cut }) });
  }

  write(zk: FakeZooKeeper, deed: FencedNodeOperation): Promise<FencedWriteResult> {
    return this.within(fencedWrite(zk, deed, { held: [holder], clock: this.clock }));
  }

  /** What became of it: how it was written, or the failure's code. */
  async outcome(deed: FencedNodeOperation): Promise<FencedWriteResult | string> {
    return await this.write(this.client(), deed).catch((error) => `${error.code}: ${error.message}`);
  }

  data(path: string): string {
    return new TextDecoder().decode(this.tree.nodes.get(path)?.data);
  }

  version(path: string): number | undefined {
    return this.tree.nodes.get(path)?.version;
  }

  within<T>(promise: Promise<T>, withinMs = 20_000): Promise<T> {
    return this.clock.within(promise, { withinMs });
  }
}

describe("cut anywhere, it is done exactly once", () => {
  const cases: [
    name: string,
    deed: FencedNodeOperation,
    check: (bench: FenceBench, written: FencedWriteResult) => void,
  ][] = [
    ["set", set, (bench, written) => {
      expect([bench.data("/app"), bench.version("/app"), written]).toEqual(["new", 1, {
        path: "/app",
        nodeVersion: 1,
      }]);
    }],
    [
      "create",
      { do: "create", path: "/a/b/c", data: text("c"), parents: true, sequential: false },
      (bench, written) => {
        expect([bench.data("/a/b/c"), written]).toEqual(["c", { path: "/a/b/c", nodeVersion: 0 }]);
      },
    ],
    [
      "create with a number",
      { do: "create", path: "/app/log-", data: text("c"), parents: false, sequential: true },
      (bench, written) => {
        expect(childrenIn(bench.tree.nodes, "/app").map((name) => `/app/${name}`)).toEqual([written.path]);
        expect(written.path).toMatch(/^\/app\/log-\d{10}$/);
      },
    ],
    ["delete", { do: "delete", path: "/app", version: 0 }, (bench, written) => {
      expect([bench.tree.nodes.has("/app"), written]).toEqual([false, { path: "/app", nodeVersion: null }]);
    }],
  ];
  for (const [name, deed, check] of cases) {
    test(name, async () => {
      const whole = new FenceBench();
      const zk = whole.client();
      check(whole, await whole.write(zk, deed));
      let runs = 0;
      for (let answered = 0; answered < zk.sent.length; answered++) {
        for (let executed = answered; executed <= answered + pipelineMax; executed++) {
          const bench = new FenceBench();
          const written = await bench.write(bench.client({ answered, executed }), deed).catch((cause) => {
            throw new Error(`Answered up to ${answered}, executed up to ${executed}: ${cause}`, { cause });
          });
          check(bench, written);
          runs++;
        }
      }
      expect(runs).toBeGreaterThan(pipelineMax);
    });
  }
});

test("nothing is written when the holder's node is gone, also when the answer is lost", async () => {
  for (const cut of [undefined, ...[0, 1, 2, 3].map((executed) => ({ answered: 0, executed }))]) {
    const bench = new FenceBench();
    bench.tree.delete(holder.node, -1);
    const writing = bench.write(bench.client(cut), set);
    expect(await writing.catch((error) => [error.code, error.message])).toEqual([
      "STALE_TOKEN",
      `"/app" was not set: this job no longer holds lock "n": the node of its holder, "${holder.node}", is gone`,
    ]);
    expect([bench.data("/app"), bench.version("/app")]).toEqual(["old", 0]);
  }
});

test("the session's end takes the mark away, and with it what could be known", async () => {
  const bench = new FenceBench();
  const zk = bench.client({ answered: 0, executed: 9 });
  zk.session.subscribe(() => zk.session.state === "connecting" && queueMicrotask(() => zk.expire()));
  expect(await bench.write(zk, set).catch((error) => error.code)).toBe("OUTCOME_UNKNOWN");
});

test("a condition that is not met is an error with the actual state", async () => {
  const bench = new FenceBench();
  bench.tree.create("/app/child", text(""), 0, 0n);
  const create = { do: "create", data: text(""), parents: false, sequential: false } as const;
  expect(await bench.outcome({ ...set, path: "/none" })).toBe(
    'NOT_FOUND: Cannot set "/none": the node does not exist; create it with baton fence zk create',
  );
  expect(await bench.outcome({ ...set, version: 3 })).toBe(
    'FALSE: Cannot set "/app": it has version 0, not version 3',
  );
  expect(await bench.outcome({ ...create, path: "/app" })).toBe('FALSE: Cannot create "/app": it already exists');
  expect(await bench.outcome({ ...create, path: "/x/y/z" })).toBe(
    'NOT_FOUND: Cannot create "/x/y/z": the parent "/x" does not exist; -p creates it',
  );
  expect(await bench.outcome({ do: "delete", path: "/app", version: -1 })).toBe(
    'FALSE: Cannot delete "/app": it has a child; delete it first',
  );
  expect(await bench.outcome({ do: "delete", path: "/none", version: -1 })).toBe(
    'NOT_FOUND: Cannot delete "/none": the node does not exist',
  );
  expect([bench.data("/app"), bench.version("/app")]).toEqual(["old", 0]);
});

test("the holder is found by the job's ids, among holders and among a barrier's members", async () => {
  const bench = new FenceBench();
  const zk = bench.client();
  expect(await findOwnHolderNode(zk, "/baton/locks/n", ["outer", "abc"])).toMatchObject({
    node: holder.node,
    token: 5n,
  });
  expect(await findOwnHolderNode(zk, "/baton/locks/n", ["abcd"])).toBeNull();
  expect(await findOwnHolderNode(zk, "/baton/locks/gone", ["abc"])).toBeNull();
  const party = "/baton/locks/n/p-e.1-2f-abd-0000000001";
  bench.tree.create(party, text(""), 0, 0n);
  expect(await findOwnHolderNode(zk, "/baton/locks/n", ["abd"])).toEqual({ node: party, token: null });
});

test("baton's own folders are known, and nothing beside them", () => {
  expect(findReservedNodeFolder("/baton/locks")).toBe("/baton/locks");
  expect(findReservedNodeFolder("/baton/pools/a/total")).toBe("/baton/pools");
  expect(findReservedNodeFolder("/locks/a", "/")).toBe("/locks");
  for (const path of ["/baton", "/baton/locksmith", "/app/locks", "/locks"]) {
    expect(findReservedNodeFolder(path)).toBeNull();
  }
});
