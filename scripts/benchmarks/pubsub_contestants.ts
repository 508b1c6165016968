/** Starts the contestants of the publish/subscribe benchmark, and tells how the C program reaches each. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../../test/support/eventually.ts";
import { freePorts } from "../../test/support/free_ports.ts";
import { postgresPrograms } from "../../test/support/pooler.ts";
import { PostgresServer } from "../../test/support/postgres_server.ts";
import { PubsubCluster } from "../../test/support/pubsub_cluster.ts";
import { ServerProcess } from "../../test/support/server_process.ts";
import { tryPeer } from "./peers.ts";
import { hasRabbitmq, startRabbitmq } from "./rabbitmq_server.ts";

export interface PubsubContestant extends AsyncDisposable {
  /** Name and version, as the tables show it. */
  readonly name: string;
  /** The first argument of the program that puts and gets, and the port on loopback. */
  readonly kind: "baton" | "baton-batches" | "redis" | "ioredis" | "nats" | "rabbitmq" | "amqplib";
  readonly port: number;
  /** The program that puts and gets, if it is not the one in C. */
  readonly command?: readonly string[];
  /** The process that flushes to the disk. */
  readonly pid: number;
}

const root = join(import.meta.dirname, "../..");

/** Starts the contestants that are installed, with their data in the folder. Names missing ones on stderr. */
export async function pubsubContestants(folder: string): Promise<PubsubContestant[]> {
  process.env["BATON_BINARY"] ??= join(root, "dist/baton");
  const found: PubsubContestant[] = await batonContestants();
  const add = async (peer: string, start: () => Promise<PubsubContestant>) => {
    const contestant = await tryPeer(peer, "its start", start);
    if (contestant !== null) found.push(contestant);
  };
  const redis = versionOf("redis-server", "--version");
  if (redis === null) missing("Redis (Debian: redis-server; sh scripts/install_peers --bench)");
  else await add("Redis", () => redisContestant(folder, redis));
  const nats = versionOf("nats-server", "--version");
  if (nats === null) missing("NATS (Debian: nats-server; sh scripts/install_peers --bench)");
  else await add("NATS", () => natsContestant(folder, nats));
  if (!hasRabbitmq()) missing("RabbitMQ (Debian: rabbitmq-server; sh scripts/install_peers --bench)");
  else await add("RabbitMQ", () => rabbitmqContestant(folder));
  return found;
}

function missing(what: string): void {
  console.error(`MISSING PEER: ${what}`);
}

/** Returns the version of a program, or null if it is not installed. */
function versionOf(program: string, word: string): string | null {
  const run = spawnSync(program, [word], { encoding: "utf8", timeout: 20_000 });
  return run.error === undefined ? /\d+\.\d+(\.\d+)?/.exec(run.stdout + run.stderr)?.[0] ?? "?" : null;
}

/**
 * Returns one service, used in two ways: with one request per message, and with batches as baton's own client makes
 * them.
 */
async function batonContestants(): Promise<PubsubContestant[]> {
  const cluster = await PubsubCluster.start({ as: "processes" });
  const port = Number(cluster.proxy().endpoint.split(":").at(-1));
  const version = versionOf(process.env["BATON_BINARY"] ?? "", "--version") ?? "?";
  const { pid } = cluster.server("s1");
  const name = `baton ${version}, through a proxy`;
  return [
    { name, kind: "baton", port, pid, [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose]() },
    { name: `${name}, in batches`, kind: "baton-batches", port, pid, [Symbol.asyncDispose]: () => Promise.resolve() },
  ];
}

/**
 * Starts one service for each kind of store: files, a database, and a database whose commits wait for a standby on the
 * same disk.
 */
export async function storeContestants(): Promise<PubsubContestant[]> {
  process.env["BATON_BINARY"] ??= join(root, "dist/baton");
  const files = (await batonContestants()).map((one, index) => index === 0 ? { ...one, name: "SQLite" } : one);
  if (postgresPrograms() === null) {
    missing("PostgreSQL (Debian: postgresql; sh scripts/install_peers)");
    return files.slice(0, 1);
  }
  return [
    ...files.slice(0, 1),
    await databaseContestant("PostgreSQL", { hasStandby: false }),
    await databaseContestant("PostgreSQL, synchronous", { hasStandby: true }),
  ];
}

async function databaseContestant(
  name: string,
  { hasStandby }: { readonly hasStandby: boolean },
): Promise<PubsubContestant> {
  const database = await PostgresServer.start();
  const standby = hasStandby ? await database.standby({ isSynchronous: true }) : null;
  const cluster = await PubsubCluster.start({
    as: "processes",
    databaseUrl: database.url,
    serverWords: ["--migrate"],
  });
  return {
    name,
    kind: "baton",
    pid: cluster.server("s1").pid,
    port: Number(cluster.proxy().endpoint.split(":").at(-1)),
    async [Symbol.asyncDispose]() {
      await cluster[Symbol.asyncDispose]();
      await standby?.[Symbol.asyncDispose]();
      await database[Symbol.asyncDispose]();
    },
  };
}

/**
 * Starts Redis as Debian has it, except that each write is flushed before it is answered, and that it takes no
 * snapshots.
 */
async function redisContestant(folder: string, version: string): Promise<PubsubContestant> {
  const [port = 0] = await freePorts(1);
  const dir = madeFolder(folder, "redis");
  const words = ["--bind", "127.0.0.1", "--port", String(port), "--appendonly", "yes", "--appendfsync", "always"];
  const server = new ServerProcess(["redis-server", ...words, "--save", "", "--dir", dir], { folder: dir });
  await serves(server, /Ready to accept connections/, "Redis");
  return contestantOf(server, { name: `Redis ${version} stream, appendfsync always`, kind: "redis", port });
}

/** Starts NATS as it is installed: it answers before a message is on the disk. */
async function natsContestant(folder: string, version: string): Promise<PubsubContestant> {
  const [port = 0] = await freePorts(1);
  const dir = madeFolder(folder, "nats");
  const server = new ServerProcess(["nats-server", "-a", "127.0.0.1", "-p", String(port), "-js", "-sd", dir], {
    folder: dir,
  });
  await serves(server, /Server is ready/, "NATS");
  return contestantOf(server, { name: `NATS ${version} JetStream, not flushed`, kind: "nats", port });
}

/**
 * Starts RabbitMQ with a durable queue, persistent messages and publisher confirms: a message is on the disk before it
 * is confirmed.
 */
async function rabbitmqContestant(folder: string): Promise<PubsubContestant> {
  const server = await startRabbitmq(madeFolder(folder, "rabbitmq"));
  const { version, port, pid, process } = server;
  const name = `RabbitMQ ${version} durable, confirms`;
  return { name, kind: "rabbitmq", port, pid, [Symbol.asyncDispose]: () => process.kill() };
}

function contestantOf(
  server: ServerProcess,
  what: Pick<PubsubContestant, "name" | "kind" | "port">,
): PubsubContestant {
  return { ...what, pid: server.pid, [Symbol.asyncDispose]: () => server.kill() };
}

async function serves(server: ServerProcess, says: RegExp, name: string): Promise<void> {
  await eventually(() => says.test(server.output) || !server.alive, { withinMs: 20_000, what: `${name} to serve` });
  if (!server.alive) throw new Error(`${name} ended at its start: ${server.output}`);
}

function madeFolder(folder: string, name: string): string {
  const path = join(folder, name);
  mkdirSync(path);
  return path;
}

/**
 * Returns the processor time of all threads of a process, in milliseconds; 0 if it has ended. `withEnded` includes its
 * children that have ended.
 */
export function processCpuMs(pid: number, { withEnded = false } = {}): number {
  let words: string[];
  try {
    words = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
  } catch {
    return 0;
  }
  return words.slice(11, withEnded ? 15 : 13).reduce((sum, word) => sum + Number(word) * 10, 0);
}
