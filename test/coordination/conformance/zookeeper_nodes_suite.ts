/** Nodes: what each operation answers, what a Stat says, what sequences count, what a zxid counts. */
import { describe, expect, test } from "bun:test";
import { createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { eventually } from "../../support/eventually.ts";
import type { RawClient } from "../../support/raw_client.ts";
import { bytes, type Fixture, node, openAcl, text, timing } from "./zookeeper_fixture.ts";

const sequential = { flags: createFlag.persistentSequential };
const pathOf = async (client: RawClient, request: ReturnType<typeof node>) =>
  (await client.call("create", request)).value?.path;
const statOf = async (client: RawClient, path: string) =>
  (await client.call("exists", { path, watch: false })).value?.stat;

export function nodesSuite(fixture: Fixture): void {
  describe("sequences", () => {
    test("count every create in the parent, and never go back", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      expect(await pathOf(client, node(`${root}/a-`, sequential))).toBe(`${root}/a-0000000000`);
      expect(await pathOf(client, node(`${root}/a-`, sequential))).toBe(`${root}/a-0000000001`);
      expect(await pathOf(client, node(`${root}/plain`))).toBe(`${root}/plain`);
      expect(await pathOf(client, node(`${root}/b-`, sequential))).toBe(`${root}/b-0000000003`);
      for (const name of ["a-0000000000", "a-0000000001", "plain", "b-0000000003"]) {
        expect((await client.call("delete", { path: `${root}/${name}`, version: -1 })).err).toBe(0);
      }
      const last = (await client.ping()).zxid;
      const emptied = await statOf(client, root);
      expect(emptied).toMatchObject({ cversion: 8, numChildren: 0, version: 0 });
      expect(emptied?.pzxid).toBe(last);
      expect(await pathOf(client, node(`${root}/c-`, sequential))).toBe(`${root}/c-0000000004`);
      expect(await pathOf(client, node(`${root}/`, sequential))).toBe(`${root}/0000000005`);
      expect(await statOf(client, root)).toMatchObject({ cversion: 10, numChildren: 2 });
    });

    test("are not moved by a create or a multi that fails", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      await client.call("create", node(`${root}/a`));
      expect((await client.call("create", node(`${root}/a`))).err).toBe(-110);
      const failed = await client.multi([
        { type: "create", ...node(`${root}/m-`, sequential) },
        { type: "delete", path: `${root}/nothing`, version: -1 },
      ]);
      expect(failed.value?.[1]).toEqual({ type: "error", err: -101 });
      expect(await pathOf(client, node(`${root}/d-`, sequential))).toBe(`${root}/d-0000000001`);
    });

    test("count on inside one multi", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      const made = await client.multi([
        { type: "create", ...node(`${root}/m-`, sequential) },
        { type: "create", ...node(`${root}/m-`, sequential) },
      ]);
      expect(made.value).toEqual([
        { type: "create", path: `${root}/m-0000000000` },
        { type: "create", path: `${root}/m-0000000001` },
      ]);
    });
  });

  describe("zxids", () => {
    test("one per write, a failed write included; reads return the last", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      const path = `${root}/z`;
      const created = await client.call("create", node(path));
      const read = await client.call("getData", { path, watch: false });
      const failedCreate = await client.call("create", node(path));
      const failedSet = await client.call("setData", { path, data: bytes("y"), version: 9 });
      const failedRead = await client.call("getData", { path: `${path}/no`, watch: false });
      const set = await client.call("setData", { path, data: bytes("y"), version: 0 });
      expect([read, failedCreate, failedSet, failedRead, set].map(({ zxid }) => zxid - created.zxid))
        .toEqual([0n, 1n, 2n, 2n, 3n]);
      const stat = await statOf(client, path);
      expect(stat).toMatchObject({ version: 1, cversion: 0, aversion: 0, dataLength: 1, ephemeralOwner: 0n });
      expect(stat).toMatchObject({ czxid: created.zxid, pzxid: created.zxid, mzxid: set.zxid });
      expect(Number(stat?.mtime)).toBeGreaterThanOrEqual(Number(stat?.ctime));
    });

    test("a session's end is a write too", async () => {
      const client = await fixture.connect();
      const other = await fixture.connect();
      const before = (await client.call("exists", { path: "/", watch: false })).zxid;
      await other.close();
      const after = (await client.call("exists", { path: "/", watch: false })).zxid;
      expect(after - before).toBe(1n);
    });

    test("a child's create and delete move pzxid; its data does not", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      const created = await client.call("create", node(`${root}/k`));
      expect((await statOf(client, root))?.pzxid).toBe(created.zxid);
      await client.call("setData", { path: `${root}/k`, data: bytes("y"), version: -1 });
      expect((await statOf(client, root))?.pzxid).toBe(created.zxid);
      const deleted = await client.call("delete", { path: `${root}/k`, version: -1 });
      const stat = await statOf(client, root);
      expect(stat?.pzxid).toBe(deleted.zxid);
      expect(stat).toMatchObject({ mzxid: stat?.czxid, version: 0, cversion: 2 });
    });
  });

  describe("data", () => {
    test("versions guard set and delete; -1 means any", async () => {
      const client = await fixture.connect();
      const path = await fixture.root(client);
      const set = await client.call("setData", { path, data: bytes("one"), version: 0 });
      expect(set.value?.stat).toMatchObject({ version: 1, dataLength: 3 });
      expect((await client.call("setData", { path, data: bytes("two"), version: 0 })).err).toBe(-103);
      expect((await client.call("delete", { path, version: 0 })).err).toBe(-103);
      expect((await client.call("setData", { path, data: bytes("two"), version: -1 })).err).toBe(0);
      expect(text((await client.call("getData", { path, watch: false })).value?.data ?? null)).toBe("two");
      expect((await client.call("delete", { path, version: 2 })).err).toBe(0);
      expect((await client.call("exists", { path, watch: false })).err).toBe(-101);
    });

    test("empty and null stay what they are", async () => {
      const client = await fixture.connect();
      const path = await fixture.root(client);
      const emptied = await client.call("setData", { path, data: new Uint8Array(), version: -1 });
      expect(emptied.value?.stat.dataLength).toBe(0);
      expect((await client.call("getData", { path, watch: false })).value?.data).toEqual(new Uint8Array());
      await client.call("create", node(`${path}/null`, { data: null }));
      const read = await client.call("getData", { path: `${path}/null`, watch: false });
      expect(read.value?.data).toBeNull();
      expect(read.value?.stat.dataLength).toBe(0);
    });
  });

  test("the nodes of the start are there", async () => {
    const client = await fixture.connect();
    const children = async (path: string) =>
      (await client.call("getChildren", { path, watch: false })).value?.children?.sort();
    expect(await children("/")).toContain("zookeeper");
    expect(await children("/zookeeper")).toEqual(["config", "quota"]);
    expect((await client.call("getData", { path: "/zookeeper/config", watch: false })).err).toBe(0);
    const stat = await statOf(client, "/");
    expect(stat).toMatchObject({ czxid: 0n, ctime: 0n, version: 0, ephemeralOwner: 0n });
  });

  test("getChildren2 brings the stat, create2 too", async () => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    const created = await client.call("create2", node(`${root}/e`, { flags: createFlag.ephemeral, data: bytes("ab") }));
    expect(created.value).toMatchObject({
      path: `${root}/e`,
      stat: { ephemeralOwner: client.sessionId, dataLength: 2, version: 0, czxid: created.zxid, mzxid: created.zxid },
    });
    const listed = await client.call("getChildren2", { path: root, watch: false });
    expect(listed.value).toMatchObject({ children: ["e"], stat: { numChildren: 1, cversion: 1 } });
  });

  test("lists ephemerals of this session, and counts descendants", async () => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    await client.call("create", node(`${root}/e`, { flags: createFlag.ephemeral }));
    await client.call("create", node(`${root}/p`));
    await client.call("create", node(`${root}/p/q`));
    expect((await client.call("getEphemerals", { prefixPath: root })).value?.ephemerals).toEqual([`${root}/e`]);
    expect((await client.call("getEphemerals", { prefixPath: `${root}/p` })).value?.ephemerals).toEqual([]);
    expect((await client.call("getAllChildrenNumber", { path: root })).value?.totalNumber).toBe(3);
  });

  test("sync echoes the path, and does not ask whether it exists", async () => {
    const client = await fixture.connect();
    expect(await client.call("sync", { path: "/no/such" })).toMatchObject({ err: 0, value: { path: "/no/such" } });
  });

  test("refusals carry their number", async () => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    await client.call("create", node(`${root}/full`));
    await client.call("create", node(`${root}/full/child`));
    await client.call("create", node(`${root}/eph`, { flags: createFlag.ephemeral }));
    const create = async (path: string, more = {}) => (await client.call("create", node(path, more))).err;
    const remove = async (path: string, version = -1) => (await client.call("delete", { path, version })).err;
    const read = async (name: "getData" | "exists" | "getChildren" | "getChildren2", path: string) =>
      (await client.call(name, { path, watch: false })).err;
    expect(await create(`${root}/full`)).toBe(-110);
    expect(await create("/")).toBe(-110);
    expect(await create(`${root}/no/child`)).toBe(-101);
    expect(await create(`${root}/eph/child`)).toBe(-108);
    expect(await create(`${root}/f`, { flags: 9 })).toBe(-8);
    expect(await remove(`${root}/no`)).toBe(-101);
    expect(await remove(`${root}/full`)).toBe(-111);
    expect(await remove(`${root}/full/child`, 5)).toBe(-103);
    for (const path of ["/", "/zookeeper", "/zookeeper/config"]) expect(await remove(path)).toBe(-8);
    for (const name of ["getData", "exists", "getChildren", "getChildren2"] as const) {
      expect(await read(name, `${root}/no`)).toBe(-101);
    }
    expect(await read("getData", "")).toBe(0); // the empty path reads the root
    expect(await read("exists", "bad")).toBe(-101);
    expect((await client.call("setData", { path: `${root}/no`, data: null, version: -1 })).err).toBe(-101);
    expect((await client.call("getAcl", { path: `${root}/no` })).err).toBe(-101);
    expect((await client.call("setAcl", { path: `${root}/no`, acl: openAcl, version: -1 })).err).toBe(-101);
  });

  test.each([
    ["x", -8],
    ["", -8],
    ["/a/", -101],
    ["//", -8],
    ["/a//b", -101],
    ["/.", -8],
    ["/..", -8],
    ["/a\u0001", -8],
    ["/\uffff", -8],
    ["/\ue000", -8],
  ])("a create of %j is refused with %d", async (path, err) => {
    const client = await fixture.connect();
    expect((await client.call("create", node(path))).err).toBe(err);
  });

  test("a path may have any letter", async () => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    expect(await pathOf(client, node(`${root}/é 漢 .a`))).toBe(`${root}/é 漢 .a`);
    expect((await client.call("getChildren", { path: root, watch: false })).value?.children).toEqual(["é 漢 .a"]);
  });

  describe("containers", () => {
    test("are reaped when their last child goes, and not before", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      const made = await client.call("createContainer", node(`${root}/c`, { flags: createFlag.container }));
      expect(made.value?.stat.ephemeralOwner).toBe(0n);
      await client.call("create", node(`${root}/c/child`));
      // A second one, emptied at once, shows that the reaper has been round while the first one was in use.
      await client.call("createContainer", node(`${root}/d`, { flags: createFlag.container }));
      await client.call("create", node(`${root}/d/child`));
      await client.call("delete", { path: `${root}/d/child`, version: -1 });
      await eventually(async () => (await client.call("exists", { path: `${root}/d`, watch: false })).err === -101);
      expect((await client.call("exists", { path: `${root}/c`, watch: false })).err).toBe(0);
      await client.call("exists", { path: `${root}/c`, watch: true });
      await client.call("delete", { path: `${root}/c/child`, version: -1 });
      await eventually(() => client.events.includes(`2:${root}/c`), { what: "the event of the reaped container" });
    });

    test("stay when they never had a child: their maker may be about to make one", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      const exists = async (name: string) =>
        (await client.call("exists", { path: `${root}/${name}`, watch: false })).err === 0;
      await client.call("createContainer", node(`${root}/never`, { flags: createFlag.container }));
      // Emptied ones, one after the other, show that the reaper has been round three times.
      for (const name of ["a", "b", "c"]) {
        await client.call("createContainer", node(`${root}/${name}`, { flags: createFlag.container }));
        await client.call("create", node(`${root}/${name}/child`));
        await client.call("delete", { path: `${root}/${name}/child`, version: -1 });
        await eventually(async () => !(await exists(name)), {
          what: `the reaping of ${name}`,
          withinMs: 20 * timing.containerCheckMs,
        });
      }
      expect(await exists("never")).toBe(true);
    });

    test("carry data, and their version guards a multi", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      await client.call("createContainer", node(`${root}/c`, { flags: createFlag.container, data: bytes("state") }));
      const read = await client.call("getData", { path: `${root}/c`, watch: false });
      expect(text(read.value?.data ?? null)).toBe("state");
      const grant = (version: number, name: string) =>
        client.multi([
          { type: "setData", path: `${root}/c`, data: bytes("state"), version },
          { type: "create", ...node(`${root}/c/${name}`, { flags: createFlag.ephemeral }) },
        ]);
      const first = await grant(0, "one");
      expect(first.value).toMatchObject([{ type: "setData", stat: { version: 1, mzxid: first.zxid } }, {
        type: "create",
      }]);
      expect((await client.call("exists", { path: `${root}/c/one`, watch: false })).value?.stat.czxid).toBe(first.zxid);
      expect((await grant(0, "two")).value).toEqual([{ type: "error", err: -103 }, { type: "error", err: -2 }]);
    });

    test("can be made inside a multi", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      const made = await client.multi([
        { type: "createContainer", ...node(`${root}/c`, { flags: createFlag.container }) },
        { type: "create", ...node(`${root}/c/child`, { flags: createFlag.ephemeralSequential }) },
      ]);
      expect(made.value).toMatchObject([
        { type: "create2", path: `${root}/c` }, // so the real server names the result
        { type: "create", path: `${root}/c/child0000000000` },
      ]);
    });
  });

  describe("nodes with a time to live", () => {
    const ttl = (path: string, milliseconds: number, flags: number = createFlag.persistentTtl) => ({
      ...node(path, { flags }),
      ttl: BigInt(milliseconds),
    });
    test("go when it is over", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      const made = await client.call("createTtl", ttl(`${root}/short`, 50));
      expect(made.value?.stat.ephemeralOwner).toBe(0n);
      await client.call("createTtl", ttl(`${root}/long`, 600_000));
      await eventually(async () => (await client.call("exists", { path: `${root}/short`, watch: false })).err === -101);
      expect((await client.call("exists", { path: `${root}/long`, watch: false })).err).toBe(0);
    });

    test("need a time and the right flags", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      expect((await client.call("createTtl", ttl(`${root}/a`, 0))).err).toBe(-8);
      expect((await client.call("createTtl", ttl(`${root}/a`, 1000, createFlag.persistent))).err).toBe(-8);
    });
  });
}
