/** Transactions: all or nothing, one zxid, and what each operation's result says. */
import { expect, test } from "bun:test";
import { createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { bytes, type Fixture, node } from "./zookeeper_fixture.ts";

export function multiSuite(fixture: Fixture): void {
  // Until 3.8.1 a create2 in a multi was answered as a create (ZOOKEEPER-4026); clients read either.
  const answersCreate2 = !["debian", null].includes(fixture.backend.release);

  test("all operations happen at once, with one zxid", async () => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    const before = (await client.ping()).zxid;
    const reply = await client.multi([
      { type: "create", ...node(`${root}/a`) },
      { type: "create2", ...node(`${root}/b`, { flags: createFlag.ephemeral }) },
      { type: "setData", path: `${root}/a`, data: bytes("y"), version: 0 },
      { type: "check", path: `${root}/a`, version: 1 },
      { type: "delete", path: `${root}/a`, version: 1 },
    ]);
    expect(reply).toMatchObject({ err: 0, zxid: before + 1n });
    expect(reply.value).toMatchObject([
      { type: "create", path: `${root}/a` },
      { type: answersCreate2 ? "create2" : "create", path: `${root}/b` },
      { type: "setData", stat: { version: 1, mzxid: reply.zxid } },
      { type: "check" },
      { type: "delete" },
    ]);
    expect((await client.call("getChildren", { path: root, watch: false })).value?.children).toEqual(["b"]);
  });

  test("one that fails undoes all; before it 0, after it -2, and the zxid is used up", async () => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    const before = (await client.ping()).zxid;
    const reply = await client.multi([
      { type: "create", ...node(`${root}/a`) },
      { type: "check", path: root, version: 7 },
      { type: "create", ...node(`${root}/b`) },
    ]);
    expect(reply).toMatchObject({ err: 0, zxid: before + 1n });
    expect(reply.value).toEqual([
      { type: "error", err: 0 },
      { type: "error", err: -103 },
      { type: "error", err: -2 },
    ]);
    const stat = (await client.call("exists", { path: root, watch: false })).value?.stat;
    expect(stat).toMatchObject({ numChildren: 0, cversion: 0, pzxid: stat?.czxid });
  });

  test("later operations see the earlier ones", async () => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    const made = await client.multi([
      { type: "create", ...node(`${root}/a`) },
      { type: "create", ...node(`${root}/a/b`) },
      { type: "delete", path: `${root}/a/b`, version: -1 },
      { type: "delete", path: `${root}/a`, version: -1 },
      { type: "create", ...node(`${root}/a`) },
    ]);
    expect(made.value?.map(({ type }) => type)).toEqual(["create", "create", "delete", "delete", "create"]);
    const full = await client.multi([
      { type: "create", ...node(`${root}/a/b`) },
      { type: "delete", path: `${root}/a`, version: -1 },
    ]);
    expect(full.value).toEqual([{ type: "error", err: 0 }, { type: "error", err: -111 }]);
  });

  test.each([
    ["a version", -103, (root: string) => ({ type: "setData", path: root, data: null, version: 3 }) as const],
    ["a missing node", -101, (root: string) => ({ type: "delete", path: `${root}/no`, version: -1 }) as const],
    ["a bad path", -8, () => ({ type: "create", ...node("bad") }) as const],
    ["an empty ACL", -114, (root: string) => ({ type: "create", ...node(`${root}/a`, { acl: [] }) }) as const],
    ["a node that is there", -110, (root: string) => ({ type: "create", ...node(root) }) as const],
    ["a check of nothing", -101, (root: string) => ({ type: "check", path: `${root}/no`, version: -1 }) as const],
  ])("%s is refused with %d", async (_, err, operation) => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    const reply = await client.multi([operation(root)]);
    expect(reply).toMatchObject({ err: 0, value: [{ type: "error", err }] });
  });

  test("the lock's grant: guarded by the version, made by the session, away from the queue", async () => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    for (const name of ["q", "h"]) await client.call("create", node(`${root}/${name}`));
    await client.call("create", node(`${root}/q/me`, { flags: createFlag.ephemeral }));
    const grant = () =>
      client.multi([
        { type: "setData", path: root, data: bytes("state"), version: 0 },
        { type: "create", ...node(`${root}/h/me`, { flags: createFlag.ephemeral }) },
        { type: "delete", path: `${root}/q/me`, version: -1 },
      ]);
    const granted = await grant();
    const holder = (await client.call("exists", { path: `${root}/h/me`, watch: false })).value?.stat;
    expect(granted.value?.[0]).toMatchObject({ stat: { mzxid: holder?.czxid } });
    expect(holder?.ephemeralOwner).toBe(client.sessionId);
    expect((await grant()).value?.[0]).toEqual({ type: "error", err: -103 });
  });

  test("an empty one is fine", async () => {
    const client = await fixture.connect();
    expect(await client.multi([])).toMatchObject({ err: 0, value: [] });
  });

  test("multiRead answers each by itself", async () => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    await client.call("create", node(`${root}/k`));
    const reply = await client.multiRead([
      { type: "getData", path: root, watch: false },
      { type: "getChildren", path: root, watch: false },
      { type: "getData", path: `${root}/no`, watch: false },
    ]);
    expect(reply.value).toMatchObject([
      { type: "getData", data: bytes("x") },
      { type: "getChildren", children: ["k"] },
      { type: "error", err: -101 },
    ]);
  });
}
