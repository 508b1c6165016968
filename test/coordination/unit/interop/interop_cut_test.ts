/** A reply cut at every request/reply boundary of an interop lock: one holder, no orphan, no deadlock. */
import { expect, test } from "bun:test";
import { interopRecipes } from "../../../../src/coordination/nodes/interop_node_names.ts";
import { cutEverywhere } from "../../../support/cut_everywhere.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { childrenIn, FakeTree, refuse } from "../../../support/fake_tree.ts";
import { type Cut, FakeZooKeeper } from "../../../support/fake_zookeeper.ts";
import {
  acquireInteropLock,
  type AcquireInteropOptions,
} from "../../../../src/coordination/interop/interop_contender.ts";

const path = "/app/locks/nightly";

class Bench {
  readonly clock = new FakeClock();
  readonly tree = new FakeTree();
  readonly tokens: bigint[] = [];

  client(cut?: Cut): FakeZooKeeper {
    return new FakeZooKeeper(this.tree, this.clock, { timeoutMs: 60_000, ...(cut === undefined ? {} : { cut }) });
  }

  async acquire(zk: FakeZooKeeper, options: AcquireInteropOptions) {
    const lease = await acquireInteropLock(zk, path, { clock: this.clock, ...options });
    this.tokens.push(lease.fencingToken);
    return lease;
  }

  get line(): string[] {
    return childrenIn(this.tree.nodes, path);
  }

  within<T>(promise: Promise<T>): Promise<T> {
    return this.clock.within(promise, { withinMs: 5000, state: () => `line ${this.line}` });
  }

  async expectBusy(options: AcquireInteropOptions): Promise<void> {
    const attempt = this.acquire(this.client(), { ...options, wait: "none" });
    expect(await this.within(attempt.then(() => "granted", (error) => error.code))).toBe("LOCK_BUSY");
  }
}

test.each(interopRecipes)("%s: on a path that is not there yet", async (recipe) => {
  await cutEverywhere(async (cut) => {
    const bench = new Bench();
    const zk = bench.client(cut);
    const lease = await bench.within(bench.acquire(zk, { recipe }));
    expect(bench.line.length).toBe(1);
    await bench.expectBusy({ recipe });
    await bench.within(lease.release());
    expect(bench.line).toEqual([]);
    return zk.sent.length;
  });
});

test.each(interopRecipes)("%s: behind a holder and another contender", async (recipe) => {
  await cutEverywhere(async (cut) => {
    const bench = new Bench();
    const first = await bench.within(bench.acquire(bench.client(), { recipe }));
    const middle = bench.acquire(bench.client(), { recipe });
    await bench.clock.advance(0);
    const zk = bench.client(cut);
    const last = bench.acquire(zk, { recipe });
    await bench.clock.advance(3000);
    expect(bench.line.length).toBe(3);
    await bench.within(first.release());
    const second = await bench.within(middle);
    expect(bench.line.length).toBe(2);
    await bench.within(second.release());
    const third = await bench.within(last);
    await bench.expectBusy({ recipe });
    await bench.within(third.release());
    expect(bench.line).toEqual([]);
    expect(bench.tokens).toEqual([...bench.tokens].sort((a, b) => (a < b ? -1 : 1)));
    return zk.sent.length;
  });
});

test.each(["curator-rw", "kazoo"] as const)("%s: readers beside readers, a writer behind them", async (recipe) => {
  await cutEverywhere(async (cut) => {
    const bench = new Bench();
    const reader = await bench.within(bench.acquire(bench.client(), { recipe, mode: "shared" }));
    const zk = bench.client(cut);
    const other = await bench.within(bench.acquire(zk, { recipe, mode: "shared" }));
    await bench.expectBusy({ recipe });
    const writer = bench.acquire(bench.client(), { recipe });
    await bench.clock.advance(0);
    await bench.expectBusy({ recipe, mode: "shared" });
    await bench.within(reader.release());
    await bench.within(other.release());
    await bench.within((await bench.within(writer)).release());
    expect(bench.line).toEqual([]);
    return zk.sent.length;
  });
});

test.each(interopRecipes)("%s: with a node that the server lacks and the others have", async (recipe) => {
  const bench = new Bench();
  const first = await bench.within(bench.acquire(bench.client(), { recipe }));
  const [held] = bench.line;
  const zk = bench.client();
  const waiting = bench.acquire(zk, { recipe });
  await bench.clock.advance(0);
  const lost = bench.line.find((name) => name !== held);
  zk.hidden.add(`${path}/${lost}`);
  await bench.within(first.release());
  const second = await bench.within(waiting);
  zk.hidden.clear();
  expect(bench.line.length).toBe(1);
  await bench.within(second.release());
  expect(bench.line).toEqual([]);
});

test("a contender that stops deletes its node although the server lacks it", async () => {
  const bench = new Bench();
  const first = await bench.within(bench.acquire(bench.client(), { recipe: "kazoo" }));
  const [held] = bench.line;
  const zk = bench.client();
  const stop = new AbortController();
  const waiting = bench.acquire(zk, { recipe: "kazoo", signal: stop.signal }).catch((reason) => reason);
  await bench.clock.advance(0);
  zk.hidden.add(`${path}/${bench.line.find((name) => name !== held)}`);
  stop.abort("stopped");
  expect(await bench.within(waiting)).toBe("stopped");
  expect(bench.line).toEqual(held === undefined ? [] : [held]);
  await bench.within(first.release());
});

for (const isCut of [false, true]) {
  const again = isCut ? ", also in a second try" : "";
  test(`a contender that stops deletes no node of another program without an id${again}`, async () => {
    const bench = new Bench();
    const other = bench.client();
    for (const node of ["/app", "/app/locks", path]) await other.create(node, new Uint8Array());
    await other.create(`${path}/lock-`, new Uint8Array(), { mode: "ephemeralSequential" });
    const own = bench.client();
    const stop = new AbortController();
    const second = Promise.withResolvers<void>();
    const later = Promise.withResolvers<void>();
    let lists = 0;
    // The creation is lost. While the contender looks for its node, the call is stopped and looks as well; it hears
    // later.
    const zk = new Proxy(own, {
      get(target, name) {
        if (name === "create") {
          return () => Promise.reject(refuse("CONNECTIONLOSS", "create", path));
        }
        if (name === "getChildren") {
          return async (at: string) => {
            const number = ++lists;
            if (number === 2) {
              stop.abort("stopped");
              await second.promise;
            }
            if (number === 3) {
              second.resolve();
              await later.promise;
              if (isCut) throw refuse("CONNECTIONLOSS", "getChildren", path);
            }
            return await target.getChildren(at);
          };
        }
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const outcome = bench.acquire(zk, { recipe: "curator", signal: stop.signal }).catch((reason) => reason);
    await bench.clock.advance(0);
    later.resolve();
    expect(await bench.within(outcome)).toBe("stopped");
    await bench.clock.advance(3000);
    expect(lists).toBeGreaterThanOrEqual(3);
    expect(bench.line).toEqual(["lock-0000000000"]);
  });
}

test("strangers are refused before anything is made among them", async () => {
  const bench = new Bench();
  const zk = bench.client();
  for (const node of ["/app", "/app/locks", path, `${path}/stranger`]) await zk.create(node, new Uint8Array());
  const attempt = bench.acquire(zk, { recipe: "curator" });
  expect(await bench.within(attempt.catch((error) => error))).toMatchObject({ code: "CONFIG" });
  expect(bench.line).toEqual(["stranger"]);
});
