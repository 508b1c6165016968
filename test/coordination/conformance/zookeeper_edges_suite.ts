/** Paths, bodies and lists at their edges: what each operation makes of what is hardly one. Observed on 3.8.0. */
import { describe, expect, test } from "bun:test";
import {
  createFlag,
  multiOperationCode,
  zooKeeperOperations,
} from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { eventually } from "../../support/eventually.ts";
import type { RawClient } from "../../support/raw_client.ts";
import { bytes, type Fixture, node, openAcl } from "./zookeeper_fixture.ts";

const world = (perms: number) => ({ perms, id: { scheme: "world", id: "anyone" } });
const ip = (id: string) => ({ perms: 31, id: { scheme: "ip", id } });

/** Every operation that has a path, at the version 99, which no node has. */
const withPath: Record<string, (client: RawClient, path: string) => Promise<{ err: number }>> = {
  exists: (client, path) => client.call("exists", { path, watch: false }),
  getData: (client, path) => client.call("getData", { path, watch: false }),
  getChildren: (client, path) => client.call("getChildren", { path, watch: false }),
  getAcl: (client, path) => client.call("getAcl", { path }),
  getAllChildrenNumber: (client, path) => client.call("getAllChildrenNumber", { path }),
  getEphemerals: (client, prefixPath) => client.call("getEphemerals", { prefixPath }),
  sync: (client, path) => client.call("sync", { path }),
  addWatch: (client, path) => client.call("addWatch", { path, mode: 0 }),
  setData: (client, path) => client.call("setData", { path, data: null, version: 99 }),
  setAcl: (client, path) => client.call("setAcl", { path, acl: openAcl, version: 99 }),
  delete: (client, path) => client.call("delete", { path, version: 99 }),
};

export function edgesSuite(fixture: Fixture): void {
  // In the order of `withPath`.
  test.each([
    ["", [0, 0, 0, 0, 0, 0, 0, 0, -8, -8, -8]],
    ["x", [-101, -101, -101, -101, -101, 0, 0, 0, -8, -8, -8]],
    ["//", [-101, -101, -101, -101, -101, 0, 0, 0, -8, -8, -101]],
    ["/..", [-101, -101, -101, -101, -101, 0, 0, 0, -8, -8, -101]],
    ["/zookeeper/", [-101, -101, -101, -101, -101, 0, 0, 0, -8, -8, -101]],
    ["/\0", [-8, -101, -101, -101, -101, 0, 0, 0, -8, -8, -8]],
  ])("what each operation makes of the path %j", async (path, expected) => {
    const client = await fixture.connect();
    const answers: Record<string, number> = {};
    for (const [name, ask] of Object.entries(withPath)) answers[name] = (await ask(client, path)).err;
    expect(answers).toEqual(
      Object.fromEntries(Object.keys(withPath).map((name, index) => [name, expected[index] ?? NaN])),
    );
  });

  test("which characters a name may have", async () => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    const refused: string[] = [];
    for (const name of ["\u2028", " ", "\u00a0", "\uffef", "%", "\u007f", "\u009f", "\ufff0", "😀", "\ud7ff"]) {
      if ((await client.call("create", node(`${root}/${name}`))).err !== 0) refused.push(name);
    }
    expect(refused).toEqual(["\u007f", "\u009f", "\ufff0", "😀"]);
  });

  test("the server's own nodes: their stats, and that nobody makes children of the configuration", async () => {
    const client = await fixture.connect();
    const own = { czxid: 0n, mzxid: 0n, ctime: 0n, mtime: 0n, version: 0, ephemeralOwner: 0n, dataLength: 0 };
    const stat = async (path: string) => (await client.call("exists", { path, watch: false })).value?.stat;
    expect(await stat("/zookeeper")).toMatchObject({ ...own, pzxid: 0n, cversion: -2, aversion: 0, numChildren: 2 });
    expect(await stat("/zookeeper/config")).toMatchObject({ ...own, cversion: 0, aversion: -1, numChildren: 0 });
    expect((await client.call("getAcl", { path: "/zookeeper/config" })).value?.acl).toEqual([world(1)]);
    expect((await client.call("create", node("/zookeeper/config/mine"))).err).toBe(-102);
  });

  test("what stands behind a record is not looked at", async () => {
    const client = await fixture.connect();
    const reply = await client.send(zooKeeperOperations.exists.code, (writer) => {
      zooKeeperOperations.exists.request.write(writer, { path: "/", watch: false });
      writer.i64(7n);
    });
    expect(reply.err).toBe(0);
    expect((await client.ping()).err).toBe(0);
  });

  test("a read's body that cannot be read is answered with -5, and the next request is served", async () => {
    const client = await fixture.connect();
    const reply = await client.send(zooKeeperOperations.getData.code, (writer) => {
      writer.i32(1000);
      writer.i32(0);
    });
    expect(reply.err).toBe(-5);
    expect((await client.ping()).err).toBe(0);
  });

  test("a multi of reads, a multiRead of writes, and an operation that is neither make no sense: -5", async () => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    expect((await client.multi([{ type: "getData", path: root, watch: false }])).err).toBe(-5);
    expect((await client.multiRead([{ type: "delete", path: root, version: -1 }])).err).toBe(-5);
    const strange = await client.send(multiOperationCode, (writer) => {
      writer.i32(zooKeeperOperations.getAcl.code);
      writer.u8(0); // not the last
      writer.i32(-1);
      zooKeeperOperations.getAcl.request.write(writer, { path: root });
      writer.i32(-1);
      writer.u8(1);
      writer.i32(-1);
    });
    expect(strange.err).toBe(-5);
    expect((await client.call("exists", { path: root, watch: false })).err).toBe(0);
  });

  test("nothing behind a closeSession is done", async () => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    const closing = client.send(zooKeeperOperations.closeSession.code);
    // The real server may still say that the session has ended before it closes the connection.
    const late = client.call("create", node(`${root}/late`)).then(({ err }) => err, () => "closed");
    expect((await closing).err).toBe(0);
    expect(await late).not.toBe(0);
    const other = await fixture.connect();
    expect((await other.call("exists", { path: `${root}/late`, watch: false })).err).toBe(-101);
  });

  describe("lists of permissions", () => {
    test("lose what is doubled, and hide digests from who may not administer", async () => {
      const client = await fixture.connect();
      const path = `${await fixture.root(client)}/a`;
      const digest = { perms: 31, id: { scheme: "digest", id: "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=" } };
      await client.call("create", node(path, { acl: [digest, world(1), world(1)] }));
      const hidden = { perms: 31, id: { scheme: "digest", id: "u:x" } };
      expect((await client.call("getAcl", { path })).value?.acl).toEqual([hidden, world(1)]);
      await client.auth("digest", "u:p");
      expect((await client.call("getAcl", { path })).value?.acl).toEqual([digest, world(1)]);
    });

    test.each([["127.0.0.0/8", 0, 0], ["10.0.0.0/8", 0, -102], ["127.0.0.1/33", -114, -101], ["1.2.3", -114, -101]])(
      "the addresses %s: a create is answered with %d, a read with %d",
      async (range, made, read) => {
        const client = await fixture.connect();
        const path = `${await fixture.root(client)}/a`;
        expect((await client.call("create", node(path, { acl: [ip(range)] }))).err).toBe(made);
        expect((await client.call("getData", { path, watch: false })).err).toBe(read);
      },
    );

    test("any set of bits is taken", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      for (const perms of [0, 64, -1]) {
        expect((await client.call("create", node(`${root}/${perms}`, { acl: [world(perms)] }))).err).toBe(0);
      }
    });
  });

  describe("times to live", () => {
    const ttl = (path: string, milliseconds: bigint) => ({
      ...node(path, { flags: createFlag.persistentTtl }),
      ttl: milliseconds,
    });
    test("have 40 bits", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      expect((await client.call("createTtl", ttl(`${root}/a`, 0xffffffffffn))).err).toBe(0);
      expect((await client.call("createTtl", ttl(`${root}/b`, 0x10000000000n))).err).toBe(-8);
      expect((await client.call("createTtl", ttl(`${root}/c`, -5n))).err).toBe(-8);
    });

    test("are given in a multi too, and answered with a stat", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      const made = await client.multi([{ type: "createTtl", ...ttl(`${root}/a`, 600_000n) }]);
      expect(made.value).toMatchObject([{ type: "create2", path: `${root}/a`, stat: { ephemeralOwner: 0n } }]);
    });

    test("a node with a child stays", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      await client.call("createTtl", ttl(`${root}/parent`, 50n));
      await client.call("create", node(`${root}/parent/child`));
      await client.call("createTtl", ttl(`${root}/other`, 50n));
      await client.call("exists", { path: `${root}/other`, watch: true });
      // When the other has gone the reaper has seen both.
      await eventually(() => client.events.includes(`2:${root}/other`));
      expect((await client.call("exists", { path: `${root}/parent`, watch: false })).err).toBe(0);
      await client.call("setData", { path: `${root}/parent`, data: bytes("y"), version: -1 });
    });
  });

  describe("persistent watches", () => {
    test("are looked up and taken away as a whole by the kind of any", async () => {
      const client = await fixture.connect();
      const writer = await fixture.connect();
      const root = await fixture.root(writer);
      const any = 3;
      const check = async () => (await client.call("checkWatches", { path: root, type: any })).err;
      const take = async () => (await client.call("removeWatches", { path: root, type: any })).err;
      await client.call("addWatch", { path: root, mode: 0 });
      expect([await check(), await take(), await check(), await take()]).toEqual([0, 0, -121, -121]);
      await writer.call("create", node(`${root}/k`));
      await writer.call("setData", { path: root, data: null, version: -1 });
      expect((await client.takeEvents()).filter((event) => !/^[567]/.test(event))).toEqual([]);
    });

    test("a one-shot watch that turns into a persistent one stays", async () => {
      const client = await fixture.connect();
      const writer = await fixture.connect();
      const root = await fixture.root(writer);
      await client.call("getData", { path: root, watch: true });
      await client.call("addWatch", { path: root, mode: 0 });
      for (const _ of [1, 2]) await writer.call("setData", { path: root, data: null, version: -1 });
      expect(await client.takeEvents()).toEqual([`3:${root}`, `3:${root}`]);
    });

    test("end with their connection, and come back by setWatches2 only", async () => {
      const first = await fixture.connect();
      const writer = await fixture.connect();
      const root = await fixture.root(writer);
      await first.call("addWatch", { path: root, mode: 1 });
      const second = await fixture.connect({
        sessionId: first.sessionId,
        passwd: first.hello.passwd ?? new Uint8Array(),
      });
      await writer.call("setData", { path: root, data: null, version: -1 });
      expect(await second.takeEvents()).toEqual([]);
    });
  });
}
