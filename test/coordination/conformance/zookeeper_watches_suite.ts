/** Watches: what sets one, what fires it, how often, and in which order it arrives. */
import { describe, expect, test } from "bun:test";
import { createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import type { RawClient } from "../../support/raw_client.ts";
import { bytes, type Fixture, node, openAcl } from "./zookeeper_fixture.ts";

const set = (client: RawClient, path: string) => client.call("setData", { path, data: bytes("y"), version: -1 });
const remove = (client: RawClient, path: string) => client.call("delete", { path, version: -1 });
const watchData = (client: RawClient, path: string) => client.call("getData", { path, watch: true });
const watchExists = (client: RawClient, path: string) => client.call("exists", { path, watch: true });
const watchChildren = (client: RawClient, path: string) => client.call("getChildren", { path, watch: true });
const none = { dataWatches: [], existWatches: [], childWatches: [] };

/** A watching connection, a writing one, and a node. */
async function three(fixture: Fixture): Promise<[watcher: RawClient, writer: RawClient, root: string]> {
  const [watcher, writer] = await Promise.all([fixture.connect(), fixture.connect()]);
  return [watcher, writer, await fixture.root(writer)];
}

export function watchesSuite(fixture: Fixture): void {
  test("fire once", async () => {
    const [watcher, writer, root] = await three(fixture);
    await watchData(watcher, root);
    await set(writer, root);
    await set(writer, root);
    expect(await watcher.takeEvents()).toEqual([`3:${root}`]);
  });

  test("exists and getData share a table: two watches, one event", async () => {
    const [watcher, writer, root] = await three(fixture);
    await watchData(watcher, root);
    await watchExists(watcher, root);
    await set(writer, root);
    expect(await watcher.takeEvents()).toEqual([`3:${root}`]);
  });

  test("children are watched apart from data", async () => {
    const [watcher, writer, root] = await three(fixture);
    await watchChildren(watcher, root);
    await set(writer, root);
    expect(await watcher.takeEvents()).toEqual([]);
    await writer.call("create", node(`${root}/k`));
    expect(await watcher.takeEvents()).toEqual([`4:${root}`]);
    await watcher.call("getChildren2", { path: root, watch: true });
    await set(writer, `${root}/k`);
    expect(await watcher.takeEvents()).toEqual([]);
    await remove(writer, `${root}/k`);
    expect(await watcher.takeEvents()).toEqual([`4:${root}`]);
  });

  test("a delete is one event for the node, however it was watched, and one for the parent", async () => {
    const [watcher, writer, root] = await three(fixture);
    const path = `${root}/k`;
    await writer.call("create", node(path));
    await watchData(watcher, path);
    await watchChildren(watcher, path);
    await watchChildren(watcher, root);
    await remove(writer, path);
    expect(await watcher.takeEvents()).toEqual([`2:${path}`, `4:${root}`]);
  });

  test("on a missing node only exists leaves one", async () => {
    const [watcher, writer, root] = await three(fixture);
    const path = `${root}/k`;
    expect((await watchData(watcher, path)).err).toBe(-101);
    expect((await watchChildren(watcher, path)).err).toBe(-101);
    await writer.call("create", node(path));
    await remove(writer, path);
    expect(await watcher.takeEvents()).toEqual([]);
    expect((await watchExists(watcher, path)).err).toBe(-101);
    await writer.call("create", node(path));
    expect(await watcher.takeEvents()).toEqual([`1:${path}`]);
  });

  test("setACL fires none", async () => {
    const [watcher, writer, root] = await three(fixture);
    await watchData(watcher, root);
    await watchChildren(watcher, root);
    const { value } = await writer.call("setAcl", { path: root, acl: openAcl, version: -1 });
    expect(value?.stat.aversion).toBe(1);
    expect(await watcher.takeEvents()).toEqual([]);
  });

  test("a write that fails fires none", async () => {
    const [watcher, writer, root] = await three(fixture);
    await watchData(watcher, root);
    await watchChildren(watcher, root);
    await writer.call("setData", { path: root, data: null, version: 99 });
    await writer.multi([
      { type: "create", ...node(`${root}/k`) },
      { type: "delete", path: `${root}/no`, version: -1 },
    ]);
    expect(await watcher.takeEvents()).toEqual([]);
  });

  test("the event comes before any reply that shows the change, also for one's own write", async () => {
    const [watcher, writer, root] = await three(fixture);
    await watchData(watcher, root);
    await set(writer, root);
    await watcher.call("getData", { path: root, watch: false });
    expect(watcher.arrivals.slice(-2).map(({ kind }) => kind)).toEqual(["event", "reply"]);
    await watchData(writer, root);
    await set(writer, root);
    expect(writer.arrivals.slice(-2).map(({ kind }) => kind)).toEqual(["event", "reply"]);
  });

  test("a multi fires what its zooKeeperOperations would", async () => {
    const [watcher, writer, root] = await three(fixture);
    await writer.call("create", node(`${root}/old`));
    await watchData(watcher, root);
    await watchChildren(watcher, root);
    await watchExists(watcher, `${root}/new`);
    await watchExists(watcher, `${root}/old`);
    await writer.multi([
      { type: "setData", path: root, data: null, version: -1 },
      { type: "create", ...node(`${root}/new`) },
      { type: "delete", path: `${root}/old`, version: -1 },
    ]);
    expect((await watcher.takeEvents()).sort())
      .toEqual([`1:${root}/new`, `2:${root}/old`, `3:${root}`, `4:${root}`]);
  });

  test("an ephemeral's end fires the parent's too", async () => {
    const [watcher, writer, root] = await three(fixture);
    await writer.call("create", node(`${root}/e`, { flags: createFlag.ephemeral }));
    await watchChildren(watcher, root);
    await watchExists(watcher, `${root}/e`);
    await writer.close();
    expect((await watcher.takeEvents()).sort()).toEqual([`2:${root}/e`, `4:${root}`]);
  });

  describe("set again after a reconnect", () => {
    test("tell at once what was missed, before the reply, and watch what was not", async () => {
      const [watcher, writer, root] = await three(fixture);
      const names = ["data", "gone", "same", "kids", "kidsGone", "kidsSame"];
      for (const name of names) await writer.call("create", node(`${root}/${name}`));
      const relativeZxid = (await writer.ping()).zxid;
      await set(writer, `${root}/data`);
      await remove(writer, `${root}/gone`);
      await remove(writer, `${root}/kidsGone`);
      await writer.call("create", node(`${root}/kids/k`));
      await writer.call("create", node(`${root}/appeared`));
      const all = (...each: string[]) => each.map((name) => `${root}/${name}`);
      const reply = await setWatches(watcher, "setWatches", {
        relativeZxid,
        dataWatches: all("data", "gone", "same"),
        existWatches: all("appeared", "later"),
        childWatches: all("kids", "kidsGone", "kidsSame"),
      });
      expect(reply).toMatchObject({ err: 0, xid: -8 });
      expect(watcher.arrivals.at(-1)?.kind).toBe("reply");
      expect((await watcher.takeEvents()).sort()).toEqual([
        `1:${root}/appeared`,
        `2:${root}/gone`,
        `2:${root}/kidsGone`,
        `3:${root}/data`,
        `4:${root}/kids`,
      ]);
      await set(writer, `${root}/same`);
      await writer.call("create", node(`${root}/later`));
      await writer.call("create", node(`${root}/kidsSame/k`));
      await set(writer, `${root}/data`);
      expect(await watcher.takeEvents()).toEqual([`3:${root}/same`, `1:${root}/later`, `4:${root}/kidsSame`]);
    });

    test("setWatches2 brings persistent ones back", async () => {
      const [watcher, writer, root] = await three(fixture);
      const relativeZxid = (await writer.ping()).zxid;
      const reply = await setWatches(watcher, "setWatches2", {
        ...none,
        relativeZxid,
        persistentWatches: [root],
        persistentRecursiveWatches: [`${root}/r`],
      });
      expect(reply).toMatchObject({ err: 0, xid: -8 });
      await writer.call("create", node(`${root}/r`));
      await writer.call("create", node(`${root}/r/s`));
      await set(writer, root);
      expect(await watcher.takeEvents()).toEqual([`1:${root}/r`, `4:${root}`, `1:${root}/r/s`, `3:${root}`]);
    });
  });

  describe("persistent", () => {
    test("stay, and see the node's data and its children", async () => {
      const [watcher, writer, root] = await three(fixture);
      const reply = await watcher.call("addWatch", { path: root, mode: 0 });
      expect(reply).toMatchObject({ err: 0, value: { err: 0 } });
      await writer.call("create", node(`${root}/k`));
      await set(writer, `${root}/k`);
      await set(writer, root);
      await set(writer, root);
      expect(await watcher.takeEvents()).toEqual([`4:${root}`, `3:${root}`, `3:${root}`]);
    });

    test("recursive ones see each descendant, and never children as such", async () => {
      const [watcher, writer, root] = await three(fixture);
      await watcher.call("addWatch", { path: `${root}/a`, mode: 1 });
      await writer.call("create", node(`${root}/a`));
      await writer.call("create", node(`${root}/a/b`));
      await set(writer, `${root}/a/b`);
      await remove(writer, `${root}/a/b`);
      await writer.call("create", node(`${root}/ab`));
      expect(await watcher.takeEvents())
        .toEqual([`1:${root}/a`, `1:${root}/a/b`, `3:${root}/a/b`, `2:${root}/a/b`]);
    });

    test("of an unknown mode are refused", async () => {
      const client = await fixture.connect();
      expect((await client.call("addWatch", { path: "/", mode: 7 })).err).toBe(-5);
    });
  });

  test.each([0, 4])("of the unknown kind %d can be neither looked up nor taken away", async (type) => {
    const [watcher, writer, root] = await three(fixture);
    await watchData(watcher, root);
    // Kind 4 is new in 3.9: persistent watches, of which there are none here.
    const err = type === 4 && fixture.backend.release === "3.9.6" ? -121 : -5;
    expect((await watcher.call("checkWatches", { path: root, type })).err).toBe(err);
    expect((await watcher.call("removeWatches", { path: root, type })).err).toBe(err);
    await set(writer, root);
    expect(await watcher.takeEvents()).toEqual([`3:${root}`]);
  });

  test("can be looked up and taken away, by kind", async () => {
    const [watcher, writer, root] = await three(fixture);
    const [children, data, any] = [1, 2, 3];
    const check = async (type: number) => (await watcher.call("checkWatches", { path: root, type })).err;
    const take = async (type: number) => (await watcher.call("removeWatches", { path: root, type })).err;
    for (const type of [children, data, any]) expect([await check(type), await take(type)]).toEqual([-121, -121]);
    await watchData(watcher, root);
    expect([await check(children), await check(data), await check(any)]).toEqual([-121, 0, 0]);
    await watchChildren(watcher, root);
    expect(await take(data)).toBe(0);
    expect([await check(children), await check(data), await check(any)]).toEqual([0, -121, 0]);
    await set(writer, root);
    await writer.call("create", node(`${root}/k`));
    expect((await watcher.takeEvents()).filter((event) => !/^[56]/.test(event))).toEqual([`4:${root}`]);
  });
}

async function setWatches<Name extends "setWatches" | "setWatches2">(
  client: RawClient,
  name: Name,
  request: Parameters<typeof client.call<Name>>[1],
) {
  const { zooKeeperOperations } = await import("../../../src/protocols/zookeeper/jute/zookeeper_operations.ts");
  const row = zooKeeperOperations[name];
  return await client.send(row.code, (writer) => row.request.write(writer, request as never), -8);
}
