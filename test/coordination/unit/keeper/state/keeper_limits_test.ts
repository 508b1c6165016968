/** What one request may ask for, and what all of them may make the state hold. */
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { openAcl } from "../../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { aclPermission, createFlag } from "../../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import type { MultiRequest } from "../../../../../src/protocols/zookeeper/jute/multi_request.ts";
import { property } from "../../../../support/property.ts";
import { StateDriver } from "./state_driver.ts";

const quotaExceeded = -125;
const badArguments = -8;
const create = (path: string, data = new Uint8Array(0)) => ({
  path,
  data,
  acl: [...openAcl],
  flags: createFlag.persistent,
});

describe("data of all nodes", () => {
  test("is refused past its limit, by whichever request, and what is given back can be used", () => {
    const driver = new StateDriver({ limits: { dataBytesMax: 1000 } });
    const client = driver.client();
    const own = driver.state.tree.bytes;
    expect(client.call("create", create("/a", new Uint8Array(998 - own))).error).toBe(0);
    expect(driver.state.tree.bytes).toBe(1000);
    expect(client.call("create", create("/b")).error).toBe(quotaExceeded);
    expect(client.call("setData", { path: "/a", data: new Uint8Array(999 - own), version: -1 }).error).toBe(
      quotaExceeded,
    );
    const acl = [{ perms: aclPermission.all, id: { scheme: "ip", id: "10.0.0.0/8" } }];
    expect(client.call("setAcl", { path: "/a", acl, version: -1 }).error).toBe(quotaExceeded);
    expect(client.call("setData", { path: "/a", data: null, version: -1 }).error).toBe(0);
    expect(client.call("create", create("/b")).error).toBe(0);
  });

  const paths = fc.constantFrom("/a", "/b", "/a/c", "/a/d", "/a/c/e");
  const operation: fc.Arbitrary<MultiRequest> = fc.oneof(
    fc.tuple(paths, fc.nat(50)).map(([path, size]): MultiRequest => ({
      type: "create",
      ...create(path, new Uint8Array(size)),
    })),
    paths.map((path): MultiRequest => ({ type: "delete", path, version: -1 })),
    fc.tuple(paths, fc.nat(50)).map(([path, size]): MultiRequest => ({
      type: "setData",
      path,
      data: new Uint8Array(size),
      version: -1,
    })),
  );
  property(
    "and nodes below a node are counted right, whatever is done and undone",
    fc.tuple(fc.array(fc.array(operation, { maxLength: 4 })), fc.nat(20)),
    ([multis, from]) => {
      const driver = new StateDriver();
      const client = driver.client();
      for (const [index, multi] of multis.entries()) {
        if (index === from) client.call("getAllChildrenNumber", { path: "/" }); // it is counted from here on
        client.multi(multi);
      }
      const nodes = [...driver.state.tree.nodes];
      expect(driver.state.tree.bytes).toBe(
        nodes.reduce((sum, { path, data }) => sum + path.length + (data?.byteLength ?? 0), 0),
      );
      for (const { path } of nodes) {
        const below = nodes.filter((other) =>
          other.path !== path && other.path.startsWith(path === "/" ? "/" : `${path}/`)
        );
        expect(client.call("getAllChildrenNumber", { path }).value).toEqual({ totalNumber: below.length });
      }
    },
  );
});

test("a path that is too long is not created and not watched; one that is just short enough is", () => {
  const client = new StateDriver({ limits: { pathCharsMax: 20 } }).client();
  const long = `/${"x".repeat(20)}`;
  const short = `/${"x".repeat(19)}`;
  expect(client.call("create", create(short)).error).toBe(0);
  expect(client.call("create", create(long)).error).toBe(badArguments);
  expect(client.call("create", { ...create("/xxxxxxxxxx"), flags: createFlag.persistentSequential }).error).toBe(
    badArguments,
  );
  expect(client.call("exists", { path: long, watch: true }).error).toBe(badArguments);
  expect(client.call("exists", { path: long, watch: false }).error).toBe(-101);
  expect(client.call("addWatch", { path: long, mode: 0 }).error).toBe(badArguments);
  const lists = { dataWatches: [long], existWatches: null, childWatches: null };
  expect(client.call("setWatches", { relativeZxid: 0n, ...lists }).error).toBe(badArguments);
});

test("one connection's watches are limited for themselves: another still has room", () => {
  const driver = new StateDriver({ limits: { watchesPerConnectionMax: 2 } });
  const greedy = driver.client("greedy");
  const other = driver.client("other");
  expect(greedy.exists("/", true)).toBe(true);
  expect(greedy.call("getChildren", { path: "/", watch: true }).error).toBe(0);
  expect(greedy.call("exists", { path: "/a", watch: true }).error).toBe(quotaExceeded);
  expect(other.call("exists", { path: "/a", watch: true }).error).toBe(-101);
});

test("so many operations and watches come in one request, and no more", () => {
  const client = new StateDriver({ limits: { operationsPerMultiMax: 2, watchesPerRequestMax: 2 } }).client();
  const check: MultiRequest = { type: "check", path: "/", version: 0 };
  expect(client.multi([check, check]).error).toBe(0);
  expect(client.multi([check, check, check]).error).toBe(badArguments);
  const lists = { dataWatches: ["/"], existWatches: ["/x"], childWatches: null };
  expect(client.call("setWatches", { relativeZxid: 1n << 60n, ...lists }).error).toBe(0);
  expect(client.call("setWatches", { relativeZxid: 1n << 60n, ...lists, childWatches: ["/"] }).error).toBe(
    badArguments,
  );
});

test("one session owns so many nodes, and no more; another still makes some", () => {
  const driver = new StateDriver({ limits: { ephemeralsPerSessionMax: 2 } });
  const one = driver.client("one");
  const other = driver.client("other");
  const ephemeral = (path: string) => ({ ...create(path), flags: createFlag.ephemeral });
  expect(one.call("create", ephemeral("/a")).error).toBe(0);
  expect(one.call("create", ephemeral("/b")).error).toBe(0);
  expect(one.call("create", ephemeral("/c")).error).toBe(quotaExceeded);
  expect(one.call("create", create("/c")).error).toBe(0);
  expect(other.call("create", ephemeral("/d")).error).toBe(0);
  one.call("delete", { path: "/a", version: -1 });
  expect(one.call("create", ephemeral("/e")).error).toBe(0);
});

test("an ACL has so many entries, and no more", () => {
  const client = new StateDriver({ limits: { aclEntriesMax: 2 } }).client();
  const acl = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ perms: 31, id: { scheme: "ip", id: `10.0.0.${index}` } }));
  expect(client.call("create", { ...create("/a"), acl: acl(2) }).error).toBe(0);
  expect(client.call("create", { ...create("/b"), acl: acl(3) }).error).toBe(-114);
});
