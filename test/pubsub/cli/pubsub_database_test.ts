/** `baton pubsub server --store postgres://…`, as operators of several machines use it. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";
import { startRole } from "../../support/session_talker.ts";

setDefaultTimeout(60_000);

describeWithPeer("postgres", "pubsub servers with their topics in PostgreSQL", () => {
  let server: PostgresServer;
  let session: BatonSession;
  beforeAll(async () => {
    server = await PostgresServer.start({ password: "open sesame" });
    session = new BatonSession({ BATON_SERVERS: "embedded", BATON_SESSION_TIMEOUT: "2s" });
    writeFileSync(session.path("pgpass"), `127.0.0.1:${server.port}:*:baton:open sesame\n`);
    chmodSync(session.path("pgpass"), 0o600);
  });
  afterAll(async () => {
    await session?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  const env = () => ({
    BATON_PUBSUB_SERVER_STORE: `postgres://baton@127.0.0.1:9,127.0.0.1:${server.port}/postgres`,
    PGPASSFILE: session.path("pgpass"),
  });
  const run = (script: string, more: Readonly<Record<string, string>> = {}) =>
    session.run(script.replaceAll("@pubsub", `"$baton" pubsub`), { ...env(), ...more });

  const started = (words: string) => startRole(session, words, env());

  test("a server that waits for its database says so", async () => {
    const waiting = session.start(`exec "$baton" pubsub server --id s1`, {
      BATON_PUBSUB_SERVER_STORE: "postgres://baton@127.0.0.1:9/postgres",
    });
    await eventually(() => waiting.stderr() !== "", { what: "a line of the server", withinMs: 20_000 });
    expect(waiting.stderr()).toMatch(/warning: Cannot connect to .*:9: connection refused; waiting up to 40 s/);
    waiting.child.kill("SIGTERM");
    await eventually(() => waiting.child.exitCode !== null, { what: "its end after SIGTERM", withinMs: 20_000 });
    expect((await waiting.ended).code).toBe(0);
  });

  test("a server says how its tables are made, and what it does not accept", async () => {
    const url = (login: string, port: number, rest = "") => `postgres://${login}@127.0.0.1:${port}/postgres${rest}`;
    const serve = (store: string, options = "") =>
      run(`@pubsub server --id s1 ${options}`, { BATON_PUBSUB_SERVER_STORE: store, PGPASSFILE: "/nowhere" });
    const cases = [
      [
        await run("@pubsub server --id s1"),
        78,
        /has no tables of baton in the schema "baton": start once with --migrate/,
      ],
      [await serve(url("baton:secret", server.port)), 78, /a password in a URL can be read by others/],
      [await serve(url("baton", server.port)), 77, /wants a password, and there is none/],
      [await serve(url("baton", server.port, "?sslmod=disable")), 78, /the parameter "sslmod" is not known/],
      [await serve("/var/lib/baton"), 78, /is not the URL of a database: use postgres:/],
      [await run("@pubsub server --id s1 --migrate --require-sync"), 78, /there is no standby.*\(--require-sync\)/],
      [await run("@pubsub server --id s1 --store postgres://x --data-dir ."), 64, /either in the folder "."/],
      [await run("@pubsub server --id s1 --data-dir . --migrate"), 64, /--migrate is not for topics in a folder/],
      [await run("@pubsub server verify"), 64, /verify is for a --data-dir: use the database's own means/],
      [await run("@pubsub server ls --migrate"), 64, /--migrate is not for ls/],
    ] as const;
    for (const [{ code, stdout, stderr }, wanted, sentence] of cases) {
      expect([code, stdout, stderr]).toEqual([wanted, "", expect.stringMatching(sentence)]);
      expect(stderr).not.toMatch(/secret/);
    }
    // The address is that of another cluster, or the tables were copied.
    expect((await run("@pubsub server --id s1 --migrate --insecure --listen tcp://256.0.0.1:1")).code).not.toBe(78);
    await server.sql("UPDATE baton.store SET system_id = '7'");
    for (const words of ["", "--migrate"]) {
      expect(await run(`@pubsub server --id s1 ${words}`)).toMatchObject({
        code: 78,
        stderr: expect.stringMatching(
          /is in another cluster \(system identifier \d{19}\) than the one in which its tables were made \(7\).*--moved/,
        ),
      });
    }
    expect((await run("@pubsub server --id s1 --moved --insecure --listen tcp://256.0.0.1:1")).code).not.toBe(78);
    expect(await server.sql("SELECT system_id = (pg_control_system()).system_identifier::text FROM baton.store")).toBe(
      "t",
    );
    await server.sql("ALTER SYSTEM SET full_page_writes = off");
    await server.reload();
    expect(await run("@pubsub server --id s1")).toMatchObject({
      code: 78,
      stderr: expect.stringMatching(/full_page_writes is off/),
    });
    await server.sql("ALTER SYSTEM RESET full_page_writes");
    await server.reload();
  });

  test("a server that dies loses nothing, and ls shows who has its topics", async () => {
    expect((await run("@pubsub server --id s1 --migrate --insecure --listen tcp://256.0.0.1:1")).code).not.toBe(0);
    const [first, second] = [await started("server --id s1"), await started("server --id s2")];
    await started("proxy --listen ipc://$dir/p1");
    const topics = ["a", "b", "c", "d"];
    for (const topic of topics) {
      expect(await run(`@pubsub client alice subscribe ${topic} && echo 1 | @pubsub client bob put ${topic} -`))
        .toMatchObject({ code: 0 });
    }
    const { servers } = JSON.parse((await run("@pubsub server ls --json")).stdout);
    const { store } = servers[0];
    expect(store).toMatch(/^\w{8}-/);
    expect(servers).toMatchObject([{ server: "s1", store, topics: [{}, {}] }, { server: "s2", store }]);
    first.child.kill("SIGKILL");
    await first.ended;
    // The session of a dead server has to end first.
    await eventually(async () => /s1 +offline/.test((await run("@pubsub server ls")).stdout), { withinMs: 15_000 });
    expect((await run("@pubsub server ls --topics")).stdout).toMatch(/s1 +unserved/);
    for (const topic of topics) expect((await run(`@pubsub client alice get ${topic}`)).stdout).toBe("1\n");
    expect((await run("@pubsub server ls")).stdout).toMatch(/^SERVER.*DATABASE\ns2 +serving +\S+ +4 +\w{8}\n$/);
    second.child.kill("SIGTERM");
    expect(await second.ended).toMatchObject({ code: 0 });
    expect((await run("@pubsub server ls --topics")).stdout).toMatch(/^SERVER[^]*s2 +offline[^]*a +s2 +offline/);
  });

  test("topics are moved, drained and handed off within a database, and to a folder and back on request", async () => {
    await using database = await PostgresServer.start();
    const store = { BATON_PUBSUB_SERVER_STORE: database.tcpUrl, BATON_ROOT: "/moving" };
    const start = async (words: string, serves = true) => {
      const running = session.start(`exec "$baton" pubsub ${words}`, { ...env(), ...store });
      await eventually(() => !serves || / serves | takes requests at /.test(running.stderr()), { withinMs: 30_000 });
      return running;
    };
    const first = await start("server --id s1 --migrate --hand-off");
    await start("proxy --listen ipc://$dir/moving");
    const topics = ["a", "b", "c", "d"];
    for (const topic of topics) {
      const script = `@pubsub client alice subscribe ${topic} && echo 1 | @pubsub client bob put ${topic} -`;
      expect(await run(script, store)).toMatchObject({ code: 0 });
    }
    await start("server --id s2");
    await start("server --id own --data-dir own");
    const owners = async () => {
      const { topics: listed } = JSON.parse((await run("@pubsub topic ls --json", store)).stdout);
      return listed.map(({ server }: { readonly server: string }) => server).join(" ");
    };
    expect(await run("@pubsub server move a --to s2", store)).toMatchObject({ code: 0 });
    expect(await owners()).toBe("s2 s1 s1 s1");
    expect(await run("@pubsub server rebalance", store)).toMatchObject({ code: 0 });
    expect((await owners()).split(" ").filter((owner: string) => owner === "s2").length).toBe(2);
    // Into another store, by name.
    const moved = await run("@pubsub server move b --to own && echo 2 | @pubsub client bob put b -", store);
    expect(moved).toMatchObject({ code: 0, stdout: expect.stringMatching(/b +\S+ +own +moved/) });
    expect((await owners()).split(" ")[1]).toBe("own");
    // Never without being asked to.
    expect((await run("@pubsub server rebalance", store)).stderr).toMatch(/nothing to move/);
    const alone = await run("@pubsub server drain own", store);
    const sentence =
      'Cannot drain server "own": no other server that takes topics has a data directory. To move its topics into ' +
      'another store: --to s1 (running: "s1", "s2")';
    expect([alone.code, alone.stderr]).toEqual([69, expect.stringContaining(sentence)]);
    expect(await run("@pubsub server drain own --to own", store)).toMatchObject({ code: 64 });
    expect(await run("@pubsub server drain own --to s9", store)).toMatchObject({ code: 69 });
    expect(await run("@pubsub server drain own --to s1 --undo", store)).toMatchObject({ code: 64 });
    expect(await run("@pubsub server drain own --to s1", store)).toMatchObject({ code: 0 });
    expect((await owners()).split(" ")[1]).toBe("s1");
    expect((await run("@pubsub client alice get b && @pubsub client alice get b", store)).stdout).toBe("1\n2\n");
    expect(await run("@pubsub server drain s2", store)).toMatchObject({ code: 0 });
    expect(await owners()).toBe("s1 s1 s1 s1");
    expect(await run("@pubsub server drain s2 --undo", store)).toMatchObject({ code: 0 });
    first.child.kill("SIGTERM");
    // It hands off what it has opened; the others own the rest with the next request.
    expect((await first.ended).stderr).toMatch(/"s1" has left; 0 topics stay/);
    for (const topic of ["a", "c", "d"]) {
      expect((await run(`@pubsub client alice get ${topic}`, store)).stdout).toBe("1\n");
    }
    expect(await run("echo 3 | @pubsub client bob put b - && @pubsub client alice get b", store)).toMatchObject({
      stdout: expect.stringMatching(/3\n$/),
    });
    expect(await owners()).toBe("s2 s2 s2 s2");
  });

  test("a database that lost confirmed commits is refused until an operator accepts the loss", async () => {
    await using old = await PostgresServer.start();
    const store = { BATON_PUBSUB_SERVER_STORE: old.tcpUrl, BATON_ROOT: "/older" };
    const start = (words: string) => session.start(`exec "$baton" pubsub ${words}`, { ...env(), ...store });
    const serves = async (running: Running) =>
      await eventually(() => / serves | takes requests at /.test(running.stderr()), {
        what: `a role to serve; it said ${running.stderr()}`,
        withinMs: 30_000,
      });
    let first = start("server --id s1 --migrate");
    const proxy = start("proxy --listen ipc://$dir/older");
    await Promise.all([first, proxy].map(serves));
    const put = (text: string) => run(`echo ${text} | @pubsub client bob put news -`, store);
    expect(await run("@pubsub client alice subscribe news", store)).toMatchObject({ code: 0 });
    expect(await put("kept")).toMatchObject({ code: 0 });
    first.child.kill("SIGTERM");
    await first.ended;
    await old.stop();
    await old.copyData();
    await old.resume();
    first = start("server --id s1");
    await serves(first);
    expect(await put("lost")).toMatchObject({ code: 0 });
    first.child.kill("SIGTERM"); // it records its generation when it ends
    await first.ended;
    await old.kill();
    await old.returnToCopy();
    // Another server refuses it as well.
    expect(await run("@pubsub server --id s2", store)).toMatchObject({
      code: 78,
      stderr: expect.stringMatching(/lacks commits of "s1" that it had confirmed.*restore --store URL --accept-loss/),
    });
    expect(await run("@pubsub server restore", store)).toMatchObject({ code: 64 });
    expect(await run("@pubsub server restore --accept-loss", store)).toMatchObject({
      code: 0,
      stdout: "restored news\n",
    });
    await serves(start("server --id s2"));
    expect(await put("new")).toMatchObject({ code: 0, stderr: expect.stringMatching(/has lost messages/) });
    const kept = await run("@pubsub client alice get news", store);
    expect(kept.stdout).toBe("kept\n");
    // The server that has found the loss is gone; the next one tells the subscriber, until it acknowledges.
    const sentence = 'a fail-over of the database has lost messages of topic "news" that were answered OK';
    const peeked = JSON.parse((await run("@pubsub client alice peek news --json", store)).stdout);
    expect(peeked).toMatchObject({ body: "new\n", missed: 0, loss: "certain" });
    expect(await run("@pubsub client alice get news", store)).toMatchObject({
      stdout: "new\n",
      stderr: expect.stringContaining(sentence),
    });
    expect(await put("newer")).toMatchObject({ stderr: "" }); // bob was told with the first put
    expect(await run("@pubsub client alice get news", store)).toMatchObject({ stdout: "newer\n", stderr: "" });
    const { findings } = JSON.parse((await run('"$baton" doctor --json', store)).stdout);
    expect(findings).toContainEqual({
      id: expect.any(String),
      severity: "warning",
      where: expect.stringMatching(/^postgres:/),
      what: expect.stringMatching(
        /^topic "news" has lost messages after message 1, in a fail-over of the database found at 20/,
      ),
      action: expect.any(String),
    });
  });

  test("doctor says what the database does not promise, and that it cannot be reached", async () => {
    const { findings } = JSON.parse((await run('"$baton" doctor --json')).stdout);
    expect(findings).toContainEqual({
      id: expect.any(String),
      severity: "warning",
      where: expect.stringMatching(/^postgres:/),
      what: "there is no standby: acknowledged messages are lost with the disk of the database",
      action: expect.any(String),
    });
    const gone = await run('"$baton" doctor', { BATON_PUBSUB_SERVER_STORE: "postgres://baton@127.0.0.1:9/postgres" });
    expect([gone.code, gone.stdout]).toEqual([
      1,
      expect.stringMatching(/problem +database-unreadable +postgres:\S+ +Cannot connect to the database/),
    ]);
  });
});
