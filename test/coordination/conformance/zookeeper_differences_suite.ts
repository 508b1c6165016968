/**
 * Where the keeper differs from Apache ZooKeeper 3.8.0, on purpose: what each of them does, side by side.
 * docs/protocol/keeper.md gives the reason of each by the name of its test here. Later releases have taken over some of
 * it: `since38` is what 3.8.7 and 3.9.6 do, `since39` what 3.9.6 does.
 */
import { expect, test } from "bun:test";
import { createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { fourLetterWord } from "../../support/four_letter_word.ts";
import type { RawClient } from "../../support/raw_client.ts";
import { type Fixture, node, openAcl } from "./zookeeper_fixture.ts";

const privateAcl = [{ perms: 31, id: { scheme: "auth", id: "" } }];

/** An owner who has proved to be one, another client, and an open node. */
async function ownerAndOther(fixture: Fixture): Promise<[owner: RawClient, other: RawClient, root: string]> {
  const [owner, other] = [await fixture.connect(), await fixture.connect()];
  await owner.auth("digest", "u:p");
  return [owner, other, await fixture.root(owner)];
}

export function differencesSuite(fixture: Fixture): void {
  const { kind, release } = fixture.backend;
  function own<T>(each: { readonly keeper: T; readonly zookeeper: T; readonly since38?: T; readonly since39?: T }): T {
    const { keeper, zookeeper, since38 = zookeeper, since39 = since38 } = each;
    return kind === "keeper" ? keeper : release === "3.9.6" ? since39 : release === "3.8.7" ? since38 : zookeeper;
  }

  test("the opening of a session takes no zxid", async () => {
    const client = await fixture.connect();
    const last = async () => (await client.call("exists", { path: "/", watch: false })).zxid;
    const before = await last();
    await fixture.connect();
    expect(await last() - before).toBe(own({ keeper: 0n, zookeeper: 1n }));
  });

  test("a new data directory begins with a zxid made of the time", async () => {
    const client = await fixture.connect();
    const { zxid } = await client.ping();
    const secondsAgo = Date.now() / 1000 - Number(zxid >> 24n);
    expect(secondsAgo < 600).toBe(own({ keeper: true, zookeeper: false }));
  });

  test("session ids are random, not counted up", async () => {
    const [first, second] = [await fixture.connect(), await fixture.connect()];
    expect(second.sessionId - first.sessionId === 1n).toBe(own({ keeper: false, zookeeper: true }));
    expect([first, second].every(({ sessionId }) => sessionId >> 56n !== 0n)).toBe(true);
  });

  test("watches of several modes by one connection on one path do not end each other", async () => {
    const [client, writer] = [await fixture.connect(), await fixture.connect()];
    const set = (path: string) => writer.call("setData", { path, data: null, version: -1 });
    const once = await fixture.root(writer);
    await client.call("addWatch", { path: once, mode: 0 });
    await client.call("getData", { path: once, watch: true });
    await set(once);
    await set(once);
    expect(await client.takeEvents())
      .toEqual(own({
        keeper: [`3:${once}`, `3:${once}`],
        zookeeper: [`3:${once}`],
        since39: [`3:${once}`, `3:${once}`],
      }));
    const both = await fixture.root(writer);
    await client.call("addWatch", { path: both, mode: 0 });
    await client.call("addWatch", { path: both, mode: 1 });
    await writer.call("create", node(`${both}/k`));
    expect(await client.takeEvents())
      .toEqual(own({
        keeper: [`1:${both}/k`, `4:${both}`],
        zookeeper: [`1:${both}/k`],
        since39: [`1:${both}/k`, `4:${both}`],
      }));
  });

  test("a one-shot watch stays when its owner may not learn of the event", async () => {
    const [owner, other, root] = await ownerAndOther(fixture);
    await other.call("getData", { path: root, watch: true });
    await owner.call("setAcl", { path: root, acl: privateAcl, version: -1 });
    await owner.call("setData", { path: root, data: null, version: -1 });
    expect(await other.takeEvents()).toEqual([]);
    expect((await other.call("checkWatches", { path: root, type: 2 })).err).toBe(own({ keeper: 0, zookeeper: -121 }));
    await owner.call("setAcl", { path: root, acl: openAcl, version: -1 });
    await owner.call("setData", { path: root, data: null, version: -1 });
    expect(await other.takeEvents()).toEqual(own({ keeper: [`3:${root}`], zookeeper: [] }));
  });

  test("exists of a node takes READ, and leaves no watch without it", async () => {
    const [owner, other, root] = await ownerAndOther(fixture);
    const path = `${root}/secret`;
    await owner.call("create", node(path, { acl: privateAcl }));
    const asked = await other.call("exists", { path, watch: true });
    expect(asked.err).toBe(own({ keeper: -102, zookeeper: 0, since38: -102 }));
    expect((await other.call("checkWatches", { path, type: 2 })).err)
      .toBe(own({ keeper: -121, zookeeper: 0, since38: -121 }));
    expect((await owner.call("exists", { path, watch: false })).err).toBe(0);
    await other.auth("digest", "u:p");
    expect((await other.call("exists", { path, watch: false })).err).toBe(0);
  });

  test("setWatches shows nothing of a node that its owner may not read", async () => {
    const [owner, other, root] = await ownerAndOther(fixture);
    const path = `${root}/secret`;
    await owner.call("create", node(path, { acl: privateAcl }));
    await owner.call("create", node(`${path}/k`, { acl: privateAcl }));
    const again = { dataWatches: [path], childWatches: [path], existWatches: [path] };
    await other.call("setWatches", { ...again, relativeZxid: 0n });
    expect((await other.takeEvents()).sort())
      .toEqual(own({ keeper: [], zookeeper: [`1:${path}`, `3:${path}`, `4:${path}`], since38: [] }));
    // The watches are set, and fire when the node can be read.
    await owner.call("setAcl", { path, acl: openAcl, version: -1 });
    await owner.call("setData", { path, data: null, version: -1 });
    await owner.call("delete", { path: `${path}/k`, version: -1 });
    expect(await other.takeEvents()).toEqual(own({ keeper: [`3:${path}`, `4:${path}`], zookeeper: [] }));
  });

  test("dump counts the ephemerals that not all clients may read", async () => {
    const [owner, , root] = await ownerAndOther(fixture);
    const flags = createFlag.ephemeral;
    await owner.call("create", node(`${root}/secret`, { acl: privateAcl, flags }));
    await owner.call("create", node(`${root}/open`, { flags }));
    const dump = await fourLetterWord(fixture.address, "dump");
    expect(dump).toContain(`\t${root}/open\n`);
    expect(dump.includes(`${root}/secret`)).toBe(own({ keeper: false, zookeeper: true }));
    expect(dump.includes("\t1 hidden by their ACL\n")).toBe(own({ keeper: true, zookeeper: false }));
  });

  test("removeWatches of data or children leaves persistent watches", async () => {
    const [watcher, writer] = [await fixture.connect(), await fixture.connect()];
    const path = await fixture.root(writer);
    await watcher.call("addWatch", { path, mode: 0 });
    const [children, data] = [1, 2];
    const err = own({ keeper: -121, zookeeper: 0, since39: -121 });
    for (const type of [children, data]) {
      expect((await watcher.call("checkWatches", { path, type })).err).toBe(err);
      expect((await watcher.call("removeWatches", { path, type })).err).toBe(err);
    }
    await writer.call("setData", { path, data: null, version: -1 });
    await writer.call("create", node(`${path}/k`));
    const told = (await watcher.takeEvents()).filter((event) => !/^[567]/.test(event));
    const events = [`3:${path}`, `4:${path}`];
    expect(told).toEqual(own({ keeper: events, zookeeper: [], since39: events }));
    expect((await watcher.call("removeWatches", { path, type: 3 })).err)
      .toBe(own({ keeper: 0, zookeeper: -121, since39: 0 }));
  });

  test("quotas are not counted", async () => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    const quota = `/zookeeper/quota${root}`;
    const text = (value: string) => ({ data: new TextEncoder().encode(value) });
    await client.call("create", node(quota));
    await client.call("create", node(`${quota}/zookeeper_limits`, text("count=5,bytes=-1")));
    await client.call("create", node(`${quota}/zookeeper_stats`, text("count=1,bytes=1")));
    await client.call("create", node(`${root}/k`));
    const stats = await client.call("getData", { path: `${quota}/zookeeper_stats`, watch: false });
    expect(new TextDecoder().decode(stats.value?.data ?? new Uint8Array()))
      .toBe(own({ keeper: "count=1,bytes=1", zookeeper: "count=2,bytes=2" }));
  });

  test.each([
    ["reconfig, without the right to", 16, { keeper: -6, zookeeper: -123 }],
    ["deleteContainer, which servers send to themselves", 20, { keeper: -6, zookeeper: -8, since38: null }],
    ["SASL", 102, { keeper: -6, zookeeper: 0 }],
  ])("not served: %s", async (_, code, errs) => {
    const client = await fixture.connect();
    const answer = client.send(code, (writer) => {
      for (let field = 0; field < 5; field++) writer.i32(0); // empty fields, whichever they are
    });
    // Null: the connection is closed without an answer.
    expect(await answer.then(({ err }) => err, () => null)).toBe(own<number | null>(errs));
  });

  test.each(["crst", "srst", "dirs", "wchc", "wchp"])("four-letter words not served: %s", async (word) => {
    const answer = await fourLetterWord(fixture.address, word);
    expect(answer === "").toBe(own({ keeper: true, zookeeper: false }));
  });

  test("mntr and srvr tell no latencies", async () => {
    expect(/^zk_avg_latency\t/m.test(await fourLetterWord(fixture.address, "mntr")))
      .toBe(own({ keeper: false, zookeeper: true }));
    expect(/^Latency /m.test(await fourLetterWord(fixture.address, "srvr"))).toBe(
      own({ keeper: false, zookeeper: true }),
    );
  });
}
