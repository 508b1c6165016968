/**
 * Topics as source, target and dead letter of processors that share a queue in PostgreSQL, each on a machine of its
 * own.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync } from "node:fs";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";
import { written } from "../../support/retry_shell.ts";

setDefaultTimeout(90_000);

describeWithPeer("postgres", "processors of a queue in PostgreSQL", () => {
  let server: PostgresServer;
  let cluster: PubsubCluster;
  let session: BatonSession;
  beforeAll(async () => {
    [server, cluster] = await Promise.all([PostgresServer.start(), PubsubCluster.start()]);
    session = new BatonSession({ BATON_RETRY_STORE: server.tcpUrl, BATON_PUBSUB_PROXIES: cluster.proxy().endpoint });
    expect((await run("@retry run --migrate --exec true --until-empty")).code).toBe(0);
  });
  afterAll(async () => {
    await session?.[Symbol.asyncDispose]();
    await cluster?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  const run = (script: string) => session.run(written(script));
  const start = (script: string) => session.start(written(`exec ${script}`));
  const says = (running: Running, what: RegExp) =>
    eventually(() => what.test(running.stderr()), { what: `${what} in ${running.stderr()}`, withinMs: 20_000 });
  const numbers = (text: string) => text.trim().split("\n").map(Number).sort((a, b) => a - b);

  test("move each message of a topic once; one of them works at a time, also after a kill", async () => {
    const count = 300;
    expect((await run("@client reader subscribe out && @client writer subscribe in")).code).toBe(0);
    const words = "@retry run --from-topic in --topic out -j 8 --lease 2s --max-crashes 100 --interval 10ms";
    const temporary = session.path("tmp");
    mkdirSync(temporary);
    const first = session.start(written(`exec ${words}`), { TMPDIR: temporary });
    await says(first, /tries the messages/);
    const second = start(words);
    await says(second, /another processor of this store puts messages into topics; waiting until it ends/);
    expect((await run(`${words} --once`)).code).toBe(75);
    const subscribed = async () => JSON.parse((await run("@client writer info in --json")).stdout).subscribers === 2;
    await eventually(subscribed, { withinMs: 20_000, everyMs: 100 });
    const putting = run(`seq ${count} | @client writer put in --lines`);
    const done = () => server.sql("SELECT count(*) FROM baton.retry WHERE state = 2");
    await eventually(async () => Number(await done()) > 20, { withinMs: 20_000 });
    first.child.kill("SIGKILL");
    await first.ended;
    expect(readdirSync(temporary)).toEqual([]);
    // The time for which it keeps its roles and its messages in flight is over.
    await server.sql("UPDATE baton.retry_client SET role_end = 0; UPDATE baton.processor SET lease_end = 0");
    expect((await putting).code).toBe(0);
    await says(second, /tries the messages/);
    await eventually(
      async () => await server.sql("SELECT count(*), min(state), max(state) FROM baton.retry") === `${count}|2|2`,
      { withinMs: 40_000, everyMs: 100 },
    );
    second.child.kill("SIGTERM");
    expect((await second.ended).code).toBe(0);
    const read = await run("@client reader get out --until-empty --lines");
    expect(numbers(read.stdout)).toEqual(Array.from({ length: count }, (_, at) => at + 1));
    expect(await server.sql("SELECT max(role_end) FROM baton.retry_client")).toBe("0");
  });

  test("put each dead letter into a topic once", async () => {
    expect((await run("@client reader subscribe dead")).code).toBe(0);
    await run("seq 20 | @retry submit --name dying --lines");
    const words = "@retry run --name dying --exec 'exit 65' --dead-letter topic:dead --until-empty -j 4";
    const both = await Promise.all([run(words), run(words)]);
    expect(both.map(({ code }) => code)).toContain(0);
    await run(words);
    const letters = (await run("@client reader get dead --until-empty --lines")).stdout.trim().split("\n");
    const ids = letters.map((line) => JSON.parse(line).id);
    expect([ids.length, new Set(ids).size]).toEqual([20, 20]);
  });

  test("a processor that another one has replaced puts nothing more, and ends", async () => {
    expect((await run("@client writer subscribe target")).code).toBe(0);
    const running = start("@retry run --name fenced --create --topic target --interval 10ms");
    await says(running, /tries the messages/);
    await run("seq 1 | @retry submit --name fenced --lines");
    expect(await eventually(async () => (await run("@client writer get target")).stdout || null)).toBe("1\n".trim());
    // It was stopped for long, and the other one has put since.
    await server.sql("UPDATE baton.retry_client SET role_end = 0 WHERE client NOT LIKE '%.%'");
    const other = start("@retry run --name fenced --topic target --interval 10ms --from-topic target2");
    await says(other, /tries the messages/);
    await run("seq 2 40 | @retry submit --name fenced --lines");
    expect((await running.ended).code).toBe(84);
    const all = await eventually(async () => {
      const { states } = JSON.parse((await run("@retry stats --name fenced --json")).stdout);
      return states.done.count === 40 || null;
    }, { withinMs: 40_000 });
    expect(all).toBe(true);
    other.child.kill("SIGTERM");
    await other.ended;
    const read = await run("@client writer get target --until-empty --lines");
    expect(numbers(read.stdout)).toEqual(Array.from({ length: 39 }, (_, at) => at + 2));
  });
});
