/**
 * How long a topic in a shared database is not served after its server was killed: from the end of the server's session
 * in the coordination service to the first put that another server answers OK.
 */
import { once } from "node:events";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { PostgresServer } from "../../test/support/postgres_server.ts";
import { PubsubCluster } from "../../test/support/pubsub_cluster.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";

const backlogs = [0, 1_000_000];
const subscribers = 100;
const sessionTimeoutMs = 2000;

/** Returns a table with the median and the maximum of the take-overs for each backlog. */
export async function topicTakeover(rounds: number): Promise<string> {
  process.env["BATON_BINARY"] ??= join(import.meta.dirname, "../../dist/baton");
  await using database = await PostgresServer.start();
  await using cluster = await PubsubCluster.start({
    servers: 2,
    as: "processes",
    databaseUrl: database.url,
    serverWords: ["--migrate"],
    sessionTimeoutMs,
  });
  const rows = [["take-over", "after the session's end p50 ms", "max", "after the kill p50 ms", "max"]];
  for (const backlog of backlogs) {
    const topic = `backlog ${backlog}`;
    const client = cluster.client();
    for (let at = 0; at < subscribers; at++) {
      await client.say({ name: "SUBSCRIBE", sender: `reader ${at}`, topic, headers: {} });
    }
    await fill(cluster, topic, backlog);
    const afterSession: number[] = [];
    const afterKill: number[] = [];
    for (let round = 1; round <= rounds; round++) {
      const owner = (await cluster.owners()).get(topic) ?? "";
      const zk = await cluster.session();
      const ended = Promise.withResolvers<number>();
      await zk.exists(cluster.path.server(owner), { watch: () => ended.resolve(performance.now()) });
      const killedAt = performance.now();
      await cluster.server(owner).kill();
      const headers = { deadlineMs: 30_000 };
      await client.say({ name: "PUT", sender: "bob", topic, counter: round, headers, body: new Uint8Array(100) });
      const servedAt = performance.now();
      afterSession.push(servedAt - await ended.promise);
      afterKill.push(servedAt - killedAt);
      await cluster.server(owner).restart();
    }
    const session = summarizeMeasurements(afterSession);
    const kill = summarizeMeasurements(afterKill);
    rows.push([
      `${backlog} messages of 100 B, ${subscribers} subscribers`,
      ...[session.p50, session.max, kill.p50, kill.max].map(formatFigure),
    ]);
  }
  return `${
    alignedTable(rows)
  }\nthe session timeout is ${sessionTimeoutMs} ms; the keeper; the database on the same machine`;
}

async function fill(cluster: PubsubCluster, topic: string, messages: number): Promise<void> {
  if (messages === 0) return;
  const words = ["pubsub", "client", "filler", "put", topic, "--lines", "-", "--proxies", cluster.proxy().endpoint];
  const state = ["--state-dir", join(cluster.folder, "state")];
  const child = spawn(process.env["BATON_BINARY"] ?? "", [...words, ...state], {
    stdio: ["pipe", "ignore", "inherit"],
  });
  const line = `${"x".repeat(99)}\n`;
  const ended = once(child, "exit");
  for (let left = messages; left > 0; left -= 1000) {
    if (!child.stdin.write(line.repeat(Math.min(1000, left)))) await once(child.stdin, "drain");
  }
  child.stdin.end();
  const [code] = await ended;
  if (code !== 0) throw new Error(`putting ${messages} messages ended with ${code}`);
}
