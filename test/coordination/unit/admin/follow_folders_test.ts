import { beforeEach, describe, expect, test } from "bun:test";
import {
  type FollowedFoldersRound,
  followObjectFolders,
  watchChildListReads,
} from "../../../../src/coordination/admin/follow_folders.ts";
import { readChildNames } from "../../../../src/coordination/nodes/node_requests.ts";
import { refuse } from "../../../support/fake_tree.ts";
import type { FakeZooKeeper } from "../../../support/fake_zookeeper.ts";
import { LockBench } from "../../../support/lock_bench.ts";

let bench: LockBench;
beforeEach(() => void (bench = new LockBench()));

/** How the servers report changes. */
const kinds = [
  { kind: "one-shot watches", prepare: (zk: FakeZooKeeper) => zk },
  { kind: "a recursive watch", prepare: (zk: FakeZooKeeper) => zk.knowRecursiveWatches() },
];

const folder = "/baton/locks";

/** Follows the numbers of holders of all locks. `shown`: what a reader of the changes has. */
function follow(zk: FakeZooKeeper = bench.client(), objectsMax = 100) {
  const end = new AbortController();
  const shown = new Map<string, number>();
  const rounds: FollowedFoldersRound<number>[] = [];
  const ended = (async () => {
    const folders = [{
      path: folder,
      read: async (client: typeof zk, name: string, watch: () => void) => {
        const lists = watchChildListReads(client, watch);
        await lists.getChildren(`${folder}/${name}`);
        return (await readChildNames(lists, `${folder}/${name}/h`)).length;
      },
    }];
    for await (
      const round of followObjectFolders<number>(zk, folders as never, {
        signal: end.signal,
        clock: bench.clock,
        objectsMax,
      })
    ) {
      rounds.push(round);
      for (const { name, value } of round.changes) {
        if (value === null) shown.delete(name);
        else shown.set(name, value);
      }
    }
  })();
  ended.catch(() => {});
  return { zk, shown, rounds, ended, end: () => end.abort(new Error("enough")) };
}

const put = (path: string) => bench.client().create(path, new Uint8Array(0));
const put3 = async (name: string) => {
  await put(`${folder}/${name}`);
  await put(`${folder}/${name}/h`);
};

async function makeFolder(): Promise<void> {
  await put("/baton").catch(() => {});
  await put(folder);
}

test.each(kinds)(
  "$kind: objects that come, change and go are reported without polling, from before the folder exists",
  async ({ prepare }) => {
    const { shown, end, ended } = follow(prepare(bench.client()));
    await bench.clock.advance(1000);
    expect([...shown]).toEqual([]);
    await makeFolder();
    await bench.clock.advance(1000);
    await put3("a");
    await bench.clock.advance(1000);
    expect([...shown]).toEqual([["a", 0]]);
    await put(`${folder}/a/h/x`);
    await bench.clock.advance(1000);
    expect([...shown]).toEqual([["a", 1]]);
    await bench.client().delete(`${folder}/a/h/x`, -1);
    await bench.clock.advance(1000);
    expect([...shown]).toEqual([["a", 0]]);
    await bench.client().delete(`${folder}/a/h`, -1);
    await bench.client().delete(`${folder}/a`, -1);
    await bench.clock.advance(1000);
    expect([...shown]).toEqual([]);
    await put3("a");
    await bench.clock.advance(1000);
    expect([...shown]).toEqual([["a", 0]]);
    end();
    await bench.clock.within(ended, { withinMs: 1000, state: () => "" });
  },
);

test.each(kinds)("$kind: a change of one object reads that object only", async ({ prepare }) => {
  await makeFolder();
  for (let index = 0; index < 20; index++) await put3(`lock${index}`);
  const { zk, shown, end } = follow(prepare(bench.client()));
  await bench.clock.advance(1000);
  expect(shown.size).toBe(20);
  const before = zk.sent.length;
  await put(`${folder}/lock7/h/x`);
  await bench.clock.advance(1000);
  expect(shown.get("lock7")).toBe(1);
  expect(zk.sent.length - before).toBe(2);
  end();
});

test("without a change nothing is read but the part that is checked from time to time", async () => {
  await makeFolder();
  for (let index = 0; index < 24; index++) await put3(`lock${index}`);
  const { zk, end } = follow();
  await bench.clock.advance(1000);
  const before = zk.sent.length;
  await bench.clock.advance(3000);
  expect(zk.sent.length).toBe(before);
  await bench.clock.advance(240_000);
  // Each object twice within four minutes at most three times, with two requests, and the list of the folder.
  expect(zk.sent.length - before).toBeGreaterThanOrEqual(2 * 24);
  expect(zk.sent.length - before).toBeLessThan(3 * 2 * 24 + 10);
  end();
});

test("many objects are read in rounds, and a folder with too many reports how many it omits", async () => {
  await makeFolder();
  for (let index = 0; index < 450; index++) await put3(`lock${index}`);
  const all = follow(bench.client(), 1000);
  await bench.clock.advance(2000);
  expect(all.rounds.map(({ unread }) => unread).slice(0, 3)).toEqual([250, 50, 0]);
  expect(all.shown.size).toBe(450);
  all.end();
  const few = follow(bench.client(), 100);
  await bench.clock.advance(2000);
  expect(few.shown.size).toBe(100);
  expect(few.rounds.at(-1)?.omitted).toBe(350);
  few.end();
});

test.each(kinds)(
  "$kind: an object that goes while it is read is not reported, and leaves no watch on missing nodes",
  async ({ prepare }) => {
    await makeFolder();
    await put3("a");
    const { zk, shown, end } = follow(prepare(bench.client()));
    await bench.clock.advance(1000);
    for (let round = 0; round < 5; round++) {
      await put3(`once${round}`);
      await bench.clock.advance(1000);
      await bench.client().delete(`${folder}/once${round}/h`, -1);
      await bench.client().delete(`${folder}/once${round}`, -1);
      await bench.clock.advance(1000);
    }
    expect([...shown]).toEqual([["a", 0]]);
    const before = zk.sent.length;
    await put3("once0");
    await bench.clock.advance(1000);
    // The list of the folder, and the two of the object: a watch that was left over would read more.
    expect(zk.sent.length - before).toBeLessThanOrEqual(5);
    end();
  },
);

test.each(kinds)(
  "$kind: a connection that is lost while many objects are read loses none of them",
  async ({ prepare }) => {
    await makeFolder();
    for (let index = 0; index < 120; index++) await put3(`lock${index}`);
    for (let cut = 1; cut <= 240; cut += 7) {
      const { shown, end } = follow(prepare(bench.client({ answered: cut, executed: cut })), 1000);
      await bench.clock.advance(10_000);
      end();
      expect(shown.size).toBe(120);
    }
  },
);

describe("with a recursive watch", () => {
  const text = (data: Uint8Array) => new TextDecoder().decode(data);
  /** Follows the data of all nodes in `h` of each lock. */
  function followData(zk = bench.client().knowRecursiveWatches()) {
    const end = new AbortController();
    const shown = new Map<string, string>();
    const read = async (client: FakeZooKeeper, name: string) => {
      const names = await readChildNames(client, `${folder}/${name}/h`);
      const found = await Promise.all(names.map((child) => client.getData(`${folder}/${name}/h/${child}`)));
      return found.map(({ data }) => text(data)).sort().join();
    };
    const folders = [{ path: folder, keepsReads: true, read }] as never;
    const ended = (async () => {
      for await (
        const { changes } of followObjectFolders<string>(zk, folders, { signal: end.signal, clock: bench.clock })
      ) {
        for (const { name, value } of changes) shown.set(name, value ?? "gone");
      }
    })();
    ended.catch(() => {});
    return { zk, shown, end: () => end.abort(new Error("enough")) };
  }
  const write = (path: string, data: string) => bench.client().setData(path, new TextEncoder().encode(data), -1);
  const add = (path: string, data: string) => bench.client().create(path, new TextEncoder().encode(data));

  test("changes of many objects within a second are read by two requests, and no list is read", async () => {
    await makeFolder();
    for (let index = 0; index < 20; index++) {
      await put3(`lock${index}`);
      await add(`${folder}/lock${index}/h/a`, "a");
    }
    const { zk, shown, end } = followData();
    await bench.clock.advance(1000);
    expect(new Set(shown.values())).toEqual(new Set(["a"]));
    const before = zk.sent.length;
    for (let index = 0; index < 20; index++) {
      await bench.client().delete(`${folder}/lock${index}/h/a`, -1);
      await add(`${folder}/lock${index}/h/b`, `b${index}`);
    }
    await bench.clock.advance(1000);
    expect(shown.get("lock7")).toBe("b7");
    expect(zk.sent.slice(before)).toEqual(["multiRead", "multiRead"]); // the first change alone, then all others
    end();
  });

  test("a change of data alone is seen, and so is one while the objects are read", async () => {
    await makeFolder();
    await put3("a");
    await add(`${folder}/a/h/x`, "1");
    const zk = bench.client().knowRecursiveWatches();
    let written = 1;
    zk.onSent = () => {
      if (zk.sent.at(-1) === "multiRead" && written < 4) void write(`${folder}/a/h/x`, `${++written}`);
    };
    const { shown, end } = followData(zk);
    await bench.clock.advance(10_000);
    expect(shown.get("a")).toBe("4");
    await write(`${folder}/a/h/x`, "5");
    await bench.clock.advance(1000);
    expect(shown.get("a")).toBe("5");
    end();
  });

  test("a server that does not know it gets one-shot watches, and is asked once", async () => {
    await makeFolder();
    await put3("a");
    const zk = bench.client();
    let asked = 0;
    zk.addRecursiveWatch = (path) => {
      asked++;
      return Promise.reject(refuse("UNIMPLEMENTED", "watch", path));
    };
    const { shown, end } = followData(zk);
    await bench.clock.advance(1000);
    await add(`${folder}/a/h/x`, "1");
    await bench.clock.advance(1000);
    zk.session.connections++;
    zk.session.setState("connected");
    await bench.clock.advance(10_000);
    expect([shown.get("a"), asked]).toEqual(["1", 1]);
    end();
  });
});
