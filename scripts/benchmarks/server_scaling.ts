/**
 * Benchmark: how the message rate on one PostgreSQL database grows with servers and topics, and how much processor time
 * is used. Everything runs on one machine, so its processors may be the limit.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { moveTopic } from "../../src/pubsub/admin/move_topics.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { postgresPrograms } from "../../test/support/pooler.ts";
import { PostgresServer } from "../../test/support/postgres_server.ts";
import { PubsubCluster } from "../../test/support/pubsub_cluster.ts";
import { processCpuMs } from "./pubsub_contestants.ts";
import { buildPeer, runPeer } from "./pubsub_speed.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";

/** The numbers of servers and topics; each topic has a publisher and a consumer. */
const settings = [[1, 1], [1, 2], [2, 2], [1, 6], [2, 6], [3, 6]] as const;
/** The loads. `outstanding` is the number of messages in flight over all topics. */
const loads = [
  { bodyBytes: 100, outstanding: 240 },
  { bodyBytes: 1024, outstanding: 240 },
  { bodyBytes: 100, outstanding: null }, // one of each topic
];
const measuredMs = 3000;
const moveMsMax = 30_000;

interface Outcome {
  readonly messagesPerSecond: number;
  readonly putP50Us: number;
  /** How many processors were busy on average. */
  readonly servers: number;
  readonly database: number;
  readonly proxies: number;
}

/** Returns a table for each load, with medians over the rounds. */
export async function serverScaling(rounds: number): Promise<string> {
  if (postgresPrograms() === null) return "MISSING PEER: PostgreSQL (Debian: postgresql; sh scripts/install_peers)";
  process.env["BATON_BINARY"] ??= join(import.meta.dirname, "../../dist/baton");
  const folder = mkdtempSync(join(tmpdir(), "baton-bench-servers-"));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const program = join(folder, "peer");
  const problem = buildPeer(program);
  if (problem !== null) return problem;
  await using database = await PostgresServer.start();
  await using cluster = await PubsubCluster.start({
    servers: 3,
    proxies: 3,
    as: "processes",
    databaseUrl: database.url,
    serverWords: ["--migrate", "--no-balance"],
  });
  const tables: string[] = [];
  for (const [place, { bodyBytes, outstanding }] of loads.entries()) {
    const outcomes = settings.map((): Outcome[] => []);
    for (let round = 0; round < rounds; round++) {
      for (const [index, [servers, count]] of settings.entries()) {
        const topics = Array.from({ length: count }, (_, at) => `load-${place}-${round}-${index}-${at}`);
        await placeTopics(cluster, topics, servers);
        const perTopic = outstanding === null ? 1 : outstanding / count;
        outcomes[index]?.push(await measured({ program, cluster, database }, topics, { bodyBytes, perTopic }));
      }
    }
    const inFlight = outstanding === null ? "one of each topic" : `${outstanding} in all`;
    const head = ["servers", "topics", "msg/s", "put p50 µs", "processors: servers", "database", "proxies"];
    const rows = settings.map(([servers, topics], index) => {
      const of = (figure: keyof Outcome) =>
        formatFigure(summarizeMeasurements((outcomes[index] ?? []).map((one) => one[figure])).p50);
      const figures = [of("messagesPerSecond"), of("putP50Us"), of("servers"), of("database"), of("proxies")];
      return [String(servers), String(topics), ...figures];
    });
    tables.push(`${bodyBytes} B, outstanding: ${inFlight}\n${alignedTable([head, ...rows])}`);
  }
  const where =
    `everything on one machine with ${availableParallelism()} processors, of which the load needs a part, too`;
  return `${tables.join("\n\n")}\n${where}`;
}

/** Creates the topics and spreads them over the first servers. */
async function placeTopics(cluster: PubsubCluster, topics: readonly string[], servers: number): Promise<void> {
  const zk = await cluster.session();
  const client = cluster.client();
  for (const [at, topic] of topics.entries()) {
    // The load counts messages from the first id on.
    await client.say({ name: "SUBSCRIBE", sender: "maker", topic, headers: {} });
    const { status } = await client.say({ name: "UNSUBSCRIBE", sender: "maker", topic, headers: {} });
    const move = { topic, to: `s${at % servers + 1}` };
    const { kind } = await moveTopic(zk, cluster.path, move, { clock: systemClock(), withinMs: moveMsMax });
    if (status !== "OK" || (kind !== "moved" && kind !== "there")) {
      throw new Error(`"${topic}" could not be placed at ${move.to}: ${status}, ${kind}`);
    }
  }
}

async function measured(
  { program, cluster, database }: {
    readonly program: string;
    readonly cluster: PubsubCluster;
    readonly database: PostgresServer;
  },
  topics: readonly string[],
  { bodyBytes, perTopic }: { readonly bodyBytes: number; readonly perTopic: number },
): Promise<Outcome> {
  const cpu = () => ({
    servers: [...cluster.servers.values()].reduce((sum, { pid }) => sum + processCpuMs(pid), 0),
    database: database.pids.reduce((sum, pid, at) => sum + processCpuMs(pid, { withEnded: at === 0 }), 0),
    proxies: [...cluster.proxies.values()].reduce((sum, { pid }) => sum + processCpuMs(pid), 0),
  });
  const before = cpu();
  const beganMs = performance.now();
  const results = await Promise.all(topics.map((topic, at) => {
    const port = cluster.proxy(`p${at % cluster.proxies.size + 1}`).endpoint.split(":").at(-1) ?? "";
    const numbers = [bodyBytes, perTopic, measuredMs].map(String);
    return runPeer([program], ["baton", "127.0.0.1", port, ...numbers, topic]);
  }));
  const after = cpu();
  const tookMs = performance.now() - beganMs;
  return {
    messagesPerSecond: results.reduce((sum, [rate = 0]) => sum + rate, 0),
    putP50Us: summarizeMeasurements(results.map(([, , , putP50Us = 0]) => putP50Us)).p50,
    servers: (after.servers - before.servers) / tookMs,
    database: (after.database - before.database) / tookMs,
    proxies: (after.proxies - before.proxies) / tookMs,
  };
}
