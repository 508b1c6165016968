import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { randomUUID } from "node:crypto";
import { parseDatabaseUrl } from "../../../src/base/postgres/database_address.ts";
import { DatabaseLane } from "../../../src/base/postgres/database_lane.ts";
import { insertSchemaName, migrateDatabase } from "../../../src/base/postgres/database_schema.ts";
import type { SqlParameter } from "../../../src/base/postgres/primary_connection.ts";
import { postgresQueueTables } from "../../../src/retry/queue/postgres/postgres_queue_tables.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";

const lanes = 4;

describeWithPeer("postgres", "the functions of queues in PostgreSQL", () => {
  let server: PostgresServer;
  let all: DatabaseLane[];
  let queue: number;
  beforeAll(async () => {
    server = await PostgresServer.start();
    const address = parseDatabaseUrl(server.url, { mayHavePassword: false, env: {} });
    const options = { clock: systemClock(), name: "test" };
    await migrateDatabase(address, { ...options, tables: postgresQueueTables });
    all = Array.from({ length: lanes }, () => new DatabaseLane({ address, ...options }));
  }, 60_000);
  afterAll(async () => {
    await Promise.all(all?.map((lane) => lane.close()) ?? []);
    await server?.[Symbol.asyncDispose]();
  });
  const run = (at: number, text: string, ...values: SqlParameter[]) =>
    (all[at % lanes] as DatabaseLane).run({ name: text.slice(0, 60), text: insertSchemaName(text, "baton") }, values);
  beforeEach(async () => {
    const [row] = await run(0, "INSERT INTO SCHEMA.queue (name, key) VALUES ($1, 'k') RETURNING id", randomUUID());
    queue = Number(row?.["id"]);
  });

  const acceptText = "SELECT SCHEMA.queue_accept($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS seq";
  const accept = async (keys: readonly (string | null)[], { at = 0, token = randomUUID() } = {}) => {
    const each = <T>(value: T): T[] => keys.map(() => value);
    const bytes = keys.map((key) => key === null ? null : Buffer.from(key));
    const [row] = await run(
      at,
      acceptText,
      queue,
      token,
      bytes,
      each(0),
      each(0),
      each(0),
      each(null),
      each(null),
      each(0),
      each(0),
      each(0),
      each(4),
      Buffer.concat(keys.map(() => Buffer.from("body"))),
    );
    return Number(row?.["seq"]);
  };
  const register = async (leaseMs = 60_000) => {
    const text = "INSERT INTO SCHEMA.processor (queue, name, lease_end) VALUES ($1, 'p', " +
      "(extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2) RETURNING id";
    return Number((await run(0, text, queue, leaseMs))[0]?.["id"]);
  };
  const claim = async (processor: number, { at = 0, epoch = 0, order = "none", max = 10 } = {}) => {
    const rows = await run(
      at,
      "SELECT (c.message).* FROM SCHEMA.queue_claim($1, $2, $3, $4, $5, 0, 1000000) c",
      queue,
      processor,
      epoch,
      order,
      max,
    );
    return rows.map((row) =>
      row["seq"] === null ? null : { seq: Number(row["seq"]), rev: Number(row["rev"]), fence: Number(row["fence"]) }
    );
  };
  type Claimed = { seq: number; rev: number };
  const write = async (messages: readonly (Claimed | null)[], state: number, at = 0) => {
    const found = messages.filter((message) => message !== null);
    const each = <T>(value: T): T[] => found.map(() => value);
    const lists = [
      found.map(({ seq }) => seq),
      found.map(({ rev }) => rev),
      each(state),
      each(1),
      each(0),
      each(0),
      each(null),
      each(null),
      each(true),
      each(0),
      each(null),
    ];
    const text = "SELECT * FROM SCHEMA.queue_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AS seq";
    return (await run(at, text, queue, ...lists)).map(({ seq }) => Number(seq));
  };

  test("a batch that is accepted again with its token is stored once", async () => {
    const token = randomUUID();
    const first = await Promise.all([0, 1, 2, 3].map((at) => accept([null, null], { at, token })));
    expect(new Set(first).size).toBe(1);
    expect(await accept([null])).toBe((first[0] as number) + 2);
  });

  test("each message is claimed by one of several processors", async () => {
    await accept(Array.from({ length: 200 }, () => null));
    const owners = await Promise.all([0, 1, 2, 3].map(() => register()));
    const claimed = (await Promise.all(owners.map((owner, at) => claim(owner, { at, max: 80 })))).flat();
    expect(new Set(claimed.map((message) => message?.seq)).size).toBe(claimed.length);
    expect(claimed.length).toBe(200);
  });

  test("a processor whose lease ended, or whose claims were fenced, claims nothing", async () => {
    await accept([null]);
    expect(await claim(await register(-1))).toEqual([null]);
    const owner = await register();
    await run(0, "UPDATE SCHEMA.processor SET epoch = epoch + 1 WHERE id = $1", owner);
    expect(await claim(owner)).toEqual([null]);
    expect(await claim(owner, { epoch: 1 })).toHaveLength(1);
  });

  test("a result is recorded for the claim that it belongs to, once", async () => {
    await accept([null]);
    const [message] = await claim(await register());
    const old = { seq: message?.seq ?? 0, rev: (message?.rev ?? 0) - 1 };
    expect(await write([old], 2)).toEqual([]);
    const both = await Promise.all([0, 1].map((at) => write([message ?? null], 2, at)));
    expect(both.flat()).toEqual([message?.seq ?? 0]);
    expect(await server.sql(`SELECT count(*) FROM baton.retry_body WHERE queue = ${queue}`)).toBe("0");
  });

  test(
    "messages of a key are tried in their order, one at a time, by any processor, while others are accepted",
    async () => {
      const keys = ["a", "b", "c"];
      const owners = await Promise.all([0, 1, 2, 3].map(() => register()));
      const rounds = 40;
      let isAccepted = false;
      const accepting = (async () => {
        for (let round = 0; round < rounds; round++) await accept(keys, { at: round });
        isAccepted = true;
      })();
      const inFlight = new Map<number, number>();
      const order = new Map<number, number[]>();
      let done = 0;
      const working = owners.map(async (owner, at) => {
        // A key without a turn never moves again: claims that stay empty end the test.
        for (let empty = 0; done < rounds * keys.length && empty < 100;) {
          const messages = await claim(owner, { at, order: "key", max: 2 });
          empty = messages.length === 0 && isAccepted ? empty + 1 : 0;
          for (const message of messages) {
            const key = ((message?.seq ?? 0) - 1) % keys.length;
            inFlight.set(key, (inFlight.get(key) ?? 0) + 1);
            expect(inFlight.get(key)).toBe(1);
            order.set(key, [...order.get(key) ?? [], message?.seq ?? 0]);
          }
          for (const message of messages) inFlight.set(((message?.seq ?? 0) - 1) % keys.length, 0);
          const recorded = messages.length > 0 ? await write(messages, 2, at) : [];
          done += recorded.length;
        }
      });
      await Promise.all([accepting, ...working]);
      for (const seqs of order.values()) expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
      expect(done).toBe(rounds * keys.length);
    },
    60_000,
  );

  test("a redriven message waits for a newer one of its key in flight, and precedes one that waits", async () => {
    await accept(["a", "a", "a"]);
    const owner = await register();
    const [first] = await claim(owner, { order: "key" });
    await write([first ?? null], 3);
    const [second] = await claim(owner, { order: "key" });
    const dead = { seq: first?.seq ?? 0, rev: (first?.rev ?? 0) + 1 };
    expect(await write([dead], 0)).toEqual([dead.seq]);
    expect(await claim(owner, { order: "key" })).toEqual([]);
    await write([second ?? null], 2);
    expect((await claim(owner, { order: "key" })).map((message) => message?.seq)).toEqual([dead.seq]);
  });
});
