/** `baton retry-processor` with `--store postgres://…`, as operators of several machines use it. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { HttpBackend } from "../../support/http_backend.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";

setDefaultTimeout(60_000);

describeWithPeer("postgres", "retry-processor with a store in PostgreSQL", () => {
  let server: PostgresServer;
  let session: BatonSession;
  beforeAll(async () => {
    server = await PostgresServer.start({ password: "open sesame" });
    session = new BatonSession();
    writeFileSync(session.path("pgpass"), `127.0.0.1:${server.port}:*:baton:open sesame\n`);
    chmodSync(session.path("pgpass"), 0o600);
  });
  afterAll(async () => {
    await session?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  const env = () => ({
    BATON_RETRY_STORE: `postgres://baton@127.0.0.1:9,127.0.0.1:${server.port}/postgres`,
    PGPASSFILE: session.path("pgpass"),
  });
  const run = (script: string, more: Readonly<Record<string, string>> = {}) =>
    session.run(script.replaceAll("@retry", `"$baton" retry-processor`), { ...env(), ...more });

  test("says how its tables are made, and makes them", async () => {
    const missing = await run("@retry stats --name orders");
    expect(missing).toMatchObject({ code: 78, stdout: "" });
    expect(missing.stderr).toMatch(/has no tables of baton in the schema "baton": start once with --migrate/);
    const made = await run("printf hello | @retry submit --name orders --migrate -- sh -c 'cat >>got'");
    expect(made).toMatchObject({ code: 0 });
    expect(made.stderr).toMatch(/^baton: no processor is running: start one with .* --name orders\n$/);
    expect(made.stdout).toMatch(/^\w{8}-1\n$/);
    expect(await run("@retry run --name orders --until-empty")).toMatchObject({ code: 0 });
    expect(session.read("got")).toBe("hello");
    const unknown = await run("@retry stats --name order");
    expect(unknown).toMatchObject({ code: 78 });
    expect(unknown.stderr).toMatch(/There is no message store "order" in postgres:\/\//);
  });

  test("needs no rights but those of rows after the tables are made", async () => {
    await server.sql(`CREATE ROLE plain LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA baton TO plain;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA baton TO plain`);
    const plain = {
      BATON_RETRY_STORE: `postgres://plain@127.0.0.1:${server.port}/postgres`,
      PGPASSWORD: "x",
      PGPASSFILE: "/nowhere",
    };
    expect(await run("printf x | @retry submit --name plain -- true", plain)).toMatchObject({ code: 0 });
    expect(await run("@retry run --name plain --until-empty", plain)).toMatchObject({ code: 0 });
    const refused = await run("@retry stats --name plain --migrate", plain);
    expect([refused.code, refused.stderr]).toEqual([77, expect.stringMatching(/permission denied|must be owner/)]);
    await server.sql("REVOKE ALL ON baton.queue FROM plain");
    const without = await run("printf x | @retry submit --name plainer -- true", plain);
    expect([without.code, without.stderr]).toEqual([
      77,
      expect.stringMatching(/table queue .*: the role "plain" needs USAGE on the schema "baton", and SELECT, INSERT, /),
    ]);
  });

  test("has clear errors and their exit codes", async () => {
    const url = (login: string, port: number, rest = "") => `postgres://${login}@127.0.0.1:${port}/postgres${rest}`;
    const stats = (store: string, options = "") =>
      run(`@retry stats ${options}`, { BATON_RETRY_STORE: store, PGPASSFILE: "/nowhere" });
    const cases = [
      [await stats(url("baton:secret", server.port)), 78, /a password in a URL can be read by others/],
      [await stats(url("baton", server.port)), 77, /wants a password, and there is none/],
      [await stats(url("baton", server.port, "?sslmod=disable")), 78, /the parameter "sslmod" is not known/],
      [await run("@retry submit --store mysql://baton:secret@db/x"), 64, /mysql:.*it is not a URL such as postgres:/],
      [
        await stats(url("baton", server.port, "?sslmode=require")),
        78,
        /the server has TLS switched off \(ssl = off\)/,
      ],
      [await run("@retry stats --name plain --require-sync"), 78, /there is no standby.*\(--require-sync\)/],
    ] as const;
    for (const [{ code, stdout, stderr }, wanted, sentence] of cases) {
      expect([code, stdout]).toEqual([wanted, ""]);
      expect(stderr).toMatch(sentence);
      expect(stderr).not.toMatch(/secret/);
    }
  });

  test("another cluster is refused until an operator accepts it", async () => {
    await server.sql("UPDATE baton.store SET system_id = '7'");
    const stats = (options = "") => run(`@retry stats --name plain ${options}`);
    const refused =
      /is in another cluster .* than the one in which its tables were made \(7\).*start once with --moved/;
    expect(await stats()).toMatchObject({ code: 78, stderr: expect.stringMatching(refused) });
    expect(await stats("--moved")).toMatchObject({ code: 0 });
    expect(await stats()).toMatchObject({ code: 0 });
    expect(await run("@retry stats --moved", { BATON_RETRY_STORE: "folder" })).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(/--moved is for a store in a database/),
    });
  });

  test("call stores what failed, and every operator's word works", async () => {
    const words = { ...env(), BATON_RETRY_NAME: "words" };
    const called = await run("printf body | @retry call --interval 1h -- sh -c 'cat >/dev/null; exit 3'", words);
    expect(called.code).toBe(75);
    expect(called.stderr).toMatch(/stored in "words" as \w{8}-1, next try in (1 h|59 m)/);
    expect((await run("@retry call --no-stdin -- sh -c 'exit 65'", words)).stderr).toMatch(/dead letter in "words"/);
    const listed = JSON.parse((await run("@retry ls --json", words)).stdout);
    expect(listed.messages).toMatchObject([{ state: "waiting", tries: 1 }, { state: "dead", reason: "final" }]);
    expect((await run("@retry show 1 --body", words)).stdout).toBe("body");
    expect(JSON.parse((await run("@retry stats --json", words)).stdout)).toMatchObject({
      folder: expect.stringMatching(/^postgres:\/\//),
      states: { waiting: { count: 1, bytes: 4 }, dead: { count: 1 } },
      disk: { free_bytes: null },
    });
    expect((await run("@retry verify", words)).stdout).toMatch(/^no damage found in postgres:.*: 2 messages, 4 bytes/);
    expect((await run("@retry dlq export", words)).stdout).toMatch(/"reason":"final"/);
    expect(await run("@retry dlq redrive --all && @retry cancel 2", words)).toMatchObject({ code: 0 });
    expect(await run("@retry pause && @retry retry --all && @retry resume && @retry dlq purge --all", words))
      .toMatchObject({ code: 0 });
    expect((await run("@retry run --once --max-retries 1", words)).code).toBe(0);
    expect((await run("@retry stats", words)).stdout).toMatch(/dead +1 +4\n[^]*cancelled +1 /);
    expect((await run('"$baton" ls --kind store --name words --json', words)).stdout).toMatch(/"name":"words"/);
  });

  test("doctor says what the database does not promise, and that it cannot be reached", async () => {
    const doctor = await run('"$baton" doctor --json');
    const { findings } = JSON.parse(doctor.stdout);
    expect(findings).toContainEqual({
      id: "database-setting",
      severity: "warning",
      where: expect.stringMatching(/^postgres:/),
      what: "there is no standby: acknowledged messages are lost with the disk of the database",
      action: expect.any(String),
    });
    const gone = await run('"$baton" doctor', { BATON_RETRY_STORE: "postgres://baton@127.0.0.1:9/postgres" });
    expect([gone.code, gone.stdout]).toEqual([
      1,
      expect.stringMatching(/problem +database-unreadable +postgres:\S+ +Cannot connect to the database/),
    ]);
  });

  test("serve stores for all machines, and processors that are killed lose nothing", async () => {
    await using backend = await new HttpBackend((_, response) => void response.writeHead(503).end()).up();
    const name = "shared";
    const serve = () =>
      session.start(
        `exec "$baton" retry-processor serve --name ${name} --listen :0 --url ${backend.url} --interval 200ms --lease 2s -j 4`,
        env(),
      );
    const [one, other] = [serve(), serve()];
    const urls = await Promise.all(
      [one, other].map((service) =>
        eventually(() => /serves \S+ at (\S+), stores in postgres/.exec(service.stderr())?.[1] ?? null, {
          withinMs: 20_000,
        })
      ),
    );
    const ids: string[] = [];
    for (let at = 0; at < 10; at++) {
      const response = await fetch(`http://${urls[at % 2]}/`, { method: "POST", body: `order ${at}` });
      ids.push(response.headers.get("baton-message-id") ?? "");
    }
    expect(new Set(ids).size).toBe(10);
    one.child.kill("SIGKILL");
    backend.answer = (_, response) => void response.end("ok");
    await eventually(async () => {
      const { stdout } = await run(`@retry stats --name ${name} --json`);
      return JSON.parse(stdout).states.done.count === 10;
    }, { withinMs: 40_000, everyMs: 200 });
    other.child.kill("SIGTERM");
    expect((await other.ended).code).toBe(0);
    expect((await run(`@retry verify --name ${name}`)).code).toBe(0);
  });
});
