import { expect, test } from "bun:test";
import { Crowd } from "../../../src/keeper/crowd.ts";

const limits = { connectionsMax: 3, connectionsPerAddressMax: 2, heldBytesMax: 100, unsentBytesAllMax: 1000 };
const local = { address: null, nowMs: 0 };

test("when it is full the oldest without a session goes; when all have one, the new one", () => {
  const crowd = new Crowd<string>(limits);
  expect(["a", "b", "c"].map((name) => crowd.came(name, local))).toEqual([null, null, null]);
  crowd.known("a");
  expect(crowd.came("d", local)).toBe("b");
  // It has not left yet when the next comes.
  expect(crowd.came("e", local)).toBe("c");
  crowd.left("b");
  crowd.left("c");
  crowd.known("d");
  crowd.known("e");
  expect(crowd.came("f", local)).toBe("f");
  crowd.left("f");
  expect([...crowd]).toEqual(["a", "d", "e"]);
});

test("one address has so many, and may have another when one is gone; a unix socket's are not told apart", () => {
  const crowd = new Crowd<string>({ ...limits, connectionsMax: 100 });
  const from = (address: string | null) => ({ address, nowMs: 0 });
  expect(["a", "b"].map((name) => crowd.came(name, from("10.0.0.1")))).toEqual([null, null]);
  expect(crowd.came("c", from("10.0.0.1"))).toBe("c");
  crowd.left("c");
  crowd.left("c");
  expect(crowd.came("d", from("10.0.0.2"))).toBeNull();
  crowd.left("a");
  expect(crowd.came("e", from("10.0.0.1"))).toBeNull();
  expect(["u", "v", "w"].map((name) => crowd.came(name, from(null)))).toEqual([null, null, null]);
});

test("who has not opened a session is known by how long ago he came", () => {
  const crowd = new Crowd<string>({ ...limits, connectionsMax: 100 });
  crowd.came("a", { address: null, nowMs: 1 });
  crowd.came("b", { address: null, nowMs: 2 });
  crowd.came("c", { address: null, nowMs: 3 });
  crowd.known("a");
  expect(crowd.strangersSince(3)).toEqual(["b"]);
});

test("together they may make the keeper hold so much; then the first to have begun goes, not the last", () => {
  const crowd = new Crowd<string>({ ...limits, connectionsMax: 100 });
  for (const name of ["a", "b", "c"]) crowd.came(name, local);
  expect(crowd.hold("a", 40, 0)).toEqual([]);
  expect(crowd.hold("b", 40, 900)).toEqual([]);
  expect(crowd.hold("a", 0, 0)).toEqual([]); // a break
  expect(crowd.hold("a", 40, 90)).toEqual([]);
  expect(crowd.hold("c", 40, 0)).toEqual(["b"]);
  expect(crowd.hold("c", 60, 0)).toEqual([]);
  crowd.left("a");
  expect(crowd.hold("c", 100, 0)).toEqual([]);
  expect(crowd.hold("c", 101, 0)).toEqual(["c"]); // even alone it is too much
});
