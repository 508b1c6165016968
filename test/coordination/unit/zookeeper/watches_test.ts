import { describe, expect, test } from "bun:test";
import {
  SessionWatches,
  type SetWatchesBatch,
  setWatchesBytesMax,
} from "../../../../src/protocols/zookeeper/watches.ts";
import { ByteReader } from "../../../../src/base/wire/bytes.ts";
import { SetWatchesRequest } from "../../../../src/protocols/zookeeper/jute/zookeeper_records.ts";

const decode = (bodies: Uint8Array[]) => bodies.map((body) => SetWatchesRequest.read(new ByteReader(body)));

describe("watches", () => {
  test("an event uses up exactly the kinds it concerns", () => {
    const table = [
      ["created", ["data", "exist"]],
      ["dataChanged", ["data", "exist"]],
      ["deleted", ["data", "exist", "child"]],
      ["childrenChanged", ["child"]],
    ] as const;
    for (const [type, kinds] of table) {
      const watches = new SessionWatches();
      const called = { data: () => {}, exist: () => {}, child: () => {} };
      for (const kind of ["data", "exist", "child"] as const) watches.add(kind, "/a", called[kind]);
      expect(watches.takeWatchers(type, "/b").size).toBe(0);
      expect([...watches.takeWatchers(type, "/a")]).toEqual(kinds.map((kind) => called[kind]));
      expect(watches.takeWatchers(type, "/a").size).toBe(0);
      expect(watches.count).toBe(3 - kinds.length);
    }
  });

  test("a recursive watch stays, and gets every event at or below its path, up to the next connection", () => {
    const watches = new SessionWatches();
    const all = () => {};
    const part = () => {};
    const once = () => {};
    watches.addRecursive("/", all);
    watches.addRecursive("/a/b", part);
    watches.add("data", "/a/b", once);
    const taken = (path: string) => [...watches.takeWatchers("dataChanged", path)];
    expect(taken("/a/b")).toEqual([once, all, part]);
    expect([taken("/a/b"), taken("/a/b/c")]).toEqual([[all, part], [all, part]]);
    expect([taken("/a"), taken("/a/bc"), taken("/")]).toEqual([[all], [all], [all]]);
    expect(watches.rearm(1n)).toEqual([]);
    expect(taken("/a/b")).toEqual([]);
  });

  test("one watcher is told once of one event, however often it asked", () => {
    const watches = new SessionWatches();
    const watcher = () => {};
    watches.add("data", "/a", watcher);
    watches.add("data", "/a", watcher);
    watches.add("child", "/a", watcher);
    expect(watches.takeWatchers("deleted", "/a").size).toBe(1);
  });

  test("are armed again in batches below the limit, all of them, with the last zxid", () => {
    const watches = new SessionWatches();
    const paths = Array.from({ length: 5000 }, (_, index) => `/${"é".repeat(100)}${index}`);
    for (const path of paths) watches.add("exist", path, () => {});
    watches.add("data", "/d", () => {});
    watches.add("child", "/c", () => {});
    const bodies = watches.rearm(42n).map(({ body }) => body);
    expect(bodies.length).toBeGreaterThan(5);
    for (const body of bodies) expect(body.byteLength).toBeLessThanOrEqual(setWatchesBytesMax);
    const requests = decode(bodies);
    expect(requests.flatMap((request) => request.existWatches)).toEqual(paths);
    expect(requests.flatMap((request) => request.dataWatches)).toEqual(["/d"]);
    expect(requests.flatMap((request) => request.childWatches)).toEqual(["/c"]);
    expect(new Set(requests.map((request) => request.relativeZxid))).toEqual(new Set([42n]));
  });

  test("are armed again in shorter batches where the servers take shorter requests only", () => {
    const watches = new SessionWatches({ frameBytesMax: 2000 });
    const paths = Array.from({ length: 100 }, (_, index) => `/${"x".repeat(100)}${index}`);
    for (const path of paths) watches.add("data", path, () => {});
    const bodies = watches.rearm(42n).map(({ body }) => body);
    for (const body of bodies) expect(body.byteLength + 8).toBeLessThanOrEqual(2000);
    expect(decode(bodies).flatMap((request) => request.dataWatches)).toEqual(paths);
  });

  test("are armed from where they were left: what a connection has not confirmed was not told by it", () => {
    const watches = new SessionWatches({ frameBytesMax: 2000 });
    for (let index = 0; index < 10; index++) watches.add("child", `/${"x".repeat(500)}${index}`, () => {});
    const paths = (batches: SetWatchesBatch[], zxid: bigint) =>
      decode(batches.map(({ body }) => body))
        .flatMap(({ relativeZxid, childWatches }) => relativeZxid === zxid ? childWatches ?? [] : []).length;
    const first = watches.rearm(100n);
    expect(paths(first, 100n)).toBe(10);
    first[0]?.onConfirmed();
    // The answer to the first batch had a number of its own, which says nothing of the others.
    const second = watches.rearm(200n);
    const known = decode([first[0]?.body ?? new Uint8Array()])[0]?.childWatches?.length ?? 0;
    expect([paths(second, 200n), paths(second, 100n)]).toEqual([known, 10 - known]);
    for (const batch of second) batch.onConfirmed();
    expect(paths(watches.rearm(300n), 300n)).toBe(10);
  });

  test("without any, nothing is sent", () => {
    expect(new SessionWatches().rearm(1n)).toEqual([]);
  });
});
