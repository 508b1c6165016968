/** Several servers with the topics of one database: what dies, who takes over, and what clients get. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { migrateDatabase } from "../../../src/base/postgres/database_schema.ts";
import { postgresTopicTables } from "../../../src/pubsub/store/postgres/postgres_tables.ts";
import { forgetServer } from "../../../src/pubsub/ownership/forget_server.ts";
import { moveTopic } from "../../../src/pubsub/admin/move_topics.ts";
import { TopicNodes } from "../../../src/pubsub/ownership/topic_nodes.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { eventually } from "../../support/eventually.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";
import type { Answered, ProxyClient } from "../../support/proxy_client.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";
import { databaseAddress } from "../../support/postgres_topic_store.ts";

const encoder = new TextEncoder();
const topics = ["a", "b", "c", "d", "e", "f"];

describeWithPeer("postgres", "servers that share a database", () => {
  let server: PostgresServer;
  let schemas = 0;
  beforeAll(async () => void (server = await PostgresServer.start({ settings: ["fsync = off"] })), 60_000);
  afterAll(async () => await server?.[Symbol.asyncDispose]());

  async function clusterOf(servers: number, balanceEveryMs?: number): Promise<PubsubCluster> {
    // The settings of the tests' database are not safe, and a server refuses them.
    const address = databaseAddress(server.url, `cluster${++schemas}`);
    await server.sql("ALTER SYSTEM SET fsync = on");
    await server.reload();
    await migrateDatabase(address, { clock: systemClock(), name: "test", tables: postgresTopicTables });
    const balance = balanceEveryMs === undefined ? {} : { balanceEveryMs };
    return await PubsubCluster.start({ servers, database: address, sessionTimeoutMs: 2000, ...balance });
  }

  const subscribe = (client: ProxyClient, topic: string) =>
    client.say({ name: "SUBSCRIBE", sender: "alice", topic, headers: {} });
  const put = (client: ProxyClient, topic: string, counter: number) =>
    client.say({
      name: "PUT",
      sender: "bob",
      topic,
      counter,
      headers: {},
      body: encoder.encode(`${topic} ${counter}`),
    });
  const get = (client: ProxyClient, topic: string, last: number): Promise<Answered> =>
    client.say({ name: "GET", sender: "alice", topic, last, headers: { waitMs: 15_000 } });

  /** What alice gets of a topic, until it has this number of messages. */
  async function received(client: ProxyClient, topic: string, count: number): Promise<string[]> {
    const texts: string[] = [];
    for (let last = -1; texts.length < count;) {
      const answer = await get(client, topic, last);
      expect(answer.status).toBe("OK");
      texts.push(answer.text);
      last = answer.messageId ?? last;
    }
    return texts;
  }

  test("a server that dies loses nothing: another one owns its topics after its session", async () => {
    await using cluster = await clusterOf(2);
    const client = cluster.client();
    for (const topic of topics) {
      expect((await subscribe(client, topic)).status).toBe("OK");
      expect((await put(client, topic, 1)).status).toBe("OK");
    }
    expect(new Set((await cluster.owners()).values())).toEqual(new Set(["s1", "s2"]));
    await cluster.server("s1").kill();
    const answers = await Promise.all(topics.map((topic) => put(client, topic, 2)));
    expect(answers.map(({ status }) => status)).toEqual(topics.map(() => "OK"));
    expect(new Set((await cluster.owners()).values())).toEqual(new Set(["s2"]));
    for (const topic of topics) expect(await received(client, topic, 2)).toEqual([`${topic} 1`, `${topic} 2`]);
    // It comes back with nothing, and takes new topics.
    await cluster.server("s1").restart();
    let made = 0;
    await eventually(async () => {
      expect((await put(client, `new ${++made}`, 1)).status).toBe("OK");
      return (await cluster.owners()).get(`new ${made}`) === "s1";
    });
    expect((await put(client, "a", 2)).status).toBe("OK");
    expect(cluster.problems.filter((problem) => !/standby|data_checksums/.test(String(problem)))).toEqual([]);
  }, 60_000);

  test(
    "a get that is held is answered after its server has lost its session, whichever server has the topic then",
    async () => {
      await using cluster = await clusterOf(2);
      const client = cluster.client();
      expect((await subscribe(client, "a")).status).toBe("OK");
      expect((await put(client, "a", 1)).status).toBe("OK");
      const owner = (await cluster.owners()).get("a") as string;
      const other = owner === "s1" ? "s2" : "s1";
      const held = get(client, "a", 1);
      // The server begins another session at once: it, or the other one, is asked first.
      const zk = await cluster.session();
      await zk.delete(cluster.path.server(owner), -1);
      expect((await put(client, "a", 2)).status).toBe("OK");
      expect((await held).text).toBe("a 2");
      const { node } = await new TopicNodes(zk, cluster.path).read("a") ?? {};
      expect([`${owner} 1 stored`, `${other} 2 stored`]).toContain(`${node?.owner} ${node?.epoch} ${node?.state}`);
    },
    60_000,
  );

  test("a topic moves on from a server that nobody has asked for it", async () => {
    await using cluster = await clusterOf(3);
    const client = cluster.client();
    expect((await subscribe(client, "a")).status).toBe("OK");
    expect((await put(client, "a", 1)).status).toBe("OK");
    const zk = await cluster.session();
    const options = { clock: systemClock(), withinMs: 20_000 };
    const owner = (await cluster.owners()).get("a") as string;
    const others = ["s1", "s2", "s3"].filter((id) => id !== owner);
    for (const to of [...others, owner, ...others]) {
      expect(await moveTopic(zk, cluster.path, { topic: "a", to }, options)).toMatchObject({ kind: "moved" });
    }
    expect(await received(client, "a", 1)).toEqual(["a 1"]);
  }, 60_000);

  test("a database that is killed and comes back has all that was answered OK", async () => {
    await using cluster = await clusterOf(2);
    const client = cluster.client();
    for (const topic of topics) {
      await subscribe(client, topic);
      expect((await put(client, topic, 1)).status).toBe("OK");
    }
    await server.kill();
    const puts = topics.map((topic) => put(client, topic, 2));
    await server.resume();
    // Their outcome is unknown to the servers; the proxy repeats them when the topics are open again.
    expect((await Promise.all(puts)).map(({ status }) => status)).toEqual(topics.map(() => "OK"));
    for (const topic of topics) expect(await received(client, topic, 2)).toEqual([`${topic} 1`, `${topic} 2`]);
  }, 60_000);

  test("a server that comes back gets its share, and nothing is lost while topics move", async () => {
    await using cluster = await clusterOf(1, 100);
    const client = cluster.client();
    const many = Array.from({ length: 12 }, (_, index) => `many ${index}`);
    for (const topic of many) {
      await subscribe(client, topic);
      expect((await put(client, topic, 1)).status).toBe("OK");
    }
    const held = many.map((topic) => get(client, topic, 1));
    await cluster.startServer("s2");
    const sharesOf = async () => {
      const owners = [...(await cluster.owners()).values()];
      return ["s1", "s2"].map((id) => owners.filter((owner) => owner === id).length);
    };
    await eventually(async () => (await sharesOf())[1] === 6, { what: "the second server to have its share" });
    const puts = await Promise.all(many.map((topic) => put(client, topic, 2)));
    expect(puts.map(({ status }) => status)).toEqual(many.map(() => "OK"));
    expect((await Promise.all(held)).map(({ text }) => text)).toEqual(many.map((topic) => `${topic} 2`));
    for (const topic of many) expect((await get(client, topic, 1)).text).toBe(`${topic} 2`);
    expect(await sharesOf()).toEqual([6, 6]);
  }, 60_000);

  test("forget gives the topics of a server that is gone to others, and loses nothing", async () => {
    await using cluster = await clusterOf(2);
    const client = cluster.client();
    for (const topic of topics) {
      await subscribe(client, topic);
      expect((await put(client, topic, 1)).status).toBe("OK");
    }
    const before = await cluster.owners();
    await cluster.server("s1").kill();
    const zk = await cluster.session();
    const { lost, returned, takenOver } = await forgetServer(zk, cluster.path, "s1");
    expect({ lost, returned }).toEqual({ lost: [], returned: [] });
    expect([...takenOver].sort()).toEqual(topics.filter((topic) => before.get(topic) === "s1"));
    expect(new Set((await cluster.owners()).values())).toEqual(new Set(["s2"]));
    for (const topic of topics) expect(await received(client, topic, 1)).toEqual([`${topic} 1`]);
  }, 60_000);

  test("topics of a coordination service that has lost its data are found in the database", async () => {
    await using cluster = await clusterOf(1);
    const client = cluster.client();
    await subscribe(client, "a");
    expect((await put(client, "a", 1)).status).toBe("OK");
    const zk = await cluster.session();
    const before = await new TopicNodes(zk, cluster.path).read("a");
    await zk.delete(cluster.path.topic("a"), -1);
    // The server stops serving when its session ends; the proxy then makes a new topic of this name.
    await cluster.server("s1").restart();
    expect((await put(client, "a", 2)).status).toBe("OK");
    const after = await new TopicNodes(zk, cluster.path).read("a");
    expect(after?.node.incarnation).toBe(before?.node.incarnation as string);
    expect(after?.node.epoch).toBeGreaterThan(before?.node.epoch as number);
    expect(await received(client, "a", 2)).toEqual(["a 1", "a 2"]);
  }, 60_000);
});
