/**
 * A real PostgreSQL that leaves out changes without an error, or refuses them: nothing is acknowledged, and the reason
 * is named.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { BatonError } from "../../../src/base/errors.ts";
import { migrateDatabase } from "../../../src/base/postgres/database_schema.ts";
import { postgresTopicTables } from "../../../src/pubsub/store/postgres/postgres_tables.ts";
import { PostgresRetryStore } from "../../../src/retry/queue/postgres/postgres_retry_store.ts";
import { postgresQueueTables } from "../../../src/retry/queue/postgres/postgres_queue_tables.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";
import { rigMessage, rigRules, rigSuccess } from "../../support/retry_rig.ts";
import { databaseAddress, PostgresTopicStore } from "../../support/postgres_topic_store.ts";
import { codes, connecting, get, newTopics, put, subscribe, texts } from "../../support/postgres_topics.ts";

setDefaultTimeout(60_000);

const states = ["waiting", "in_flight", "done", "dead", "dropped", "cancelled"] as const;
const failureOf = (work: Promise<unknown>): Promise<BatonError> =>
  work.then((value) => Promise.reject(new Error(`it succeeded: ${JSON.stringify(value)}`)), (error) => error);

describeWithPeer("postgres", "a database that leaves out changes", () => {
  let server: PostgresServer;
  let queues = 0;
  beforeAll(async () => {
    server = await PostgresServer.start();
    await server.sql("CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'");
  });
  afterAll(async () => await server?.[Symbol.asyncDispose]());

  const leaveOut = (table: string, events: string) =>
    server.sql(`CREATE TRIGGER no BEFORE ${events} ON ${table} FOR EACH ROW EXECUTE FUNCTION leave_out()`);
  const allow = (table: string) => server.sql(`DROP TRIGGER no ON ${table}`);

  async function queue(): Promise<{ readonly store: PostgresRetryStore; readonly schema: string }> {
    const schema = `queue${++queues}`;
    const address = databaseAddress(server.url, schema);
    const rules = { ...rigRules, letters: "pending" } as const;
    const store = await PostgresRetryStore.open({
      address,
      name: "q",
      rules,
      mustExist: false,
      migrates: true,
      leaseMs: 60_000,
    });
    return { store, schema };
  }

  const session = { number: 1, key: "k" };
  for (const table of ["topic_message", "topic_client", "topic_window", "topic_resolved", "topic_msg_id"]) {
    test(`a put is not OK while rows of ${table} are left out, names the table, and has changed nothing`, async () => {
      const { s1, schema } = await newTopics(server);
      await using _s1 = s1;
      const mine = put(1, "one", { client: "carol", session, msgId: "m" });
      await leaveOut(`${schema}.${table}`, "INSERT OR UPDATE");
      const [refused, other] = await s1.execute(mine, get);
      expect([refused?.code, other?.code]).toEqual(["OVERLOADED", "OVERLOADED"]);
      expect(refused?.reason).toMatch(
        new RegExp(`only 0 of [12] rows of the table ${table} were changed.*: a trigger or a rule`),
      );
      await allow(`${schema}.${table}`);
      await s1.open("news", 1);
      expect(codes(await s1.execute(mine))).toEqual(["OK"]);
      expect(texts(await s1.execute(get))).toEqual(["one"]);
    });
  }

  test("a put is not OK while the row of its topic is left as it is", async () => {
    const { s1, schema } = await newTopics(server);
    await using _s1 = s1;
    await leaveOut(`${schema}.topic`, "UPDATE");
    expect(codes(await s1.execute(put(1, "one")))).toEqual(["NOT_OWNER"]);
    expect(await failureOf(s1.open("news", 1))).toMatchObject({
      code: "CONFIG",
      message: expect.stringMatching(/The row of topic "news" is not changed: a trigger or a rule/),
    });
    await allow(`${schema}.topic`);
    await s1.open("news", 1);
    expect(texts(await s1.execute(put(1, "one"), get))).toEqual(["one"]);
  });

  test("messages that cannot be deleted are not acknowledged, and delivered again", async () => {
    const { s1, schema } = await newTopics(server);
    await using _s1 = s1;
    await s1.execute(put(1, "one"));
    const [first] = await s1.execute(get);
    await leaveOut(`${schema}.topic_message`, "DELETE");
    const acknowledges = { ...get, last: first?.messages?.[0]?.id ?? -1 };
    const [refused] = await s1.execute(acknowledges, put(2, "two"));
    expect(refused?.code).toBe("OVERLOADED");
    expect(refused?.reason).toMatch(/only 0 of 1 rows of the table topic_message were changed/);
    await allow(`${schema}.topic_message`);
    await s1.open("news", 1);
    expect(texts(await s1.execute(put(2, "two"), get))).toEqual(["one", "two"]);
  });

  test("a rule that replaces a change is an error of its put", async () => {
    const { s1, schema } = await newTopics(server);
    await using _s1 = s1;
    await server.sql(`CREATE RULE no AS ON INSERT TO ${schema}.topic_message DO INSTEAD NOTHING`);
    expect(codes(await s1.execute(put(1, "one")))).toEqual(["OVERLOADED"]);
  });

  test("messages are not stored in a queue whose rows are left out, whatever the table", async () => {
    const { store, schema } = await queue();
    await using _store = store;
    for (const table of ["queue", "retry", "retry_body", "retry_batch"]) {
      await leaveOut(`${schema}.${table}`, "INSERT OR UPDATE");
      const error = await failureOf(store.call("accept", [rigMessage("x")], Date.now()));
      expect(error).toMatchObject({
        code: "CONFIG",
        message: expect.stringContaining(
          `only 0 of 1 rows of the table ${table} were changed (queue_accept): a trigger or a rule`,
        ),
      });
      await allow(`${schema}.${table}`);
    }
    await leaveOut(`${schema}.retry_ingest`, "UPDATE");
    const ingested = await failureOf(store.call("ingest", "t", [{ id: 1, body: Buffer.from("x") }], Date.now()));
    expect(ingested.message).toContain("only 0 of 1 rows of the table retry_ingest were changed");
    expect(await store.call("list", { states: [...states] }, { afterSeq: 0, max: 9 })).toEqual([]);
    await allow(`${schema}.retry_ingest`);
    await store.call("accept", [rigMessage("x")], Date.now());
    expect((await store.verify()).problems).toEqual([]);
  });

  test("claims, results, pauses, dead letters and removals of a queue fail while their rows are left out", async () => {
    const { store, schema } = await queue();
    await using _store = store;
    await store.call("accept", [rigMessage("x")], Date.now());
    const owner = await store.call("register", "", 0, 1, 0);
    const claim = () => store.call("claim", { owner, max: 9, order: "none", nowMs: Date.now() });
    const refuses = async (table: string, events: string, work: () => Promise<unknown>) => {
      await leaveOut(`${schema}.${table}`, events);
      const { message } = await failureOf(work());
      expect(message).toMatch(/only 0 of 1 rows .*: a trigger or a rule/);
      await allow(`${schema}.${table}`);
    };
    await refuses("retry", "UPDATE", claim);
    const { messages: [{ seq, fence } = { seq: 0, fence: 0 }] } = await claim();
    const finish = () => store.call("finish", { seq, fence, owner, end: rigSuccess, error: null, nowMs: Date.now() });
    await refuses("retry", "UPDATE", finish);
    await refuses("retry_body", "DELETE", finish);
    expect(await finish()).toMatchObject({ state: "done" });
    await refuses("queue", "UPDATE", () => store.call("setPaused", true));
    await refuses("queue", "UPDATE", () => store.call("startRedrive"));
    await refuses("processor", "INSERT", () => store.call("register", "", 0, 1, 0));
    const forget = () => store.call("forget", Date.now() + 60_000);
    await refuses("retry", "DELETE", forget);
    await refuses("retry_removed", "INSERT", forget);
    const tried = { outcome: "final", retryAfterMs: null, error: "" } as const;
    await store.call("accept", [rigMessage("x", { tried })], Date.now());
    await server.sql(`UPDATE ${schema}.retry SET forwarding = 0 WHERE state = 3`);
    await refuses("retry", "UPDATE", () => store.call("pendingDeadLetters", 9, 0));
    const [letter] = await store.call("pendingDeadLetters", 9, 0);
    await refuses("retry", "UPDATE", () => store.call("markForwarding", letter?.seq ?? 0, 0, 1));
    await refuses("retry", "UPDATE", () => store.call("markForwarded", letter?.seq ?? 0, 0, 0));
    await refuses("retry_body", "DELETE", () => store.call("markForwarded", letter?.seq ?? 0, 0, 0));
    expect(await store.call("pendingDeadLetters", 9, 0)).toHaveLength(1);
    await store.call("markForwarded", letter?.seq ?? 0, 0, 0);
    expect((await store.verify()).problems).toEqual([]);
  });

  test("a policy that hides rows is an error that names it, for topics and for queues", async () => {
    await server.sql("CREATE ROLE plain LOGIN");
    const { s1, schema } = await newTopics(server);
    await s1[Symbol.asyncDispose]();
    const grant = (of: string) =>
      server.sql(
        `GRANT USAGE ON SCHEMA ${of} TO plain; ` +
          `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${of} TO plain;` +
          `CREATE POLICY mine ON ${of}.${of === schema ? "topic_message" : "retry"} USING (false) WITH CHECK (true)`,
      );
    await grant(schema);
    const url = server.url.replace("baton@", "plain@");
    await using plain = new PostgresTopicStore(databaseAddress(url, schema), "s1");
    await plain.open("news", 1);
    expect(codes(await plain.execute(put(1, "one")))).toEqual(["OK"]);
    await server.sql(`ALTER TABLE ${schema}.topic_message ENABLE ROW LEVEL SECURITY`);
    const [refused] = await plain.execute(put(2, "two"));
    expect(refused).toMatchObject({
      code: "OVERLOADED",
      reason: expect.stringContaining("a policy hides rows of the table; disable it"),
    });
    const { store, schema: of } = await queue();
    await store.close();
    await grant(of);
    await server.sql(`ALTER TABLE ${of}.retry ENABLE ROW LEVEL SECURITY`);
    const opening = { address: databaseAddress(url, of), name: "q", rules: rigRules, mustExist: true };
    await using limited = await PostgresRetryStore.open(opening);
    expect(await failureOf(limited.call("accept", [rigMessage("x")], Date.now()))).toMatchObject({
      code: "REFUSED",
      message: expect.stringContaining("a policy hides rows of the table"),
    });
  });

  test("a table that is missing is named with its schema, when a store is opened and later", async () => {
    const { s1, schema } = await newTopics(server);
    await using _s1 = s1;
    await server.sql(`ALTER TABLE ${schema}.topic_message RENAME TO other`);
    const [refused] = await s1.execute(put(1, "one"));
    expect(refused?.reason).toMatch(
      new RegExp(
        `"${schema}.topic_message" does not exist \\(42P01, topic_batch_\\w+\\): the schema "${schema}" does not have it`,
      ),
    );
    expect(refused?.reason).not.toContain("respond");
    const queueOnly = databaseAddress(server.url, "queue_only");
    await migrateDatabase(queueOnly, { ...connecting, tables: postgresQueueTables });
    await migrateDatabase(queueOnly, { ...connecting, tables: postgresTopicTables });
    await server.sql("DROP TABLE queue_only.retry_body, queue_only.topic_mark");
    const opening = { address: queueOnly, name: "q", rules: rigRules, mustExist: false };
    expect(await failureOf(PostgresRetryStore.open(opening))).toMatchObject({
      code: "CONFIG",
      message: expect.stringMatching(/has no table retry_body in the schema "queue_only": start once with --migrate/),
    });
  });

  test("errors of the database say what an operator can do", async () => {
    const { s1, schema } = await newTopics(server);
    await using _s1 = s1;
    const cases = [
      ["ALTER TABLE S.topic_message RENAME COLUMN sum TO total", "42703", /the schema "\w+" does not have it/],
      [
        "CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE SQLSTATE '53100'; END$$;" +
        "CREATE TRIGGER fails BEFORE INSERT ON S.topic_message EXECUTE FUNCTION fail()",
        "53100",
        /the disk of the database is full/,
      ],
    ] as const;
    for (const [sql, sqlState, sentence] of cases) {
      await server.sql(sql.replaceAll("S.", `${schema}.`));
      const [refused] = await s1.execute(put(1, "one"));
      expect(refused?.reason).toContain(sqlState);
      expect(refused?.reason).toMatch(sentence);
      if (sqlState === "42703") await server.sql(`ALTER TABLE ${schema}.topic_message RENAME COLUMN total TO sum`);
      await s1.open("news", 1);
    }
    expect(subscribe.kind).toBe("subscribe");
  });
});
