/** Topics that move between a server with a data directory and servers that share a database. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { moveTopic } from "../../../src/pubsub/admin/move_topics.ts";
import { TopicNodes } from "../../../src/pubsub/ownership/topic_nodes.ts";
import { migrateDatabase } from "../../../src/base/postgres/database_schema.ts";
import { postgresTopicTables } from "../../../src/pubsub/store/postgres/postgres_tables.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { isFullDose } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";
import type { ProxyClient } from "../../support/proxy_client.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";
import { databaseAddress } from "../../support/postgres_topic_store.ts";
import { type StatementCut, StatementCutter } from "../../support/statement_cutter.ts";

setDefaultTimeout(isFullDose ? 1_200_000 : 120_000);

const topic = "news";
const encoder = new TextEncoder();

describeWithPeer("postgres", "a topic between stores", () => {
  let server: PostgresServer;
  let cutter: StatementCutter;
  let schemas = 0;
  beforeAll(async () => {
    server = await PostgresServer.start({ settings: ["fsync = off"] });
    // The settings of the tests' database are not safe, and a server refuses them.
    await server.sql("ALTER SYSTEM SET fsync = on");
    await server.reload();
    cutter = await StatementCutter.start({ host: "127.0.0.1", port: server.port });
  }, 60_000);
  afterAll(async () => {
    await cutter?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  /** The server "own" has a data directory; s1 and s2 share a database. */
  class Service implements AsyncDisposable {
    readonly cluster: PubsubCluster;
    readonly client: ProxyClient;
    readonly zk: ZooKeeper;
    readonly schema: string;
    /** Messages that were put and answered OK, and those that alice has got. */
    readonly put: string[] = [];
    readonly got: string[] = [];
    #last = -1;

    static async start(sessionTimeoutMs = 2000): Promise<Service> {
      const schema = `moves${++schemas}`;
      const address = databaseAddress(`postgres://baton@127.0.0.1:${cutter.port}/postgres`, schema);
      await migrateDatabase(address, { clock: systemClock(), name: "test", tables: postgresTopicTables });
      const cluster = await PubsubCluster.start({ servers: 2, database: address, sessionTimeoutMs });
      await cluster.startServer("own", { hasOwnStore: true });
      const service = new Service(cluster, await cluster.session(), schema);
      await service.#say({ name: "SUBSCRIBE", sender: "alice", topic, headers: {} });
      await service.#say({ name: "SUBSCRIBE", sender: "slow", topic, headers: {} });
      return service;
    }

    private constructor(cluster: PubsubCluster, zk: ZooKeeper, schema: string) {
      [this.cluster, this.client, this.zk, this.schema] = [cluster, cluster.client(), zk, schema];
    }

    async #say(message: Parameters<ProxyClient["say"]>[0]) {
      const answer = await this.client.say(message);
      expect([message.name, answer.status, answer.text]).toEqual([message.name, "OK", expect.anything()]);
      return answer;
    }

    /** The next message of bob, or one that was put before. Returns its ID. */
    async putNext(counter = this.put.length + 1): Promise<number | undefined> {
      const body = `body ${counter}`;
      const headers = { session: { number: 1, key: "k" }, firstUnacked: 1, msgId: `key ${counter}` };
      const put = { name: "PUT", sender: "bob", topic, counter, headers, body: encoder.encode(body) } as const;
      const { headers: said } = await this.#say(put);
      if (counter > this.put.length) this.put.push(body);
      return said?.ids?.[0]?.first;
    }

    /** The next message of alice, when it is there. */
    async getNext(): Promise<void> {
      const get = { name: "GET", sender: "alice", topic, last: this.#last, headers: { waitMs: 30_000 } } as const;
      const { text, messageId = -1 } = await this.#say(get);
      this.got.push(text);
      this.#last = messageId;
    }

    /** Everything that alice has not had yet. */
    async getAll(): Promise<void> {
      while (this.got.length < this.put.length) await this.getNext();
      expect(this.got).toEqual(this.put);
    }

    /** The log as a subscriber sees it that has had nothing yet. */
    async wholeLog(): Promise<string[]> {
      const texts: string[] = [];
      for (let last = -1; texts.length < this.put.length;) {
        const answer = await this.#say({
          name: "GET",
          sender: "slow",
          topic,
          last,
          headers: { waitMs: 15_000, peek: true },
        });
        texts.push(answer.text);
        last = answer.messageId ?? last;
      }
      return texts;
    }

    async owner(): Promise<string> {
      return (await this.cluster.owners()).get(topic) ?? "";
    }

    move(to: string) {
      return moveTopic(this.zk, this.cluster.path, { topic, to }, { clock: systemClock(), withinMs: 40_000 });
    }

    /** Moves it there, as an operator who asks again; a server that has lost its database may be opening the topic. */
    async moveTo(to: string): Promise<void> {
      await eventually(async () => ["moved", "there"].includes((await this.move(to)).kind), {
        what: `the topic to be at ${to}`,
        withinMs: 40_000,
      });
    }

    /** Where the topic has rows in the database, as `postgresTopicStates`; dropped rows go step by step. */
    async places(): Promise<string> {
      return await server.sql(
        `SELECT coalesce(string_agg(place::text, ' ' ORDER BY place), '') FROM ${this.schema}.topic
        WHERE place <> 2`,
      );
    }

    [Symbol.asyncDispose](): Promise<void> {
      return this.cluster[Symbol.asyncDispose]();
    }
  }

  test("moves between a data directory and a database, with messages, positions, counters and msg-ids", async () => {
    await using service = await Service.start();
    await service.moveTo("own");
    const ids: (number | undefined)[] = [];
    for (let count = 0; count < 20; count++) ids.push(await service.putNext());
    await service.getAll();
    for (const to of ["s1", "s2", "own", "s2", "own", "s1"]) {
      expect(await service.move(to)).toMatchObject({ kind: "moved" });
      expect(await service.owner()).toBe(to);
      const node = (await new TopicNodes(service.zk, service.cluster.path).read(topic))?.node;
      expect([node?.state, node?.store === undefined]).toEqual(["stored", to === "own"]);
      // Repeated puts are known by counter, and new ones follow.
      for (const counter of [1, 7, 20]) expect(await service.putNext(counter)).toBe(ids[counter - 1]);
      ids.push(await service.putNext());
      await service.getAll();
      expect(await service.wholeLog()).toEqual(service.put);
      await eventually(async () => await service.places() === (to === "own" ? "" : "0"), {
        what: "one copy to be left",
      });
    }
    expect(new Set(ids).size).toBe(26);
    // A server of the database dies: the other one has what was moved into it.
    await service.cluster.server("s1").kill();
    ids.push(await service.putNext());
    await service.getAll();
    expect(await service.owner()).toBe("s2");
    expect(service.cluster.problems.filter((problem) => !/standby|data_checksums/.test(String(problem)))).toEqual([]);
  });

  test("is put to and read from while it moves, and nothing is lost, repeated or out of order", async () => {
    await using service = await Service.start();
    let isMoving = true;
    const putting = (async () => {
      while (isMoving) await service.putNext();
    })();
    const reading = (async () => {
      while (isMoving) await service.getNext();
    })();
    for (const to of ["own", "s1", "own", "s2", "s1", "own"]) {
      const before = service.put.length;
      await service.moveTo(to);
      await eventually(() => service.put.length > before, { what: "a message to be put", withinMs: 30_000 });
    }
    isMoving = false;
    await putting;
    await service.putNext(); // alice may wait for it
    await reading;
    await service.getAll();
    expect(await service.wholeLog()).toEqual(service.put);
  });

  /** Statements of a transfer in each direction, in their order; the protocol ends their names with a zero. */
  const statements = {
    in: ["staged", "insert", "isArriving", "stage", "replace", "activate", "read"],
    out: ["read_messages", "seal", "clients_after", "drop"],
  } as const;
  const moments: readonly StatementCut[] = ["before", "sent", "after"];
  const gate = { in: ["stage", "activate"], out: ["seal", "drop"] } as const;

  for (const direction of ["in", "out"] as const) {
    for (const isKilled of [false, true]) {
      const end = isKilled ? ", and the server ends with it" : "";
      test(`is whole although the database is cut off at any statement of a transfer ${direction}${end}`, async () => {
        await using service = await Service.start();
        for (const marker of isFullDose ? statements[direction] : gate[direction]) {
          for (const moment of isFullDose ? moments : ["sent", "after"] as const) {
            await service.moveTo(direction === "in" ? "own" : "s1");
            await service.putNext();
            cutter.arm(moment, `topic_${marker}\0`);
            const to = direction === "in" ? "s1" : "own";
            const moving = service.move(to);
            if (isKilled) {
              await Promise.race([eventually(() => !cutter.isArmed, { everyMs: 1, withinMs: 20_000 }), moving]);
              await service.cluster.server("s1").kill();
            }
            await moving;
            // The rows are dropped when the move has ended.
            await eventually(() => !cutter.isArmed, { what: `${marker} to be cut` });
            await service.putNext();
            await service.getAll();
            expect([marker, moment, await service.wholeLog()]).toEqual([marker, moment, service.put]);
            if (isKilled) await service.cluster.server("s1").restart();
          }
        }
        await service.moveTo("s2");
        await eventually(async () => await service.places() === "0", { what: "one copy to be left", withinMs: 20_000 });
        await service.moveTo("own");
        await eventually(async () => await service.places() === "", { what: "no copy to be left", withinMs: 20_000 });
        await service.getAll();
      });
    }
  }
});
