import { afterAll, beforeAll, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DatabaseAddress, parseDatabaseUrl } from "../../../src/base/postgres/database_address.ts";
import { DatabaseLane } from "../../../src/base/postgres/database_lane.ts";
import type { SqlStatement } from "../../../src/base/postgres/primary_connection.ts";
import { StatementError } from "../../../src/base/postgres/statement_error.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { sleep } from "../../../src/base/support/deadline.ts";
import { CertificateAuthority } from "../../support/certificate_authority.ts";
import { eventually } from "../../support/eventually.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";
import { StatementCutter } from "../../support/statement_cutter.ts";

const clock = systemClock();
const addressOf = (url: string): DatabaseAddress => parseDatabaseUrl(url, { mayHavePassword: true, env: {} });
const laneTo = (url: string, onConnect?: () => Promise<void>): DatabaseLane =>
  new DatabaseLane({ address: addressOf(url), clock, name: "test", ...(onConnect === undefined ? {} : { onConnect }) });
const one: SqlStatement = { name: "one", text: "SELECT 1 AS one" };
const insert: SqlStatement = { name: "insert_number", text: "INSERT INTO numbers VALUES ($1) RETURNING n" };

/** The error of a statement that must fail. */
async function failureOf(work: Promise<unknown>): Promise<StatementError> {
  const error = await work.then((rows) => new Error(`it succeeded: ${JSON.stringify(rows)}`), (error) => error);
  if (!(error instanceof StatementError)) throw error;
  return error;
}

describeWithPeer("postgres", "statements for a real PostgreSQL", () => {
  let server: PostgresServer;
  let folder: string;
  let trusted: CertificateAuthority;
  let other: CertificateAuthority;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "baton-lane-"));
    trusted = await CertificateAuthority.start(folder, "trusted");
    other = await CertificateAuthority.start(folder, "other");
    const tls = await trusted.issue("server", { names: "IP:127.0.0.1" });
    server = await PostgresServer.start({ tls, password: "geheim" });
    await server.sql("CREATE TABLE numbers (n bigint PRIMARY KEY)");
  }, 60_000);
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  const withPassword = () => server.tcpUrl.replace("baton@", "baton:geheim@");

  test("values arrive as they are: all bytes, large integers, texts, nulls, lists", async () => {
    await using lane = laneTo(server.url);
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
    const text = "SELECT $1::bytea AS bytes, $2::bigint AS big, $3::int AS small, " +
      "$4::text AS text, $5::bool AS yes, $6::text AS nothing," +
      " (SELECT sum(n) FROM unnest($7::bigint[]) n)::bigint AS sum, octet_length($1::bytea) AS length";
    const [row] = await lane.run({ name: "values", text }, [bytes, 2n ** 60n, 128, "ä'\\", true, null, [1, 2, 3]]);
    expect(row).toEqual({
      bytes,
      big: 2n ** 60n,
      small: 128,
      text: "ä'\\",
      yes: true,
      nothing: null,
      sum: 6,
      length: 256,
    });
  });

  test("statements that are passed together run one after the other", async () => {
    await using lane = laneTo(server.url);
    const rows = await Promise.all([11, 12, 13].map((n) => lane.run(insert, [n])));
    expect(rows.map(([row]) => row?.["n"])).toEqual([11, 12, 13]);
  });

  test("a connection does not keep the results of its statements", async () => {
    await using lane = laneTo(server.url);
    const results: WeakRef<object>[] = [];
    for (let n = 0; n < 100; n++) results.push(new WeakRef(await lane.run(one)));
    await sleep(clock, 0); // what a WeakRef has returned or got stays until the end of the turn
    Bun.gc(true);
    expect(results.filter((result) => result.deref() !== undefined).length).toBeLessThan(10);
  });

  test("a refused statement changed nothing, and the connection stays", async () => {
    await using lane = laneTo(server.url);
    const pid = async () => (await lane.run({ name: "pid", text: "SELECT pg_backend_pid() AS pid" }))[0]?.["pid"];
    const before = await pid();
    await lane.run(insert, [21]);
    const error = await failureOf(lane.run(insert, [21]));
    expect([error.outcome, error.sqlState, error.isTemporary]).toEqual(["rolled_back", "23505", false]);
    const cancelled = lane.run({ name: "slow", text: "SELECT pg_sleep(20)" });
    await eventually(() =>
      server.sql(
        `SELECT pg_cancel_backend(${before}) ` +
          `WHERE EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = ${before} AND state = 'active')`,
      )
    );
    const slow = await failureOf(cancelled);
    expect([slow.outcome, slow.sqlState, slow.isTemporary, slow.code]).toEqual([
      "rolled_back",
      "57014",
      true,
      "LOCK_BUSY",
    ]);
    expect(await pid()).toBe(before as number);
  });

  test("a statement whose server process was ended has an unknown outcome; the next one connects again", async () => {
    await using lane = laneTo(server.url);
    const [row] = await lane.run({ name: "pid", text: "SELECT pg_backend_pid() AS pid" });
    const running = lane.run({ name: "slow", text: "SELECT pg_sleep(20)" });
    const failed = failureOf(running);
    await eventually(() =>
      server.sql(
        `SELECT pg_terminate_backend(${row?.["pid"]}) WHERE EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = ${
          row?.["pid"]
        } AND state = 'active')`,
      )
    );
    expect([(await failed).outcome, (await failed).code]).toEqual(["unknown", "OUTCOME_UNKNOWN"]);
    expect(await lane.run(one)).toEqual([{ one: 1 }]);
  });

  test("a statement that exceeds its deadline is unknown, and was not cancelled", async () => {
    await using lane = laneTo(server.url);
    await lane.run(one);
    const text = "WITH waited AS MATERIALIZED (SELECT pg_sleep(0.5)) INSERT INTO numbers SELECT 31 FROM waited";
    const error = await failureOf(lane.run({ name: "late", text }, [], { deadlineMs: 100 }));
    expect(error.outcome).toBe("unknown");
    await eventually(async () => await server.sql("SELECT n FROM numbers WHERE n = 31") === "31");
  });

  for (const [cut, at] of [["before", 41], ["sent", 42], ["after", 43]] as const) {
    test(`a connection that is cut ${cut} the statement leaves its outcome unknown`, async () => {
      await using cutter = await StatementCutter.start({ host: "127.0.0.1", port: server.port });
      await using lane = laneTo(`postgres://baton:geheim@127.0.0.1:${cutter.port}/postgres`);
      await lane.run(one);
      cutter.arm(cut, "insert_number");
      expect((await failureOf(lane.run(insert, [at]))).outcome).toBe("unknown");
      expect(cutter.cuts).toBe(1);
      if (cut === "after") expect(await server.sql(`SELECT n FROM numbers WHERE n = ${at}`)).toBe(`${at}`);
      if (cut === "before") expect(await server.sql(`SELECT n FROM numbers WHERE n = ${at}`)).toBe("");
      expect(await lane.run(one)).toEqual([{ one: 1 }]);
    });
  }

  test("an unreachable host is tried until the deadline, and nothing was sent", async () => {
    await using lane = laneTo("postgres://baton@127.0.0.1:1/postgres");
    const error = await failureOf(lane.run(one, [], { deadlineMs: 300 }));
    expect([error.outcome, error.code]).toEqual(["not_sent", "UNREACHABLE"]);
    expect(error.message).toContain("127.0.0.1:1");
  });

  test("a host that accepts connections and says nothing is given up at the deadline", async () => {
    const silent = createServer((socket) => void socket.on("error", () => {}));
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    try {
      await using lane = laneTo(`postgres://baton@127.0.0.1:${(silent.address() as AddressInfo).port}/postgres`);
      const error = await failureOf(lane.run(one, [], { deadlineMs: 300 }));
      expect([error.outcome, error.code]).toEqual(["not_sent", "UNREACHABLE"]);
    } finally {
      silent.close();
    }
  });

  test("a missing and a wrong password are refused immediately, with a sentence", async () => {
    await using without = laneTo(`${server.tcpUrl}?passfile=/nonexistent`);
    const missing = await failureOf(without.run(one));
    expect([missing.code, missing.outcome]).toEqual(["REFUSED", "not_sent"]);
    expect(missing.message).toContain('there is none for user "baton"');
    await using wrong = laneTo(server.tcpUrl.replace("baton@", "baton:falsch@"));
    expect(await failureOf(wrong.run(one))).toMatchObject({ code: "REFUSED", sqlState: "28P01" });
  });

  test("TLS is verified: another authority and another name are refused", async () => {
    const url = `${withPassword()}?sslmode=verify-full&sslrootcert=`;
    const usesTls: SqlStatement = { name: "tls", text: "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()" };
    await using good = laneTo(`${url}${trusted.ca}`);
    expect(await good.run(usesTls)).toEqual([{ ssl: true }]);
    await using unknown = laneTo(`${url}${other.ca}`);
    expect(await failureOf(unknown.run(one))).toMatchObject({ code: "CONFIG", outcome: "not_sent" });
    await using misnamed = laneTo(`${url}${trusted.ca}`.replace("127.0.0.1", "localhost"));
    expect(await failureOf(misnamed.run(one))).toMatchObject({ code: "CONFIG", outcome: "not_sent" });
    await using unverified = laneTo(`${withPassword()}?sslmode=require`);
    expect(await unverified.run(usesTls)).toEqual([{ ssl: true }]);
  });

  test("renewed TLS files are used by the next connection; while they cannot be used, the ones before", async () => {
    const file = join(folder, "authority.pem");
    copyFileSync(trusted.ca, file);
    const address = addressOf(`${withPassword()}?sslmode=verify-full&sslrootcert=${file}`);
    const warnings: string[] = [];
    const connectNow = async () => {
      await using lane = new DatabaseLane({ address, clock, name: "tls", warn: (text) => warnings.push(text) });
      await lane.run(one);
    };
    await connectNow();
    writeFileSync(file, "half of a certifi");
    await connectNow();
    expect(warnings).toEqual([expect.stringContaining(`${file} contains no certificate`)]);
    copyFileSync(other.ca, file);
    expect(await failureOf(connectNow())).toMatchObject({ code: "CONFIG", outcome: "not_sent" });
  });

  test("what onConnect refuses is the error of the statement", async () => {
    await using lane = laneTo(
      server.url,
      () => Promise.reject(new StatementError("wrong store", { outcome: "not_sent", sqlState: null, code: "CONFIG" })),
    );
    expect((await failureOf(lane.run(one))).message).toBe("wrong store");
  });

  test("time limits that the role has for statements and transactions do not apply", async () => {
    const limits = "SELECT name FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout')";
    const names = (await server.sql(limits)).split("\n");
    expect(names).toContain("statement_timeout");
    await server.sql(
      `CREATE ROLE hurried LOGIN;${names.map((name) => `ALTER ROLE hurried SET ${name} = 100`).join(";")}`,
    );
    await using lane = laneTo(server.url.replace("baton@", "hurried@"));
    expect(await lane.run({ name: "slow", text: "SELECT pg_sleep(0.3)::text AS slept" })).toEqual([{ slept: "" }]);
  });

  test("the session has the settings that the statements need, and never a lower durability", async () => {
    await using lane = laneTo(server.url);
    const names = ["client_min_messages", "plan_cache_mode", "enable_seqscan", "synchronous_commit", "bytea_output"];
    const rows = await lane.run({
      name: "settings",
      text: "SELECT current_setting(name) AS value FROM unnest($1::text[]) WITH ORDINALITY s(name, n) ORDER BY n",
    }, [names]);
    expect(rows.map(({ value }) => value)).toEqual(["warning", "force_generic_plan", "off", "on", "hex"]);
  });
});

describeWithPeer("postgres", "a PostgreSQL with a synchronous standby", () => {
  test(
    "the standby is passed over, a cancelled wait is unknown, and after a promotion the other host is used",
    async () => {
      await using primary = await PostgresServer.start();
      await primary.sql("CREATE TABLE numbers (n bigint PRIMARY KEY)");
      await using standby = await primary.standby({ isSynchronous: true });
      await using lane = laneTo(`postgres://baton@127.0.0.1:${standby.port},127.0.0.1:${primary.port}/postgres`);
      expect(await lane.run(insert, [1])).toEqual([{ n: 1 }]);
      const [row] = await lane.run({ name: "pid", text: "SELECT pg_backend_pid() AS pid" });

      standby.signal("SIGSTOP");
      let hasEnded = false;
      const failed = failureOf(lane.run(insert, [2])).finally(() => hasEnded = true);
      // Again and again: a request to cancel that comes at another moment than the wait has no effect.
      await eventually(async () => {
        await primary.sql(
          `SELECT pg_cancel_backend(${row?.["pid"]}) WHERE EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = ${
            row?.["pid"]
          } AND wait_event = 'SyncRep')`,
        );
        return hasEnded;
      }, { what: "the wait for the standby to be cancelled", withinMs: 20_000 });
      expect(await failed).toMatchObject({ outcome: "unknown", sqlState: "01000" });

      await primary.kill();
      standby.signal("SIGCONT");
      await standby.promote();
      expect(await lane.run(insert, [3])).toEqual([{ n: 3 }]);
    },
    60_000,
  );
});
