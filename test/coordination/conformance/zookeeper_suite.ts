/** What a server of ZooKeeper's protocol does, seen on the wire: one suite for every implementation. */
import { describe } from "bun:test";
import type { Backend } from "../../support/backends.ts";
import { aclSuite } from "./zookeeper_acl_suite.ts";
import { differencesSuite } from "./zookeeper_differences_suite.ts";
import { edgesSuite } from "./zookeeper_edges_suite.ts";
import { Fixture } from "./zookeeper_fixture.ts";
import { framingSuite } from "./zookeeper_framing_suite.ts";
import { multiSuite } from "./zookeeper_multi_suite.ts";
import { nodesSuite } from "./zookeeper_nodes_suite.ts";
import { sessionsSuite } from "./zookeeper_sessions_suite.ts";
import { watchesSuite } from "./zookeeper_watches_suite.ts";

export function zooKeeperSuite(backend: Backend): void {
  const fixture = new Fixture(backend);
  describe("a session", () => sessionsSuite(fixture));
  describe("nodes", () => nodesSuite(fixture));
  describe("watches", () => watchesSuite(fixture));
  describe("a multi", () => multiSuite(fixture));
  describe("permissions", () => aclSuite(fixture));
  describe("frames", () => framingSuite(fixture));
  describe("edges", () => edgesSuite(fixture));
  describe("differences", () => differencesSuite(fixture));
}
