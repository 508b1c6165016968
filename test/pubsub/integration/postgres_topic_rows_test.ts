/**
 * Statements of topics in a real PostgreSQL that are late, cut off, refused or stale: what is answered, and what is
 * stored.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { findDatabaseProblems } from "../../../commands/operator/database_findings.ts";
import { pubsubDoctor } from "../../../commands/pubsub/pubsub_doctor.ts";
import { connectToPrimary, type PrimaryConnection } from "../../../src/base/postgres/primary_connection.ts";
import { migrateDatabase } from "../../../src/base/postgres/database_schema.ts";
import { postgresTopicTables } from "../../../src/pubsub/store/postgres/postgres_tables.ts";
import { windowRowsPerDelete } from "../../../src/pubsub/store/limits/topic_store_limits.ts";
import { runSteps } from "../../../src/base/support/steps.ts";
import { eventually } from "../../support/eventually.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";
import { databaseAddress, PostgresTopicStore } from "../../support/postgres_topic_store.ts";
import { codes, connecting, get, newTopics, put, subscribe, texts } from "../../support/postgres_topics.ts";
import { StatementCutter } from "../../support/statement_cutter.ts";

describeWithPeer("postgres", "topics of a database that servers share", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start({ settings: ["fsync = off", "deadlock_timeout = 500ms"] });
  }, 60_000);
  afterAll(async () => await server?.[Symbol.asyncDispose]());

  const topics = (url = server.url) => newTopics(server, url);

  /** A transaction that has locked the row of a topic. */
  async function lock(schema: string, topic: string): Promise<{
    run: (text: string) => Promise<unknown>;
    end: () => Promise<void>;
  }> {
    const connection: PrimaryConnection = await connectToPrimary(databaseAddress(server.url, schema), connecting);
    let step = 0;
    const run = (text: string) => connection.run({ name: `lock_${step++}`, text }, []);
    await run("BEGIN");
    await run(`SELECT 1 FROM ${schema}.topic WHERE name = '${topic}' FOR UPDATE`);
    return {
      run,
      end: async () => {
        await run("COMMIT");
        connection.close();
      },
    };
  }

  /** Returns a function that takes the topics back to what they are now, as a fail-over does. */
  async function savepoint(schema: string): Promise<() => Promise<unknown>> {
    const kept = ["topic", "topic_message", "topic_client", "topic_window", "topic_resolved"];
    await server.sql(kept.map((table) => `CREATE TABLE ${schema}.${table}_copy AS TABLE ${schema}.${table}`).join(";"));
    const restored = kept.map((table) =>
      `DELETE FROM ${schema}.${table}; INSERT INTO ${schema}.${table} OVERRIDING SYSTEM VALUE TABLE ${schema}.${table}_copy`
    );
    return () => server.sql(restored.join(";"));
  }

  const waitsForLock = (name: string) => async () =>
    await server.sql(
      `SELECT pid FROM pg_stat_activity WHERE application_name = 'baton ${name}' AND wait_event_type = 'Lock'`,
    ) || null;
  const stored = (schema: string, topic = "news") =>
    server.sql(
      `SELECT count(*) FROM ${schema}.topic_message m JOIN ${schema}.topic t ON t.id = m.topic WHERE t.name = '${topic}'`,
    );

  for (const cut of ["before", "sent", "after"] as const) {
    test(`a put whose connection is cut ${cut} its commit is unknown, and stored once when repeated`, async () => {
      await using cutter = await StatementCutter.start({ host: "127.0.0.1", port: server.port });
      const url = `postgres://baton@127.0.0.1:${cutter.port}/postgres`;
      const { s1, schema } = await topics(url);
      await using _s1 = s1;
      expect(codes(await s1.execute(put(1, "one"), put(1, "one", { topic: "other" })))).toEqual(["OK", "OK"]);
      cutter.arm(cut, "topic_batch");
      const [unknown] = await s1.execute(put(2, "two"));
      expect(unknown).toMatchObject({ code: "ERROR", unknown: true });
      expect(cutter.cuts).toBe(1);
      expect(s1.lost).toEqual(["news unknown"]);
      // Nothing is written before the topic is opened again; the other topic is served meanwhile.
      expect(codes(await s1.execute(put(2, "two"), put(2, "two", { topic: "other" })))).toEqual(["OVERLOADED", "OK"]);
      await s1.open("news", 1);
      expect(await s1.execute(put(2, "two"))).toMatchObject([{ code: "OK", ids: [{ first: 2, last: 2 }] }]);
      expect(texts(await s1.execute(get))).toEqual(["one", "two"]);
      expect(await stored(schema)).toBe("2");
    });
  }

  test("a statement of an earlier owner that waited behind the take-over writes nothing", async () => {
    const { s1, schema } = await topics();
    await using _s1 = s1;
    await using s2 = new PostgresTopicStore(databaseAddress(server.url, schema), "s2");
    const locked = await lock(schema, "news");
    const late = s1.execute(put(1, "late"), put(1, "other", { topic: "other" }));
    await eventually(waitsForLock("s1"));
    await locked.run(`UPDATE ${schema}.topic SET epoch = 2, owner = 's2', revision = revision + 1 WHERE name = 'news'`);
    await locked.end();
    expect(codes(await late)).toEqual(["NOT_OWNER", "OK"]);
    expect(s1.lost).toEqual(["news not_owner"]);
    await s2.open("news", 2);
    expect(codes(await s2.execute(put(1, "again", { epoch: 2 })))).toEqual(["OK"]);
    expect([await stored(schema), await stored(schema, "other")]).toEqual(["1", "1"]);
  });

  test("its own statement that is still on its way is done before the topic is opened again, or never", async () => {
    await using cutter = await StatementCutter.start({ host: "127.0.0.1", port: server.port });
    const { s1, schema } = await topics(`postgres://baton@127.0.0.1:${cutter.port}/postgres`);
    await using _s1 = s1;
    const locked = await lock(schema, "news");
    const late = s1.execute(put(1, "late"));
    await eventually(waitsForLock("s1"));
    cutter.cutAll();
    expect(await late).toMatchObject([{ code: "ERROR", unknown: true }]);
    const opened = s1.open("news", 1);
    await eventually(async () =>
      await server.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") === "2"
    );
    await locked.end();
    await opened;
    expect(await s1.execute(put(1, "late"))).toMatchObject([{ code: "OK", ids: [{ first: 1, last: 1 }] }]);
    expect(await stored(schema)).toBe("1");
  });

  test("an owner that another server has replaced answers nothing from memory", async () => {
    const { s1, schema } = await topics();
    await using _s1 = s1;
    await using s2 = new PostgresTopicStore(databaseAddress(server.url, schema), "s2");
    await s1.execute(put(1, "one"));
    await s2.open("news", 2);
    expect(codes(await s2.execute({ ...get, epoch: 2 }))).toEqual(["OK"]);
    expect(codes(await s1.execute(get, { kind: "info", client: "alice" }))).toEqual(["NOT_OWNER", "NOT_OWNER"]);
    await expect(s1.open("news", 1)).rejects.toMatchObject({ code: "STALE_TOKEN" });
    await expect(s1.open("news", 2)).rejects.toMatchObject({ code: "STALE_TOKEN" });
    // The other topic is still its own.
    expect(codes(await s1.execute({ ...get, topic: "other" }))).toEqual(["NO_MESSAGE"]);
  });

  test("a get that is held is refused when its topic is lost", async () => {
    const { s1, schema } = await topics();
    await using _s1 = s1;
    await using s2 = new PostgresTopicStore(databaseAddress(server.url, schema), "s2");
    expect(await s1.execute({ ...get, wait: true, ticket: 77 })).toEqual([]);
    await s2.open("news", 2);
    const held = s1.execute(put(1, "one"), { ...get, wait: true, ticket: 78 });
    expect(codes(await held)).toEqual(["NOT_OWNER", "NOT_OWNER"]);
    expect(s1.engine.waitingCount).toBe(0);
  });

  test("a server process that is ended leaves the outcome unknown", async () => {
    const { s1, schema } = await topics();
    await using _s1 = s1;
    const locked = await lock(schema, "news");
    const late = s1.execute(put(1, "one"), get);
    const pid = await eventually(waitsForLock("s1"));
    await server.sql(`SELECT pg_terminate_backend(${pid})`);
    expect(codes(await late)).toEqual(["ERROR", "OVERLOADED"]);
    await locked.end();
    await s1.open("news", 1);
    expect(codes(await s1.execute(put(1, "one")))).toEqual(["OK"]);
    expect(await stored(schema)).toBe("1");
  });

  test("a commit that did not wait for its standby is unknown", async () => {
    await using primary = await PostgresServer.start({ settings: ["fsync = off"] });
    await migrateDatabase(databaseAddress(primary.url, "news"), { ...connecting, tables: postgresTopicTables });
    await using s1 = new PostgresTopicStore(databaseAddress(primary.url, "news"), "s1");
    await s1.create("news");
    await s1.execute(subscribe);
    primary.configure("synchronous_standby_names = 'absent'");
    await primary.reload();
    await eventually(async () => await primary.sql("SHOW synchronous_standby_names") === "absent");
    const late = s1.execute(put(1, "one"));
    const pid = await eventually(async () =>
      await primary.sql(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'baton s1' AND wait_event = 'SyncRep'",
      ) || null
    );
    await primary.sql(`SELECT pg_cancel_backend(${pid})`);
    expect(await late).toMatchObject([{ code: "ERROR", unknown: true }]);
    primary.configure("synchronous_standby_names = ''");
    await primary.reload();
    await s1.open("news", 1);
    expect(await s1.execute(put(1, "one"))).toMatchObject([{ code: "OK", ids: [{ first: 1, last: 1 }] }]);
  }, 60_000);

  for (const isSynchronous of [true, false]) {
    const what = isSynchronous ? "that had all commits loses nothing" : "that may lack commits is written down";
    test(`a fail-over to a standby ${what}`, async () => {
      const primary = await PostgresServer.start();
      await using _primary = primary;
      await migrateDatabase(databaseAddress(primary.url, "news"), { ...connecting, tables: postgresTopicTables });
      await using standby = await primary.standby({ isSynchronous });
      const hosts = `127.0.0.1:${primary.port},127.0.0.1:${standby.port}`;
      await using s1 = new PostgresTopicStore(databaseAddress(`postgres://baton@${hosts}/postgres`, "news"), "s1");
      await s1.create("news");
      await s1.execute(subscribe, { ...subscribe, client: "carol" });
      expect(codes(await s1.execute(put(1, "one"), put(2, "two")))).toEqual(["OK", "OK"]);
      await s1.execute({ ...get, client: "carol", last: 2 });
      await s1.create("empty");
      if (!isSynchronous) {
        // What is committed from now on is lost.
        await eventually(async () => await standby.sql("SELECT max(position) FROM news.topic_client") === "2");
        await standby.stop();
        expect(codes(await s1.execute(put(3, "lost")))).toEqual(["OK"]);
      }
      await primary.kill();
      if (!isSynchronous) await standby.resume();
      await standby.promote();
      if (isSynchronous) await s1.open("news", 1);
      else {
        expect(codes(await s1.execute(put(3, "three")))).not.toEqual(["OK"]);
        await s1.open("news", 1);
      }
      const first = isSynchronous ? 3 : 2 ** 32 + 4;
      expect(await s1.execute(put(3, "three"))).toMatchObject([{ code: "OK", ids: [{ first, last: first }] }]);
      expect(texts(await s1.execute(get))).toEqual(["one", "two"].concat(isSynchronous ? ["three"] : []));
      expect(await s1.execute({ kind: "info", client: "carol" })).toMatchObject([{ pending: 1 }]);
      expect(s1.losses.length).toBe(isSynchronous ? 0 : 1);
      expect(await standby.sql("SELECT last FROM news.topic_loss")).toBe(isSynchronous ? "" : "2");
      // It is noted once.
      await s1.open("news", 2);
      expect(s1.losses.length).toBe(isSynchronous ? 0 : 1);
      // The insertion of a topic is a commit as well.
      await s1.open("empty", 2);
      expect(s1.losses.length).toBe(isSynchronous ? 0 : 2);
    }, 60_000);
  }

  test("an owner whose commits are gone says so, whatever the row says about its last commit", async () => {
    await using primary = await PostgresServer.start();
    const address = (port: number) => databaseAddress(`postgres://baton@127.0.0.1:${port}/postgres`, "news");
    await migrateDatabase(address(primary.port), { ...connecting, tables: postgresTopicTables });
    await using standby = await primary.standby({ isSynchronous: true });
    const hosts = `127.0.0.1:${primary.port},127.0.0.1:${standby.port}`;
    const both = databaseAddress(`postgres://baton@${hosts}/postgres`, "news");
    await using s1 = new PostgresTopicStore(both, "s1");
    await using careful = new PostgresTopicStore(both, "s1", { stopsOnLoss: true });
    await s1.create("news");
    await s1.execute(subscribe);
    expect(codes(await s1.execute(put(1, "one")))).toEqual(["OK"]);
    // The standby leaves, and the primary goes on alone: the rows of the standby look as if nothing could be lost.
    await standby.stop();
    primary.configure("synchronous_standby_names = ''");
    await primary.reload();
    await eventually(async () => await primary.sql("SHOW synchronous_standby_names") === "");
    await careful.open("news", 2);
    expect(codes(await careful.execute(put(2, "lost", { epoch: 2 })))).toEqual(["OK"]);
    await primary.kill();
    await standby.resume();
    await standby.promote();
    await careful.execute(put(3, "three", { epoch: 2 }));
    await expect(careful.open("news", 2)).rejects.toThrow(/has lost commits.*not served \(--on-loss stop\)/);
    await expect(careful.open("news", 2)).rejects.toThrow(/not served \(--on-loss stop\)/);
    const database = { where: "here", address: both, requiresSync: false };
    const doctor = async () =>
      (await findDatabaseProblems(
        database,
        async (connection) => await pubsubDoctor.inspectDatabase?.(connection, database) ?? [],
      )).filter(({ what }) => what.includes("topic")).map(({ what, action }) => `${what}: ${action}`);
    expect(await doctor()).toEqual([
      "topics that may have lost messages in a fail-over of the database, and " +
      'were not opened since: "news"; with --on-loss stop ' +
      "they are not served: baton pubsub server restore --store URL --accept-loss",
    ]);
    // A server that knows nothing of these commits finds what the owner has left in the row.
    await s1.open("news", 3);
    expect(s1.losses).toEqual([expect.stringMatching(/messages of topic "news" after message 1 .* may be lost/)]);
    expect(await doctor()).toEqual([expect.stringMatching(/^topic "news" may have lost messages after message 1,/)]);
    const [done] = await s1.execute(put(2, "two", { epoch: 3 }));
    expect(done).toMatchObject({ code: "OK", ids: [{ first: 2 ** 33 + 3 }], loss: "possible" });
    // A publisher is told once, and again if it repeats that put.
    expect((await s1.execute(put(3, "three", { epoch: 3 })))[0]?.loss).toBeUndefined();
    expect((await s1.execute(put(2, "two", { epoch: 3 })))[0]?.loss).toBe("possible");
  }, 60_000);

  test("a subscriber that has not been told of a loss is told by the next owner, until it acknowledges", async () => {
    const { s1, schema } = await topics();
    await using _s1 = s1;
    await s1.execute({ ...subscribe, client: "carol" }, put(1, "one"), put(2, "two"));
    await s1.execute({ ...get, client: "carol", last: 2 }); // carol has both, alice none
    const undo = await savepoint(schema);
    expect(codes(await s1.execute(put(3, "lost"), put(4, "lost, too"), { ...get, client: "carol", last: 3 })))
      .toEqual(["OK", "OK", "OK"]);
    await undo();
    await s1.execute(put(5, "five"));
    await s1.open("news", 1);
    expect(s1.losses).toEqual([expect.stringMatching(/messages of topic "news" after message 2 .* are lost/)]);
    await s1[Symbol.asyncDispose](); // it has told no client

    await using s2 = new PostgresTopicStore(databaseAddress(server.url, schema), "s2");
    await s2.open("news", 2);
    const at = { epoch: 2 };
    await s2.execute({ ...subscribe, ...at, client: "dave" });
    const [stored] = await s2.execute(put(5, "five", at));
    expect(stored).toMatchObject({ code: "OK", loss: "certain" });
    const five = stored?.ids?.[0]?.first ?? 0;
    const told = async (store: PostgresTopicStore, client: string, last: number, epoch = 2) => {
      const [response] = await store.execute({ ...get, client, last, epoch });
      return [texts(response === undefined ? [] : [response]).join(" "), response?.loss, response?.missed];
    };
    expect(await told(s2, "alice", -1)).toEqual(["one two", undefined, 0]); // these come before the lost ones
    expect(await told(s2, "alice", 2)).toEqual(["five", "certain", 2]);
    expect(await told(s2, "carol", 3)).toEqual(["five", "certain", 1]); // it says that it has got message 3
    expect(await told(s2, "dave", -1)).toEqual(["five", undefined, 0]); // it has come since

    await using s3 = new PostgresTopicStore(databaseAddress(server.url, schema), "s3");
    await s3.open("news", 3);
    expect(s3.losses).toEqual([]); // it is noted once
    expect(await told(s3, "alice", 2, 3)).toEqual(["five", "certain", 2]);
    await s3.execute(put(6, "six", { epoch: 3 }));
    expect(await told(s3, "alice", five, 3)).toEqual(["six", undefined, 0]);
    expect(await told(s3, "carol", 3, 3)).toEqual(["five six", "certain", 1]);
  });

  test("a fail-over that undoes an earlier one, and what was noted then, uses no id twice", async () => {
    const { s1, schema } = await topics();
    await using _s1 = s1;
    const undo = await savepoint(schema);
    const ids: number[] = [];
    // The row looks as if the timeline had grown by one, and then by two.
    for (const [at, timeline] of [0, -1].entries()) {
      await undo();
      await server.sql(`UPDATE ${schema}.topic SET timeline = ${timeline}, synchronous = false WHERE name = 'news'`);
      await using owner = new PostgresTopicStore(databaseAddress(server.url, schema), `s${at + 2}`);
      await owner.open("news", at + 2);
      const responses = await owner.execute(put(1, "one", { epoch: at + 2 }), put(2, "two", { epoch: at + 2 }));
      ids.push(...responses.flatMap(({ ids: ranges = [] }) => ranges.map(({ first }) => first)));
    }
    expect(ids).toEqual([2 ** 32 + 2, 2 ** 32 + 3, 2 ** 33 + 2, 2 ** 33 + 3]);
  });

  test("losses of a topic are kept up to a number and an age, and go with the topic", async () => {
    const { s1, schema } = await topics();
    await using _s1 = s1;
    await server.sql(
      `INSERT INTO ${schema}.topic_loss SELECT t.id, -n, clock_timestamp() - n * interval '1 day', true, n, n + 1, n * 4294967296, 9
        FROM ${schema}.topic t, generate_series(1, 40) n WHERE t.name = 'news'`,
    );
    await s1.rows.copies.findGarbage();
    expect(await server.sql(`SELECT count(*), max(last) FROM ${schema}.topic_loss`)).toBe("29|29");
    await server.sql(`UPDATE ${schema}.topic SET timeline = 0, synchronous = false WHERE name = 'news'`);
    await s1.open("news", 2);
    expect(s1.losses.length).toBe(1);
    expect(await server.sql(`SELECT count(*), max(last) FROM ${schema}.topic_loss`)).toBe("16|15");
    await runSteps(s1.transfer.drop("news", 3));
    await eventually(async () => {
      await s1.rows.copies.collectGarbage();
      return await server.sql(`SELECT count(*) FROM ${schema}.topic_loss`) === "0";
    });
  });

  for (const cut of ["before", "after"] as const) {
    test(`a loss is named if the statement that names it is cut off ${cut} it is executed`, async () => {
      await using cutter = await StatementCutter.start({ host: "127.0.0.1", port: server.port });
      const { s1, schema } = await topics(`postgres://baton@127.0.0.1:${cutter.port}/postgres`);
      await using _s1 = s1;
      await s1.execute(put(1, "one"));
      const undo = await savepoint(schema);
      expect(codes(await s1.execute(put(2, "lost")))).toEqual(["OK"]);
      await undo();
      await s1.execute(put(3, "three"));
      cutter.arm(cut, "topic_note_loss");
      await expect(s1.open("news", 1)).rejects.toThrow(/lost/);
      expect(cutter.cuts).toBe(1);
      await s1.open("news", 1);
      expect(await server.sql(`SELECT last, certain FROM ${schema}.topic_loss`)).toBe("1|t");
      expect(s1.losses).toEqual([expect.stringMatching(/messages of topic "news" after message \d+ .* are lost/)]);
      expect(texts(await s1.execute(get))).toEqual(["one"]);
      const [done] = await s1.execute(put(2, "two"));
      expect(done?.ids?.[0]?.first).toBeGreaterThan(2 ** 32);
      expect((await s1.execute({ ...get, last: 1 }))[0]).toMatchObject({ loss: "certain", missed: 1 });
    }, 60_000);
  }

  test("a statement that is ended to resolve a deadlock is sent again", async () => {
    const { s1, schema } = await topics();
    await using _s1 = s1;
    // The batch locks `news`, and waits for `other`.
    const locked = await lock(schema, "other");
    await locked.run("SET LOCAL deadlock_timeout = '60s'");
    const done = s1.execute(put(1, "one"), put(1, "one", { topic: "other" }));
    await eventually(waitsForLock("s1"));
    await locked.run(`SELECT 1 FROM ${schema}.topic WHERE name = 'news' FOR UPDATE`);
    await locked.end();
    expect(codes(await done)).toEqual(["OK", "OK"]);
    expect(s1.lost).toEqual([]);
    expect([await stored(schema), await stored(schema, "other")]).toEqual(["1", "1"]);
  });

  test("a row that is there already is no repetition: the put is not OK, and nothing is stored", async () => {
    const { s1, schema } = await topics();
    await using _s1 = s1;
    await server.sql(
      `INSERT INTO ${schema}.topic_message SELECT id, 1, 1, 0, 0, 0, 'x' FROM ${schema}.topic WHERE name = 'news'`,
    );
    expect(codes(await s1.execute(put(1, "one")))).toEqual(["OVERLOADED"]);
    expect(s1.lost).toEqual(["news not_done"]);
    expect(await stored(schema)).toBe("1");
  });

  test("a row that was written a short time ago is read from memory, also from its middle", async () => {
    const { s1 } = await topics();
    await using _s1 = s1;
    const bodies = (...texts: string[]) => ({ bodies: texts.map((text) => new TextEncoder().encode(text)) });
    await s1.execute({ ...put(1, ""), ...bodies("a", "b", "c") });
    for (const counter of [4, 5, 6]) await s1.execute(put(counter, `row ${counter}`));
    const first = await s1.execute({ ...get, max: 1 });
    expect(texts(first)).toEqual(["a"]);
    let lacks = 0;
    const load = s1.rows.load.bind(s1.rows);
    s1.rows.load = (wanted) => load(wanted).finally(() => lacks += wanted.length);
    const [{ messages = [] } = {}] = first;
    const read = await s1.execute({ ...get, max: 4, last: messages[0]?.id ?? -1 });
    expect([texts(read), lacks]).toEqual([["b", "c", "row 4", "row 5"], 0]);
  });

  test("a row that was changed is named, and never delivered", async () => {
    const { s1, schema } = await topics();
    await using _s1 = s1;
    await s1.execute(put(1, "one"), put(1, "one", { topic: "other" }));
    await server.sql(
      `UPDATE ${schema}.topic_message SET records = set_byte(records, 20, get_byte(records, 20) # 1)
        WHERE topic = (SELECT id FROM ${schema}.topic WHERE name = 'news')`,
    );
    for (const topic of ["news", "other"]) await s1.open(topic, 2);
    const responses = await s1.execute({ ...get, epoch: 2 }, { ...get, epoch: 2, topic: "other" });
    expect(codes(responses)).toEqual(["DAMAGED", "OK"]);
    expect(responses[0]?.reason).toMatch(/row 1 of the topic_message .* \(message 1\) is damaged/);
    expect(s1.rows.damage.count).toBe(1);
  });

  test("counters that are settled in the batch that stores them are known afterwards, and leave no row", async () => {
    const { s1, schema } = await topics();
    await using _s1 = s1;
    const session = { number: 1, key: "k" };
    for (let counter = 1; counter < windowRowsPerDelete; counter++) {
      await s1.execute(put(counter, `body ${counter}`, { session, firstUnacked: counter }));
    }
    const last = windowRowsPerDelete;
    const settles = put(last + 1, "", { session, firstUnacked: last + 1, bodies: [] });
    expect(codes(await s1.execute(put(last, `body ${last}`, { session, firstUnacked: last }), settles))).toEqual([
      "OK",
      "OK",
    ]);
    expect(await server.sql(`SELECT count(*) FROM ${schema}.topic_resolved`)).toBe("0");
    await s1.open("news", 2);
    const repeated = [last - 1, last].map((counter) => put(counter, `body ${counter}`, { session, epoch: 2 }));
    expect(codes(await s1.execute(...repeated))).toEqual(["STALE_OP", "STALE_OP"]);
    expect(texts(await s1.execute({ ...get, epoch: 2 })).length).toBe(last);
  });

  test("an earlier process of the same server, at the same epoch, writes nothing more", async () => {
    const { s1, schema } = await topics();
    await using _s1 = s1;
    await using restarted = new PostgresTopicStore(databaseAddress(server.url, schema), "s1");
    await restarted.open("news", 1);
    expect(codes(await s1.execute(put(1, "late")))).toEqual(["NOT_OWNER"]);
    expect(codes(await restarted.execute(put(1, "one")))).toEqual(["OK"]);
    expect(await stored(schema)).toBe("1");
  });

  test("a database that does not respond is not waited for: requests are refused, and nothing is lost", async () => {
    await using primary = await PostgresServer.start({ settings: ["fsync = off"] });
    await migrateDatabase(databaseAddress(primary.url, "news"), { ...connecting, tables: postgresTopicTables });
    await using s1 = new PostgresTopicStore(databaseAddress(primary.url, "news"), "s1", { refusedMs: 200 });
    await s1.create("news");
    await s1.execute(subscribe);
    await s1.execute(put(1, "one"));
    await primary.kill();
    // The first statement may be lost with its connection.
    expect(["ERROR", "OVERLOADED"]).toContain(codes(await s1.execute(put(2, "two")))[0] ?? "");
    expect(codes(await s1.execute(put(2, "two"), get))).toEqual(["OVERLOADED", "OVERLOADED"]);
    await expect(s1.open("news", 1)).rejects.toMatchObject({ code: "UNREACHABLE" });
    await primary.resume();
    await s1.open("news", 1);
    expect(codes(await s1.execute(put(2, "two")))).toEqual(["OK"]);
    expect(texts(await s1.execute(get))).toEqual(["one", "two"]);
  }, 60_000);
});
