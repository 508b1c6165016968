import { expect, test } from "bun:test";
import { findExpiredNodes } from "../../../../../src/coordination/keeper/state/container_reaper.ts";
import { openAcl } from "../../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { createFlag } from "../../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { StateDriver } from "./state_driver.ts";

function setUp() {
  const driver = new StateDriver();
  const client = driver.client();
  const check = () => {
    const due = findExpiredNodes(driver.state.tree.expirableNodes, driver.wallMs);
    for (const node of due) driver.state.reap(node);
    return due.map(({ path }) => path);
  };
  return { driver, client, check };
}

test("a container goes at the first check after its last child", () => {
  const { client, check } = setUp();
  client.create("/c", createFlag.container);
  client.create("/c/child");
  expect(check()).toEqual([]);
  client.call("delete", { path: "/c/child", version: -1 });
  expect(check()).toEqual(["/c"]);
});

test("a container that never had a child stays", () => {
  const { client, check } = setUp();
  client.create("/c", createFlag.container);
  for (let checks = 0; checks < 3; checks++) expect(check()).toEqual([]);
});

test("a lock's three containers go in one check, the inner ones first", () => {
  const { client, check } = setUp();
  for (const path of ["/lock", "/lock/h", "/lock/q"]) client.create(path, createFlag.container);
  for (const path of ["/lock/h/x", "/lock/q/x"]) {
    client.create(path, createFlag.ephemeral);
    client.call("delete", { path, version: -1 });
  }
  const reaped = check();
  expect(reaped.slice(0, 2).sort()).toEqual(["/lock/h", "/lock/q"]);
  expect(reaped[2]).toBe("/lock");
});

test("a TTL node goes when it is childless and old enough", () => {
  const { driver, client, check } = setUp();
  client.call("createTtl", { path: "/t", data: null, acl: [...openAcl], flags: createFlag.persistentTtl, ttl: 1000n });
  driver.wallMs += 999;
  expect(check()).toEqual([]);
  client.call("setData", { path: "/t", data: null, version: -1 });
  driver.wallMs += 999;
  expect(check()).toEqual([]);
  driver.wallMs += 1;
  expect(check()).toEqual(["/t"]);
});
