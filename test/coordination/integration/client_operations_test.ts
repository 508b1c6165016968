import { afterAll, beforeAll, expect, test } from "bun:test";
import { connectToZooKeeper, type ZooKeeperConnectOptions } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import type { WatchEvent, ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { backends, describeBackend, type RunningBackend } from "../../support/backends.ts";
import { ZooKeeperError } from "../../../src/protocols/zookeeper/zookeeper_error.ts";
import { eventually } from "../../support/eventually.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const nothing = new Uint8Array(0);

for (const kind of backends) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    let roots = 0;
    beforeAll(async () => {
      backend = await kind.start();
    }, 40_000);
    afterAll(() => backend.close());

    const open = (options: Partial<ZooKeeperConnectOptions> = {}): Promise<ZooKeeper> =>
      connectToZooKeeper({ servers: parseZooKeeperServers(backend.servers), sessionTimeoutMs: 10_000, ...options });
    const newRoot = async (zk: ZooKeeper): Promise<string> =>
      (await zk.create(`/client-operations-${++roots}`, nothing)).path;

    test("a node is created, read, written, listed and deleted", async () => {
      await using zk = await open();
      const root = await newRoot(zk);
      const { stat } = await zk.create(`${root}/a`, bytes("one"));
      expect(await zk.getData(`${root}/a`)).toEqual({ data: bytes("one"), stat: stat as NonNullable<typeof stat> });
      expect((await zk.setData(`${root}/a`, bytes("two"), 0)).version).toBe(1);
      expect((await zk.getChildren(root)).children).toEqual(["a"]);
      expect((await zk.getAcl(root)).acl).toEqual([{ perms: 31, id: { scheme: "world", id: "anyone" } }]);
      await zk.sync(root);
      await zk.delete(`${root}/a`, 1);
      expect(await zk.exists(`${root}/a`)).toBeNull();
    });

    test("a recursive watch reports every change below its path, also in a chroot, until a reconnect", async () => {
      await using other = await open();
      const root = await newRoot(other);
      await using zk = await open({ servers: parseZooKeeperServers(`${backend.servers}${root}`) });
      const events: string[] = [];
      const watch = ({ type, path }: WatchEvent) => void events.push(`${type} ${path}`);
      const seen = async (...expected: string[]) => {
        await zk.sync("/");
        await eventually(() => events.length >= expected.length, { what: `${expected}; there are ${events}` });
        expect(events.splice(0)).toEqual(expected);
      };
      await zk.addRecursiveWatch?.("/a", watch); // before the node exists
      for (const name of ["a", "b", "a/x"]) await other.create(`${root}/${name}`, nothing);
      await other.setData(`${root}/a/x`, bytes("1"), -1);
      await seen("created /a", "created /a/x", "dataChanged /a/x");
      await other.multi([
        { type: "delete", path: `${root}/a/x`, version: -1 },
        { type: "create", path: `${root}/a/y`, data: nothing, acl: other.acl, flags: 0 },
      ]);
      await seen("deleted /a/x", "created /a/y");
    });

    test("data of several nodes is read by one request, each node by itself", async () => {
      await using other = await open();
      const root = await newRoot(other);
      await using zk = await open({ servers: parseZooKeeperServers(`${backend.servers}${root}`) });
      await zk.create("/a", bytes("one"));
      await zk.create("/b", nothing);
      const found = await zk.getDataOfAll?.(["/a", "/none", "/b"]) ?? [];
      expect(found.map((one) => one instanceof ZooKeeperError ? `${one.reason} ${one.path}` : one.data)).toEqual([
        ...[bytes("one"), "NONODE /none", nothing],
      ]);
      const [first] = found;
      expect(first instanceof ZooKeeperError ? null : first?.stat).toEqual((await zk.getData("/a")).stat);
    });

    test("with gathered events, requests are answered immediately, and events come after the time", async () => {
      await using other = await open();
      const root = await newRoot(other);
      await using zk = await open({ gatherEventsMs: 300 });
      const events: string[] = [];
      await zk.addRecursiveWatch?.(root, ({ path }) => void events.push(path));
      for (let index = 0; index < 20; index++) await other.create(`${root}/${index}`, nothing);
      await eventually(() => events.length === 20, { what: "all events" });
      expect((await zk.getChildren(root)).children.length).toBe(20);
    });

    test("sequential names count up, and ephemeral nodes go with their session", async () => {
      await using watcher = await open();
      const root = await newRoot(watcher);
      const zk = await open();
      const first = await zk.create(`${root}/n-`, nothing, { mode: "ephemeralSequential" });
      expect(first.path).toBe(`${root}/n-0000000000`);
      expect(first.stat?.ephemeralOwner).toBe(zk.session.id);
      expect((await zk.create(`${root}/`, nothing, { mode: "persistentSequential" })).path).toBe(`${root}/0000000001`);
      expect((await zk.create(`${root}/c`, nothing, { mode: "container" })).stat?.ephemeralOwner).toBe(0n);
      await zk.close();
      expect((await watcher.getChildren(root)).children.sort()).toEqual(["0000000001", "c"]);
    });

    test("a list is read that is longer than any request may be", async () => {
      await using zk = await open();
      const root = await newRoot(zk);
      const names = Array.from({ length: 6000 }, (_, index) => `${"x".repeat(200)}-${index}`);
      const acl = [{ perms: 31, id: { scheme: "world", id: "anyone" } }];
      for (let at = 0; at < names.length; at += 1000) {
        await zk.multi(
          names.slice(at, at + 1000).map((name) => ({
            type: "create" as const,
            path: `${root}/${name}`,
            data: nothing,
            acl,
            flags: 0,
          })),
        );
      }
      expect((await zk.getChildren(root)).children.length).toBe(names.length);
      expect(zk.session.connections).toBe(1);
    }, 30_000);

    test("refusals are told by name, with the path", async () => {
      await using zk = await open();
      const root = await newRoot(zk);
      const refused = (promise: Promise<unknown>) => promise.then(() => "done", (error) => [error.reason, error.path]);
      expect(await refused(zk.create(root, nothing))).toEqual(["NODEEXISTS", root]);
      expect(await refused(zk.create(`${root}/x/y`, nothing))).toEqual(["NONODE", `${root}/x/y`]);
      expect(await refused(zk.setData(root, nothing, 7))).toEqual(["BADVERSION", root]);
      expect(await refused(zk.delete(`${root}/x`, -1))).toEqual(["NONODE", `${root}/x`]);
      expect(await refused(zk.exists("no/slash"))).toEqual(["BADARGUMENTS", "no/slash"]);
      expect(await refused(zk.create(`${root}/big`, new Uint8Array(0x100000)))).toEqual([
        "BADARGUMENTS",
        `${root}/big`,
      ]);
    });

    test("a multi is done as a whole or not at all, and names the operation that failed", async () => {
      await using zk = await open();
      const root = await newRoot(zk);
      const results = await zk.multi([
        { type: "check", path: root, version: 0 },
        { type: "create2", path: `${root}/s-`, data: nothing, acl: null, flags: 3 },
        { type: "setData", path: root, data: bytes("x"), version: 0 },
      ]);
      expect(results[1]).toMatchObject({ path: `${root}/s-0000000000` });
      expect(results[2]).toMatchObject({ stat: { version: 1 } });
      const failed = zk.multi([
        { type: "create2", path: `${root}/t`, data: nothing, acl: null, flags: 0 },
        { type: "setData", path: root, data: bytes("y"), version: 0 },
        { type: "delete", path: `${root}/nope`, version: -1 },
      ]);
      await expect(failed).rejects.toMatchObject({ reason: "BADVERSION", index: 1, path: root });
      expect(await zk.exists(`${root}/t`)).toBeNull();
    });

    test("a watch tells of one change, before the answer that shows it", async () => {
      await using zk = await open();
      const root = await newRoot(zk);
      const events: (WatchEvent | string)[] = [];
      const watch = (event: WatchEvent) => events.push(event);
      await zk.exists(`${root}/later`, { watch });
      await zk.getChildren(root, { watch });
      await zk.create(`${root}/later`, nothing).then(() => events.push("answer"));
      await zk.getData(`${root}/later`, { watch });
      await zk.setData(`${root}/later`, bytes("1"), -1);
      await zk.setData(`${root}/later`, bytes("2"), -1);
      expect(events).toEqual([
        { type: "created", path: `${root}/later` },
        { type: "childrenChanged", path: root },
        "answer",
        { type: "dataChanged", path: `${root}/later` },
      ]);
    });

    test("a chroot is put before every path and taken off every answer", async () => {
      await using outside = await open();
      const root = await newRoot(outside);
      await using zk = await open({ servers: parseZooKeeperServers(`${tcpServers(backend)}${root}`) });
      const events: WatchEvent[] = [];
      await zk.getChildren("/", { watch: (event) => events.push(event) });
      expect((await zk.create("/n-", nothing, { mode: "persistentSequential" })).path).toBe("/n-0000000000");
      const results = await zk.multi([{ type: "create2", path: "/m", data: nothing, acl: null, flags: 0 }]);
      expect(results[0]).toMatchObject({ path: "/m" });
      expect((await outside.getChildren(root)).children.sort()).toEqual(["m", "n-0000000000"]);
      await eventually(() => events.length === 1);
      expect(events[0]).toEqual({ type: "childrenChanged", path: "/" });
    });

    test("a chroot that nobody has used yet is made with the first node in it", async () => {
      await using outside = await open();
      const root = await newRoot(outside);
      await using zk = await open({ servers: parseZooKeeperServers(`${tcpServers(backend)}${root}/deep/er`) });
      expect(await zk.exists("/")).toBeNull();
      await expect(zk.create("/a/b", nothing)).rejects.toHaveProperty("reason", "NONODE");
      expect((await outside.getChildren(root)).children).toEqual([]);
      expect((await zk.create("/a", nothing)).path).toBe("/a");
      expect((await outside.getChildren(`${root}/deep/er`)).children).toEqual(["a"]);
    });

    test("credentials open what an ACL closes, and wrong ones are refused", async () => {
      const auth = [{ scheme: "digest", credentials: "ada:secret" }];
      const acl = [{ perms: 31, id: { scheme: "auth", id: "" } }];
      await using stranger = await open();
      await using ada = await open({ auth, acl });
      const root = (await ada.create(`/client-operations-${++roots}`, bytes("mine"))).path;
      expect((await ada.getData(root)).data).toEqual(bytes("mine"));
      await expect(stranger.getData(root)).rejects.toMatchObject({ reason: "NOAUTH", code: "REFUSED" });
      await expect(open({ auth: [{ scheme: "nosuch", credentials: "x" }] })).rejects.toMatchObject({
        reason: "AUTHFAILED",
        code: "REFUSED",
      });
    });

    test("a burst of 50,000 requests is answered in order and in time that grows with their number only", async () => {
      await using zk = await open();
      const msFor = async (count: number) => {
        const startMs = performance.now();
        await Promise.all(Array.from({ length: count }, () => zk.exists("/zookeeper")));
        return performance.now() - startMs;
      };
      await msFor(5000);
      const small = await msFor(5000);
      expect(await msFor(50_000)).toBeLessThan(small * 40);
    }, 30_000);
  });
}

/** The servers as host:port: a unix address has no chroot. */
function tcpServers(backend: RunningBackend): string {
  const tcp = backend.nodes.map(({ address }) => address).filter((address) => address.kind === "tcp");
  return tcp.map(({ host, port }) => `${host}:${port}`).join(",");
}
