/**
 * /healthz of services with a PostgreSQL database that stores nothing any longer, while no client asks them for
 * anything.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";
import { startRole } from "../../support/session_talker.ts";

setDefaultTimeout(90_000);

describeWithPeer("postgres", "/healthz of a service with a database", () => {
  let server: PostgresServer;
  let session: BatonSession;
  beforeAll(async () => {
    server = await PostgresServer.start();
    await server.sql("CREATE ROLE plain LOGIN; CREATE SCHEMA baton AUTHORIZATION plain");
    await server.sql(
      "CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE SQLSTATE '53100'; END$$",
    );
    session = new BatonSession({ BATON_SERVERS: "embedded" });
  });
  afterAll(async () => {
    await session?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  const store = () => server.tcpUrl.replace("baton@", "plain@");
  const health = async () =>
    (await session.run(`curl -s -w ' %{http_code}' --unix-socket "$dir/page" http://localhost/healthz`)).stdout;
  const becomes = (wanted: RegExp) =>
    eventually(async () => wanted.test(await health()), {
      withinMs: 60_000,
      everyMs: 50,
      what: `/healthz to say ${wanted}`,
    });

  const disconnect = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'plain'";

  /** Breaks the database in each way, and mends it. */
  async function checkHealth(table: string, other: string): Promise<void> {
    const ways = [
      [
        `CREATE TRIGGER no_space BEFORE INSERT ON baton.${table} EXECUTE FUNCTION no_space()`,
        /53100.*the disk of the database is full\n 503$/,
        `DROP TRIGGER no_space ON baton.${table}`,
      ],
      [
        `ALTER ROLE plain SET default_transaction_read_only = on; ${disconnect}`,
        /it is read-only .*\n 503$/,
        "ALTER ROLE plain RESET default_transaction_read_only",
      ],
      [
        `REVOKE INSERT ON baton.${table} FROM plain`,
        /permission denied.*42501.*the role "plain" needs .*\n 503$/,
        `GRANT INSERT ON baton.${table} TO plain`,
      ],
      ...["SELECT", "UPDATE", "DELETE"].map((right) =>
        [
          `REVOKE ${right} ON baton.${other} FROM plain`,
          new RegExp(`permission denied for table ${other} \\(42501.*\n 503$`),
          `GRANT ${right} ON baton.${other} TO plain`,
        ] as const
      ),
    ] as const;
    for (const [breaks, says, mends] of ways) {
      await becomes(/^ok\n 200$/);
      await server.sql(breaks);
      await becomes(says);
      await server.sql(mends);
    }
    await becomes(/^ok\n 200$/);
  }

  test("pubsub server: and its clients get 85 while the database is full", async () => {
    const role = await startRole(
      session,
      `server --id s1 --store ${store()} --migrate --metrics-listen unix:$dir/page`,
    );
    await startRole(session, "proxy --listen ipc://$dir/p1");
    await checkHealth("topic_message", "topic");
    expect(await session.run(`"$baton" pubsub client alice subscribe news`)).toMatchObject({ code: 0 });
    await server.sql("CREATE TRIGGER no_space BEFORE INSERT ON baton.topic_message EXECUTE FUNCTION no_space()");
    const put = () => session.run(`echo 1 | "$baton" pubsub client bob put news -`);
    for (let time = 0; time < 2; time++) {
      const { code, stderr } = await put();
      expect([code, stderr]).toEqual([85, expect.stringMatching(/FULL, .*the disk of the database is full/)]);
    }
    await becomes(/^messages are refused: .*53100.* 503$/s);
    await server.sql("DROP TRIGGER no_space ON baton.topic_message");
    expect(await put()).toMatchObject({ code: 0 });
    await becomes(/^ok\n 200$/);

    await server.sql(
      "CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; " +
        "CREATE TRIGGER no BEFORE INSERT ON baton.topic_client FOR EACH ROW EXECUTE FUNCTION leave_out()",
    );
    const { code, stderr } = await session.run(`"$baton" pubsub client carol subscribe news --timeout 2s`);
    // 76: the last request was still unanswered when the time was over.
    expect([code === 69 || code === 76, stderr]).toEqual([true, expect.stringContaining("only 0 of 1 rows")]);
    await becomes(/^messages are refused: .*only 0 of 1 rows of the table topic_client were changed.* 503$/s);
    await server.sql("DROP TRIGGER no ON baton.topic_client");
    expect(await put()).toMatchObject({ code: 0 });
    await becomes(/^ok\n 200$/);

    await server.sql(`ALTER ROLE plain CONNECTION LIMIT 0; ${disconnect}`);
    const waits = put(); // the server waits for a connection
    await becomes(/^messages are refused: .*too many connections for role "plain" \(53300\).* 503$/s);
    await server.sql("ALTER ROLE plain CONNECTION LIMIT -1");
    await waits;
    await becomes(/^ok\n 200$/);
    role.child.kill("SIGTERM");
    expect((await role.ended).code).toBe(0);
  });

  test("retry-processor run", async () => {
    const run = `retry-processor run --store ${store()} --migrate --name q --exec cat --metrics-listen unix:$dir/page`;
    const role = session.start(`exec "$baton" ${run}`);
    await eventually(async () => /200$/.test(await health()), { withinMs: 30_000, what: role.stderr() });
    await checkHealth("retry_body", "retry_ingest");
    role.child.kill("SIGTERM");
    expect((await role.ended).code).toBe(0);
  });
});
