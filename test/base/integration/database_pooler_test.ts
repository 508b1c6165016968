/**
 * Connections to a real PostgreSQL through a real PgBouncer, with the settings that change what a client sees of it.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { parseDatabaseUrl } from "../../../src/base/postgres/database_address.ts";
import { connectToPrimary } from "../../../src/base/postgres/primary_connection.ts";
import { StatementError } from "../../../src/base/postgres/statement_error.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { eventually } from "../../support/eventually.ts";
import { freePorts } from "../../support/free_ports.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { startPgBouncer } from "../../support/pooler.ts";
import { PostgresServer } from "../../support/postgres_server.ts";

setDefaultTimeout(60_000);

const passesOptions = "ignore_startup_parameters = extra_float_digits, options";
const connect = (url: string) =>
  connectToPrimary(parseDatabaseUrl(url, { mayHavePassword: true, env: {} }), { clock: systemClock(), name: "test" });
const failureOf = (url: string): Promise<StatementError> =>
  connect(url).then((connection) => {
    connection.close();
    throw new Error("it was connected");
  }, (error) => {
    if (!(error instanceof StatementError)) throw error;
    return error;
  });

describeWithPeer("pgbouncer", "connections through a pooler", () => {
  let server: PostgresServer;
  beforeAll(async () => void (server = await PostgresServer.start()));
  afterAll(async () => await server?.[Symbol.asyncDispose]());

  /** Runs work with the URL of a pooler with these settings. */
  async function throughPooler(settings: readonly string[], work: (url: string) => Promise<void>): Promise<void> {
    const [port = 0] = await freePorts(1);
    const database = `postgres = host=127.0.0.1 port=${server.port} user=baton`;
    const pooler = startPgBouncer(server.folder, { port, database, settings });
    try {
      const url = `postgres://baton@127.0.0.1:${port}/postgres`;
      const said = () => connect(url).then((one) => one.close(), String);
      await eventually(async () => !/connection refused/i.test(await said() ?? ""), { what: "PgBouncer" });
      await work(url);
    } finally {
      await pooler.kill();
    }
  }

  const transactionSettings = [
    ["that leaves out unknown options", passesOptions],
    ["with one connection to the database", passesOptions, "default_pool_size = 1"],
    ["that takes another connection each time", passesOptions, "server_round_robin = 1", "min_pool_size = 5"],
    [
      "that resets sessions after each transaction",
      passesOptions,
      "server_reset_query = DISCARD ALL",
      "server_reset_query_always = 1",
    ],
    ["that resets nothing", passesOptions, "server_reset_query ="],
  ];
  for (const [what = "", ...settings] of transactionSettings) {
    test(`a pooler in transaction mode ${what} is refused, each time`, async () => {
      await throughPooler(["pool_mode = transaction", ...settings], async (url) => {
        for (let time = 0; time < 2; time++) {
          const error = await failureOf(url);
          expect(error.code).toBe("CONFIG");
          expect(error.message).toContain(
            "a pooler is between, and a transaction has another session than the previous transaction",
          );
        }
      });
    });
  }

  test("a pooler in statement mode, and one that refuses options, is refused", async () => {
    await throughPooler(["pool_mode = statement", passesOptions], async (url) => {
      expect(await failureOf(url)).toMatchObject({ code: "CONFIG" });
    });
    await throughPooler(["pool_mode = transaction"], async (url) => {
      expect(await failureOf(url)).toMatchObject({
        code: "CONFIG",
        message: expect.stringContaining("a pooler such as PgBouncer is between"),
      });
    });
  });

  test("a pooler that keeps sessions is used, also with one connection, and the session has its settings", async () => {
    await throughPooler(["pool_mode = session", passesOptions, "default_pool_size = 1"], async (url) => {
      for (let time = 0; time < 2; time++) {
        const connection = await connect(url);
        const text = "SELECT current_setting('lock_timeout') AS lock, current_setting('idle_session_timeout') AS idle";
        expect(await connection.run({ name: "settings", text }, [])).toEqual([{ lock: "10s", idle: "0" }]);
        connection.close();
      }
    });
  });
});
