/** Who may do what: identities of a connection, and the lists of the nodes. */
import { describe, expect, test } from "bun:test";
import { aclPermission } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import type { Acl } from "../../../src/protocols/zookeeper/jute/zookeeper_records.ts";
import type { RawClient } from "../../support/raw_client.ts";
import { bytes, type Fixture, node, openAcl, sha1Base64, superUser } from "./zookeeper_fixture.ts";

const entry = (scheme: string, id: string, perms: number = aclPermission.all): Acl => ({ perms, id: { scheme, id } });
const digestOf = (credentials: string) => `${credentials.split(":")[0]}:${sha1Base64(credentials)}`;

export function aclSuite(fixture: Fixture): void {
  test("authenticates with a digest, and says who one is", async () => {
    const client = await fixture.connect();
    expect(await client.auth("digest", "u:p")).toMatchObject({ err: 0, xid: -4, zxid: 0n });
    const { value } = await client.call("whoAmI", {});
    expect(value?.clientInfo).toContainEqual({ authScheme: "digest", user: "u" });
    expect(value?.clientInfo).toContainEqual({ authScheme: "ip", user: "127.0.0.1" });
  });

  test.each([["ip", "10.0.0.1"], ["ip", ""], ["digest", "nocolon"], ["digest", ""]])(
    "accepts the credentials %s:%s",
    async (scheme, credentials) => {
      const client = await fixture.connect();
      expect((await client.auth(scheme, credentials)).err).toBe(0);
      const { value } = await client.call("whoAmI", {});
      expect(value?.clientInfo).toContainEqual({ authScheme: "ip", user: "127.0.0.1" });
      expect(value?.clientInfo?.length).toBe(scheme === "ip" ? 1 : 2);
      if (scheme === "digest") expect(value?.clientInfo).toContainEqual({ authScheme: scheme, user: credentials });
    },
  );

  test("an unknown scheme fails the connection, not the session", async () => {
    const client = await fixture.connect();
    expect((await client.auth("nosuch", "x")).err).toBe(-115);
    await client.closed;
    const again = await fixture.connect({
      sessionId: client.sessionId,
      passwd: client.hello.passwd ?? new Uint8Array(),
    });
    expect(again.sessionId).toBe(client.sessionId);
  });

  test.each<[string, Acl[] | null, number]>([
    ["null", null, -114],
    ["an empty list", [], -114],
    ["world:x", [entry("world", "x")], -114],
    ["auth without an identity", [entry("auth", "")], -114],
    ["an unknown scheme", [entry("nosuch", "x")], -114],
    ["a malformed digest", [entry("digest", "nocolon")], -114],
    ["an address", [entry("ip", "127.0.0.1")], 0],
    ["a digest", [entry("digest", digestOf("u:p"))], 0],
  ])("an ACL that is %s is answered with %2$d", async (_, acl, err) => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    expect((await client.call("create", node(`${root}/a`, { acl }))).err).toBe(err);
  });

  describe("a node for one digest", () => {
    const attempts: [string, (client: RawClient, path: string) => Promise<{ err: number }>][] = [
      ["getData", (client, path) => client.call("getData", { path, watch: false })],
      ["setData", (client, path) => client.call("setData", { path, data: bytes("y"), version: -1 })],
      ["getChildren", (client, path) => client.call("getChildren", { path, watch: false })],
      ["getChildren2", (client, path) => client.call("getChildren2", { path, watch: false })],
      ["create below it", (client, path) => client.call("create", node(`${path}/k`))],
      ["getACL", (client, path) => client.call("getAcl", { path })],
      ["setACL", (client, path) => client.call("setAcl", { path, acl: openAcl, version: -1 })],
    ];
    const make = async () => {
      const owner = await fixture.connect();
      await owner.auth("digest", "u:p");
      const root = await fixture.root(owner);
      const path = `${root}/private`;
      expect((await owner.call("create", node(path, { acl: [entry("auth", "")] }))).err).toBe(0);
      return { owner, path };
    };

    test("has the connection's digest in place of auth", async () => {
      const { owner, path } = await make();
      expect((await owner.call("getAcl", { path })).value?.acl).toEqual([entry("digest", digestOf("u:p"))]);
    });

    test.each(attempts)("refuses %s to others", async (_, attempt) => {
      const { owner, path } = await make();
      const other = await fixture.connect();
      expect((await attempt(other, path)).err).toBe(-102);
      expect((await attempt(owner, path)).err).toBe(0);
    });

    test("refuses others inside a multi as well", async () => {
      const { path } = await make();
      const other = await fixture.connect();
      const reply = await other.multi([{ type: "setData", path, data: null, version: -1 }]);
      expect(reply.value).toEqual([{ type: "error", err: -102 }]);
    });

    test("can be deleted by whom the parent lets", async () => {
      const { path } = await make();
      const other = await fixture.connect();
      expect((await other.call("delete", { path, version: -1 })).err).toBe(0);
    });

    test("protects its children from deletion by others", async () => {
      const { owner, path } = await make();
      await owner.call("create", node(`${path}/k`));
      const other = await fixture.connect();
      expect((await other.call("delete", { path: `${path}/k`, version: -1 })).err).toBe(-102);
    });

    // The keeper has no super user: whoever may read its folder may do all that one could.
    if (fixture.backend.kind === "zookeeper") {
      test("is open to the super user", async () => {
        const { path } = await make();
        const root = await fixture.connect();
        await root.auth("digest", superUser.credentials);
        expect((await root.call("getData", { path, watch: false })).err).toBe(0);
      });
    }

    // CVE-2024-23944: ZooKeeper since 3.8.4 and 3.9.2, and Debian's 3.8.0, which the tests install.
    test.each([["recursive", 1], ["persistent", 0]])("is shown to its readers alone by a %s watch", async (_, mode) => {
      const { owner, path } = await make();
      const [other, once] = [await fixture.connect(), await fixture.connect()];
      const root = path.slice(0, path.lastIndexOf("/"));
      for (const client of [owner, other]) await client.call("addWatch", { path: mode === 1 ? root : path, mode });
      await once.call("exists", { path: `${path}/k`, watch: true });
      await owner.call("create", node(`${path}/k`, { acl: [entry("auth", "")] }));
      await owner.call("setData", { path, data: null, version: -1 });
      await owner.call("delete", { path: `${path}/k`, version: -1 });
      await owner.call("delete", { path, version: -1 });
      const all = mode === 1
        ? [`1:${path}/k`, `3:${path}`, `2:${path}/k`, `2:${path}`]
        : [`4:${path}`, `3:${path}`, `4:${path}`, `2:${path}`];
      expect(await owner.takeEvents()).toEqual(all);
      expect([await other.takeEvents(), await once.takeEvents()]).toEqual([[], []]);
      // Of a node that everyone may read the same watch goes on to tell.
      if (mode === 0) await owner.call("create", node(path));
      await owner.call("setData", { path: mode === 1 ? root : path, data: null, version: -1 });
      expect((await other.takeEvents()).at(-1)).toBe(`3:${mode === 1 ? root : path}`);
    });

    test("identities belong to a connection, not to its session", async () => {
      const { owner, path } = await make();
      const again = await fixture.connect({
        sessionId: owner.sessionId,
        passwd: owner.hello.passwd ?? new Uint8Array(),
      });
      expect((await again.call("getData", { path, watch: false })).err).toBe(-102);
    });
  });

  test("permissions are taken one by one; READ or ADMIN shows the list", async () => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    await client.call("create", node(`${root}/r`, { acl: [entry("world", "anyone", aclPermission.read)] }));
    expect((await client.call("getData", { path: `${root}/r`, watch: false })).err).toBe(0);
    expect((await client.call("setData", { path: `${root}/r`, data: null, version: -1 })).err).toBe(-102);
    expect((await client.call("create", node(`${root}/r/k`))).err).toBe(-102);
    expect((await client.call("getAcl", { path: `${root}/r` })).err).toBe(0);
    await client.call("create", node(`${root}/w`, { acl: [entry("world", "anyone", aclPermission.write)] }));
    expect((await client.call("getAcl", { path: `${root}/w` })).err).toBe(-102);
    expect((await client.call("setData", { path: `${root}/w`, data: null, version: -1 })).err).toBe(0);
  });

  test("setACL is guarded by the list's own version", async () => {
    const client = await fixture.connect();
    const path = await fixture.root(client);
    const first = await client.call("setAcl", { path, acl: openAcl, version: 0 });
    expect(first.value?.stat).toMatchObject({ aversion: 1, version: 0 });
    expect((await client.call("setAcl", { path, acl: openAcl, version: 0 })).err).toBe(-103);
    expect((await client.call("setAcl", { path, acl: [], version: -1 })).err).toBe(-114);
  });
}
