import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { openAcl } from "../../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import {
  decodeKeeperNode,
  decodeKeeperRows,
  decodeKeeperSession,
  encodeKeeperChanges,
} from "../../../../../src/coordination/keeper/storage/keeper_rows.ts";
import type { MultiRequest } from "../../../../../src/protocols/zookeeper/jute/multi_request.ts";
import { createFlag } from "../../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { property } from "../../../../support/property.ts";
import { nextNodeVersion } from "../../../../../src/coordination/keeper/state/transaction.ts";
import { StateDriver } from "./state_driver.ts";

const create = (path: string, flags = 0): MultiRequest => ({
  type: "create",
  path,
  data: null,
  acl: [...openAcl],
  flags,
});

describe("numbers of transactions", () => {
  test("a failed write has one of its own, a read has none", () => {
    const client = new StateDriver().client();
    const first = client.create("/a").zxid;
    expect(client.create("/a")).toMatchObject({ error: -110, zxid: first + 1n });
    expect(client.call("exists", { path: "/a", watch: false }).zxid).toBe(first + 1n);
    expect(client.multi([create("/b"), create("/b")]).zxid).toBe(first + 2n);
  });

  test("a fresh directory starts above everything an older one can have given out", () => {
    const driver = new StateDriver();
    expect(driver.state.zxid).toBe(BigInt(driver.wallMs / 1000) << 24n);
  });

  test("so does every start, as a directory may come from a backup; a clock that went back changes nothing", () => {
    const driver = new StateDriver();
    const nodes = driver.state.tree.size;
    for (const [wallMs, seconds] of [[2e12, 2e9], [1e12, 2e9]] as const) {
      driver.wallMs = wallMs;
      driver.state.initialize();
      const { zxid } = driver.client().create("/a");
      expect([zxid >> 24n, driver.state.tree.size]).toEqual([BigInt(seconds), nodes + 1]);
    }
  });

  test("no client sees the higher zxid of a start before a transaction stored it: the next may not know it", () => {
    const driver = new StateDriver();
    const client = driver.client();
    const stored = client.create("/a").zxid;
    driver.state.takeChanges();
    driver.wallMs = 2e12;
    driver.state.initialize();
    expect(client.call("exists", { path: "/a", watch: false }).zxid).toBe(stored);
    expect(driver.state.hasUrgentChanges).toBe(false);
    expect(client.create("/b").zxid).toBe((2_000_000_000n << 24n) + 1n);
  });

  test("a client that has seen more than a restored backup has is accepted, as far as the wall clock can tell", () => {
    const driver = new StateDriver();
    driver.wallMs = 2e12;
    driver.state.initialize();
    const seconds = 2_000_000_000n;
    expect([seconds << 24n, (seconds << 24n) + 1n].map((zxid) => driver.state.mayHaveGiven(zxid))).toEqual([
      true,
      false,
    ]);
  });

  test("a session is numbered by its own transaction", () => {
    const driver = new StateDriver();
    const ids = [driver.client(), driver.client()].map(({ session }) => session.id);
    driver.client().create("/a");
    ids.push(driver.client().session.id);
    expect(new Set(ids).size).toBe(3);
  });
});

test("a node's version wraps after 2^31-1, and is never the -1 that stands for any", () => {
  expect([0, 2 ** 31 - 1, -(2 ** 31), -3, -2, -1].map(nextNodeVersion)).toEqual([1, -(2 ** 31), 1 - 2 ** 31, -2, 0, 0]);
});

describe("sequences", () => {
  test("count every create, and never go down", () => {
    const client = new StateDriver().client();
    client.create("/q");
    expect(client.create("/q/a-", createFlag.persistentSequential).value?.path).toBe("/q/a-0000000000");
    client.create("/q/plain");
    client.call("delete", { path: "/q/plain", version: -1 });
    expect(client.create("/q/plain2/x").error).toBe(-101);
    expect(client.create("/q/", createFlag.ephemeralSequential).value?.path).toBe("/q/0000000002");
  });

  test("stick at 2^31-1, where a name with something of its own in it is still free", () => {
    const client = new StateDriver({ sequenceStart: 0x7ffffffe }).client();
    client.create("/q");
    const names = ["a-", "b-", "c-"].map((name) =>
      client.create(`/q/${name}`, createFlag.ephemeralSequential).value?.path
    );
    expect(names).toEqual(["/q/a-2147483646", "/q/b-2147483647", "/q/c-2147483647"]);
    expect(client.create("/q/c-", createFlag.ephemeralSequential).error).toBe(-110);
  });
});

describe("the end of a session", () => {
  test("takes its ephemerals in one transaction and tells those who watch", () => {
    const driver = new StateDriver();
    const owner = driver.client("owner");
    const other = driver.client("other");
    owner.create("/a");
    owner.create("/a/e1", createFlag.ephemeral);
    owner.create("/a/e2", createFlag.ephemeral);
    other.create("/a/mine", createFlag.ephemeral);
    other.exists("/a/e1", true);
    other.children("/a", true);
    const before = driver.state.zxid;
    driver.state.closeSession(owner.session);
    expect(driver.state.zxid).toBe(before + 1n);
    expect(other.children("/a")).toEqual(["mine"]);
    expect(driver.takeEvents()).toEqual(["other 2:/a/e1", "other 4:/a"]);
    expect([...driver.state.sessions.all].map(({ id }) => id)).not.toContain(owner.session.id);
  });
});

describe("a node that not everyone may read", () => {
  const acl = (who: string, perms: number) => [{ perms, id: { scheme: "digest", id: who } }];
  const jo = [{ scheme: "digest", id: "jo:x" }];
  const made = () => {
    const driver = new StateDriver();
    const owner = driver.client("owner", jo);
    const other = driver.client("other");
    owner.create("/p");
    return { driver, owner, other };
  };
  const createPrivate = (client: ReturnType<StateDriver["client"]>, path: string, flags = 0) =>
    client.call("create", { path, data: null, acl: acl("jo:x", 31), flags });

  test("its watchers hear of it by its own ACL, and of its children by that of the parent", () => {
    const { driver, owner, other } = made();
    for (const client of [owner, other]) client.call("addWatch", { path: "/p", mode: 0 });
    for (const client of [owner, other]) client.call("addWatch", { path: "/", mode: 1 });
    createPrivate(owner, "/p/s");
    expect(driver.takeEvents().sort()).toEqual(["other 4:/p", "owner 1:/p/s", "owner 4:/p"]);
    owner.call("setAcl", { path: "/p", acl: acl("jo:x", 31), version: -1 });
    owner.call("setData", { path: "/p", data: null, version: -1 });
    owner.call("delete", { path: "/p/s", version: -1 });
    expect(driver.takeEvents()).toEqual(["owner 3:/p", "owner 2:/p/s", "owner 4:/p"]);
  });

  test("READ is what it takes, and an identity that is proved later counts", () => {
    const { driver, owner, other } = made();
    other.exists("/p/w", true);
    owner.call("create", { path: "/p/w", data: null, acl: acl("me:y", 30), flags: 0 });
    expect(driver.takeEvents()).toEqual([]);
    owner.call("delete", { path: "/p/w", version: -1 });
    driver.client("other", [{ scheme: "digest", id: "me:y" }]);
    owner.call("create", { path: "/p/w", data: null, acl: acl("me:y", 1), flags: 0 });
    expect(driver.takeEvents()).toEqual(["other 1:/p/w"]);
  });

  test("its end with its session, and within a multi, is told to no others either", () => {
    const { driver, owner, other } = made();
    other.call("addWatch", { path: "/", mode: 1 });
    createPrivate(owner, "/p/e", createFlag.ephemeral);
    owner.multi([{ type: "create", path: "/p/m", data: null, acl: acl("jo:x", 31), flags: 0 }]);
    driver.state.closeSession(owner.session);
    expect(driver.takeEvents()).toEqual([]);
  });

  test("whether something happened to it cannot be learnt from a watch that is gone", () => {
    const { driver, owner, other } = made();
    createPrivate(owner, "/p/s");
    const again = { dataWatches: ["/p/s"], existWatches: [], childWatches: ["/p/s"] };
    other.call("setWatches", { ...again, relativeZxid: driver.state.zxid });
    owner.call("setData", { path: "/p/s", data: null, version: -1 });
    createPrivate(owner, "/p/s/k");
    for (const type of [1, 2]) expect(other.call("checkWatches", { path: "/p/s", type }).error).toBe(0);
    owner.call("setAcl", { path: "/p/s", acl: [...openAcl], version: -1 });
    owner.call("setData", { path: "/p/s", data: null, version: -1 });
    owner.call("setData", { path: "/p/s", data: null, version: -1 });
    expect(driver.takeEvents()).toEqual(["other 3:/p/s"]);
  });

  test("the super user hears of everything", () => {
    const { driver, owner } = made();
    driver.client("root", [{ scheme: "super", id: "" }]).call("addWatch", { path: "/p", mode: 1 });
    createPrivate(owner, "/p/s");
    expect(driver.takeEvents()).toEqual(["root 1:/p/s"]);
  });
});

describe("limits", () => {
  test("one node more than allowed is refused, and a place that is given back can be used", () => {
    const client = new StateDriver({ limits: { nodesMax: 5 } }).client();
    expect(client.create("/a").error).toBe(0);
    expect(client.create("/b").error).toBe(-125);
    client.call("delete", { path: "/a", version: -1 });
    expect(client.create("/b").error).toBe(0);
  });

  test("one watch more than allowed is refused", () => {
    const client = new StateDriver({ limits: { watchesMax: 1 } }).client();
    expect(client.exists("/", true)).toBe(true);
    expect(client.call("getChildren", { path: "/", watch: true }).error).toBe(-125);
  });
});

const path = fc.constantFrom("/a", "/b", "/a/c", "/a/d", "/a/c/e");
const operation: fc.Arbitrary<MultiRequest> = fc.oneof(
  fc.record({ path, flags: fc.constantFrom(0, 1, 2, 3, 4) }).map(({ path, flags }) => create(path, flags)),
  path.map((path): MultiRequest => ({ type: "delete", path, version: -1 })),
  fc.record({ path, version: fc.integer({ min: -1, max: 2 }) }).map(({ path, version }): MultiRequest => ({
    type: "setData",
    path,
    data: new Uint8Array([version + 1]),
    version,
  })),
  path.map((path): MultiRequest => ({ type: "check", path, version: 0 })),
);

/** Everything a client can see. */
function picture(driver: StateDriver): unknown {
  return [...driver.state.tree.nodes]
    .map(({ id: _, children, ...rest }) => ({ ...rest, children: [...children ?? []].sort() }))
    .sort((a, b) => a.path < b.path ? -1 : 1);
}

property(
  "a multi that fails leaves no trace, whatever stood in it",
  fc.tuple(fc.array(operation), fc.array(operation)),
  ([before, multi]) => {
    const driver = new StateDriver();
    const client = driver.client();
    for (const one of before) client.multi([one]);
    client.exists("/a", true);
    client.children("/a", true);
    driver.takeEvents();
    const untouched = picture(driver);
    const results = client.multi([...multi, { type: "check", path: "/nowhere", version: 0 }]).value ?? [];
    expect(results.every((result) => result.type === "error")).toBe(true);
    expect(picture(driver)).toEqual(untouched);
    expect(driver.takeEvents()).toEqual([]);
  },
);

property("a multi does what its operations do one after the other", fc.array(operation, { minLength: 1 }), (list) => {
  const one = new StateDriver();
  const other = new StateDriver();
  const together = one.client();
  const alone = other.client();
  const results = together.multi(list).value ?? [];
  if (results.some((result) => result.type === "error")) return;
  for (const operation of list) alone.multi([operation]);
  const shape = (driver: StateDriver) =>
    [...driver.state.tree.nodes].map(({ path, kind, version, creates }) => ({ path, kind, version, creates }));
  expect(shape(one)).toEqual(shape(other));
});

property(
  "what was logged, read back, is the same state",
  fc.array(fc.array(operation, { maxLength: 3 })),
  (batches) => {
    const driver = new StateDriver();
    const client = driver.client();
    // The database, without the disk: rows by number.
    const nodes = new Map<bigint, Uint8Array>();
    const sessions = new Map<bigint, Uint8Array>();
    let zxid = 0n;
    const log = () => {
      const batch = decodeKeeperRows(encodeKeeperChanges(driver.state.takeChanges()));
      zxid = batch.zxid;
      for (const [table, rows] of [[nodes, batch.nodes], [sessions, batch.sessions]] as const) {
        for (const { id, body } of rows) body === null ? table.delete(id) : table.set(id, body);
      }
    };
    for (const batch of batches) {
      for (const one of batch) client.multi([one]);
      log();
    }
    log();
    const oldestFirst = [...nodes].sort(([a], [b]) => Number(a - b)).map(([id, body]) =>
      decodeKeeperNode({ id, body })
    );
    expect(oldestFirst.length).toBe(driver.state.tree.size);
    expect(zxid).toBe(driver.state.zxid);
    expect([...sessions].map(([id, body]) => decodeKeeperSession({ id, body }).password)).toEqual([
      client.session.password,
    ]);
    const seen = oldestFirst.map(({ id: _, children: _names, ...rest }) => rest).sort((a, b) =>
      a.path < b.path ? -1 : 1
    );
    expect(seen).toEqual(
      (picture(driver) as { children: unknown }[]).map(({ children: _, ...rest }) => rest) as typeof seen,
    );
    for (const [at, node] of oldestFirst.entries()) {
      const parent = node.path.slice(0, node.path.lastIndexOf("/")) || "/";
      if (node.path !== "/") expect(oldestFirst.slice(0, at).some(({ path }) => path === parent)).toBe(true);
    }
  },
);

test("a new session is no reason to write, what it does is, and so is its end", () => {
  const driver = new StateDriver();
  const { state } = driver;
  state.takeChanges();
  const client = driver.client();
  expect([state.hasChanges, state.hasUrgentChanges]).toEqual([true, false]);
  client.create("/a");
  expect(state.hasUrgentChanges).toBe(true);
  expect([...state.takeChanges().sessions.keys()]).toEqual([client.session.id]);
  const other = driver.client();
  state.sessions.setTimeout(other.session, 5000);
  expect(state.hasUrgentChanges).toBe(true);
  state.takeChanges();
  const third = driver.client();
  state.closeSession(third.session);
  expect(state.hasUrgentChanges).toBe(true);
});
