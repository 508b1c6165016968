import { afterAll, beforeAll, expect, test } from "bun:test";
import { type DatabaseAddress, parseDatabaseUrl } from "../../../src/base/postgres/database_address.ts";
import {
  isReplicationSynchronous,
  readDatabaseSafetyFacts,
  requireSafeDatabase,
} from "../../../src/base/postgres/database_checks.ts";
import {
  acceptMovedDatabase,
  migrateDatabase,
  requireSharedStore,
} from "../../../src/base/postgres/database_schema.ts";
import { connectToPrimary, type PrimaryConnection } from "../../../src/base/postgres/primary_connection.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";

const options = { clock: systemClock(), name: "test" };
const newerFormatPattern = new RegExp(
  "The tables of the database .* were written by a newer version \\(format 2\\); " +
    "this version of baton reads format 1: use the newer version",
);
const tables = ["CREATE TABLE IF NOT EXISTS SCHEMA.thing (id bigint PRIMARY KEY)"];

describeWithPeer("postgres", "the schema of a shared store", () => {
  let server: PostgresServer;
  beforeAll(async () => void (server = await PostgresServer.start()), 60_000);
  afterAll(async () => await server?.[Symbol.asyncDispose]());
  const addressOf = (schema: string, user = "baton"): DatabaseAddress =>
    parseDatabaseUrl(`${server.url.replace("baton@", `${user}@`)}?schema=${schema}`, {
      mayHavePassword: false,
      env: {},
    });
  const connected = async <T>(
    address: DatabaseAddress,
    work: (connection: PrimaryConnection) => Promise<T>,
  ): Promise<T> => {
    const connection = await connectToPrimary(address, options);
    try {
      return await work(connection);
    } finally {
      connection.close();
    }
  };
  const required = (address: DatabaseAddress) =>
    connected(address, (connection) => requireSharedStore(connection, address));

  test("is created by one of several migrations at the same time, and a later one keeps it", async () => {
    const address = addressOf("first");
    await expect(required(address)).rejects.toThrow(
      /has no tables of baton in the schema "first": start once with --migrate/,
    );
    const made = await Promise.all([1, 2, 3].map(() => migrateDatabase(address, { ...options, tables })));
    expect(new Set(made.map(({ storeId }) => storeId)).size).toBe(1);
    expect(await required(address)).toEqual(made[0] as (typeof made)[0]);
    await server.sql("INSERT INTO first.thing VALUES (1)");
    expect(await migrateDatabase(address, { ...options, tables })).toEqual(made[0] as (typeof made)[0]);
    expect(await server.sql("SELECT count(*) FROM first.thing")).toBe("1");
  });

  test("is left alone when a step of the migration fails", async () => {
    const address = addressOf("second");
    const broken = [...tables, "CREATE TABLE SCHEMA.other (id nonsense)"];
    await expect(migrateDatabase(address, { ...options, tables: broken })).rejects.toThrow(
      /type "nonsense" does not exist/,
    );
    expect(await server.sql("SELECT to_regnamespace('second') IS NULL")).toBe("t");
  });

  test("needs no rights to create anything afterwards", async () => {
    const address = addressOf("third");
    const { storeId } = await migrateDatabase(address, { ...options, tables });
    await server.sql("CREATE ROLE worker LOGIN");
    const worker = addressOf("third", "worker");
    await expect(required(worker)).rejects.toMatchObject({ code: "REFUSED", sqlState: "42501" });
    await server.sql(
      "GRANT USAGE ON SCHEMA third TO worker; " +
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA third TO worker",
    );
    expect((await required(worker)).storeId).toBe(storeId);
    await expect(migrateDatabase(addressOf("fourth", "worker"), { ...options, tables })).rejects.toMatchObject({
      code: "REFUSED",
    });
  });

  test("in another cluster than the one in which it was made is refused, until an operator accepts it", async () => {
    const address = addressOf("moved");
    await expect(acceptMovedDatabase(address, options)).rejects.toThrow(/has no tables of baton/);
    await migrateDatabase(address, { ...options, tables });
    const { storeId } = await required(address);
    await server.sql("UPDATE moved.store SET system_id = '7000000000000000001'");
    const refused = {
      code: "CONFIG",
      message: expect.stringMatching(/is in another cluster .* its tables were made \(7000000000000000001\).*--moved/),
    };
    await expect(required(address)).rejects.toMatchObject(refused);
    await migrateDatabase(address, { ...options, tables }); // does not accept it
    await expect(required(address)).rejects.toMatchObject(refused);
    await acceptMovedDatabase(address, options);
    expect((await required(address)).storeId).toBe(storeId);
  });

  test("is not compared if the role may not read the identifier of the cluster, and doctor says so", async () => {
    const address = addressOf("unknown");
    await migrateDatabase(address, { ...options, tables });
    await server.sql(
      "CREATE ROLE blind LOGIN; GRANT USAGE ON SCHEMA unknown TO blind; GRANT SELECT ON unknown.store TO blind; " +
        "UPDATE unknown.store SET system_id = '7'",
    );
    const blind = addressOf("unknown", "blind");
    await expect(required(blind)).rejects.toThrow(/is in another cluster/); // every role may read it
    await server.sql("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC");
    await required(blind);
    const facts = await connected(blind, readDatabaseSafetyFacts);
    await server.sql("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC");
    expect(facts.systemId).toBeNull();
    expect(requireSafeDatabase(blind, facts, { requiresSync: false })).toContainEqual(
      expect.stringMatching(/GRANT EXECUTE ON FUNCTION pg_control_system\(\)/),
    );
  });

  test("of another version is refused in words, and not migrated back", async () => {
    const address = addressOf("fifth");
    await migrateDatabase(address, { ...options, tables });
    await server.sql("UPDATE fifth.store SET format = 2");
    const refused = { code: "CONFIG", message: expect.stringMatching(newerFormatPattern) };
    await expect(required(address)).rejects.toMatchObject(refused);
    await expect(migrateDatabase(address, { ...options, tables })).rejects.toMatchObject(refused);
    expect(await server.sql("SELECT format FROM fifth.store")).toBe("2");
    await server.sql("UPDATE fifth.store SET format = 0");
    await expect(required(address)).rejects.toThrow(
      /have format 0, and this baton needs 1: start it once with --migrate/,
    );
  });

  test("a database is judged by its own settings, also by those of the role", async () => {
    const address = addressOf("baton");
    const facts = await connected(address, readDatabaseSafetyFacts);
    expect([isReplicationSynchronous(facts), facts.timeline, facts.standbys]).toEqual([false, 1, []]);
    expect(requireSafeDatabase(address, facts, { requiresSync: false })).toEqual([
      "there is no standby: acknowledged messages are lost with the disk of the database",
    ]);
    await server.sql("ALTER ROLE baton SET synchronous_commit = off");
    const lowered = await connected(address, readDatabaseSafetyFacts);
    await server.sql("ALTER ROLE baton RESET synchronous_commit");
    expect(() => requireSafeDatabase(address, lowered, { requiresSync: false })).toThrow(
      /synchronous_commit is off for this role/,
    );
  });
});

describeWithPeer("postgres", "a database with a standby", () => {
  test("counts as synchronous, and its timeline is the new one immediately after a promotion", async () => {
    await using primary = await PostgresServer.start();
    await using standby = await primary.standby({ isSynchronous: true });
    const factsOf = async (server: PostgresServer) => {
      const address = parseDatabaseUrl(server.url, { mayHavePassword: false, env: {} });
      const connection = await connectToPrimary(address, options);
      try {
        return await readDatabaseSafetyFacts(connection);
      } finally {
        connection.close();
      }
    };
    const before = await factsOf(primary);
    expect([isReplicationSynchronous(before), before.standbys?.map(({ sync }) => sync)]).toEqual([true, ["sync"]]);
    await expect(factsOf(standby)).rejects.toThrow(/it is a standby/);
    await primary.kill();
    await standby.promote();
    const after = await factsOf(standby);
    expect([after.timeline, after.systemId]).toEqual([2, before.systemId]);
  }, 60_000);
});
