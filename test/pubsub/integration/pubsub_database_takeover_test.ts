/**
 * Processes that share a database, on each coordination service: when the topics of a killed server are served again.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { migrateDatabase } from "../../../src/base/postgres/database_schema.ts";
import { postgresTopicTables } from "../../../src/pubsub/store/postgres/postgres_tables.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { describeBackend, keeper, zooKeeperEnsemble } from "../../support/backends.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";
import { databaseAddress } from "../../support/postgres_topic_store.ts";

setDefaultTimeout(120_000);

const sessionTimeoutMs = 4000;
/** The promise is this time after the session timeout. */
const servedMsMax = 2000;
const topics = Array.from({ length: 12 }, (_, index) => `topic ${index}`);

describeWithPeer("postgres", "servers that share a database", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start();
    const address = databaseAddress(server.url, "baton");
    await migrateDatabase(address, { clock: systemClock(), name: "test", tables: postgresTopicTables });
  });
  afterAll(async () => await server?.[Symbol.asyncDispose]());

  for (const backend of [keeper, zooKeeperEnsemble]) {
    describeBackend(backend, () => {
      test("each topic of a killed server is served one session timeout and two seconds later", async () => {
        const running = await backend.start();
        try {
          const roles = { servers: 3, as: "processes", databaseUrl: server.url } as const;
          await using cluster = await PubsubCluster.start({ backend: running, sessionTimeoutMs, ...roles });
          const client = cluster.client();
          const put = (topic: string, counter: number) =>
            client.say({
              ...{ name: "PUT", sender: "bob", topic: `${backend.kind} ${topic}`, counter },
              headers: { deadlineMs: 20_000 },
              body: new Uint8Array(1),
            });
          for (const topic of topics) expect((await put(topic, 1)).status).toBe("OK");
          const before = await cluster.owners();
          const victim = "s1";
          await cluster.server(victim).kill();
          const answers = await Promise.all(topics.map((topic) => put(topic, 2)));
          expect(answers.map(({ status }) => status)).toEqual(topics.map(() => "OK"));
          const late = answers.filter(({ quietMs }) => quietMs > sessionTimeoutMs + servedMsMax);
          expect(late.map(({ quietMs }) => quietMs)).toEqual([]);
          // Its topics are spread over the others; theirs have stayed.
          const after = await cluster.owners();
          for (const [topic, owner] of before) {
            if (owner === victim) expect(["s2", "s3"]).toContain(after.get(topic) as string);
            else expect(after.get(topic)).toBe(owner);
          }
        } finally {
          await running.close();
        }
      });
    });
  }
});
