import { expect, test } from "bun:test";
import { clickHouseSessionFault, zooKeeperReleaseFault } from "../../../../src/coordination/connect/server_releases.ts";

const answer = (release: string, mode = "follower") =>
  `Zookeeper version: ${release}-6401e4ad2087061bc6b9f80dec2d69f2e3c8660a, built on 04/08/2021\n` +
  `Latency min/avg/max: 0/0/0\nMode: ${mode}\n`;

test("a release that can lose acknowledged writes is named with the release that does not", () => {
  expect(zooKeeperReleaseFault(answer("3.8.0"))).toBe(
    "ZooKeeper 3.8.0 can lose acknowledged writes when servers of the ensemble are restarted (ZOOKEEPER-4785): " +
      "use 3.8.5 or 3.9.4 or later",
  );
  expect(zooKeeperReleaseFault(answer("3.9.3"))).toContain("ZOOKEEPER-4925");
  for (const release of ["3.4.14", "3.7.2", "3.8.4", "3.9.0", "3.9.1"]) {
    expect(zooKeeperReleaseFault(answer(release))).toContain("ZOOKEEPER-4785");
  }
  for (const release of ["3.8.5", "3.8.7", "3.9.2", "3.9.4", "3.9.6", "3.10.0", "4.0.0"]) {
    expect(zooKeeperReleaseFault(answer(release))).toBeNull();
  }
});

test("followers of ClickHouse Keeper that let live sessions expire are named; a server without others has none", () => {
  const keeper = (mode: string) =>
    `ClickHouse Keeper version: v25.8.1.5101-lts-0123\nLatency min/avg/max: 0/0/0\nMode: ${mode}\n`;
  for (const mode of ["leader", "follower"]) {
    expect(clickHouseSessionFault(keeper(mode))).toContain(
      "ClickHouse Keeper v25.8.1.5101-lts-0123 can expire the session",
    );
    expect(zooKeeperReleaseFault(keeper(mode))).toBeNull();
  }
  expect(clickHouseSessionFault(keeper("standalone"))).toBeNull();
  for (const release of ["3.4.14", "3.8.0", "3.9.6"]) expect(clickHouseSessionFault(answer(release))).toBeNull();
  expect(clickHouseSessionFault("")).toBeNull();
});

test("a server without others, and an answer of another server, are not judged", () => {
  expect(zooKeeperReleaseFault(answer("3.8.0", "standalone"))).toBeNull();
  expect(zooKeeperReleaseFault("")).toBeNull();
  expect(zooKeeperReleaseFault("srvr is not executed because it is not in the whitelist.\n")).toBeNull();
  expect(zooKeeperReleaseFault("Zookeeper version: v25.8-lts, built on 2025-08-28\nMode: leader\n")).toBeNull();
});
