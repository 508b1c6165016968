/** Starts every installed peer on loopback with its own data, and names missing ones. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectToZooKeeper } from "../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../src/protocols/zookeeper/hosts.ts";
import { electionPath } from "../../src/coordination/nodes/node_paths.ts";
import { eventually } from "../../test/support/eventually.ts";
import { freePorts } from "../../test/support/free_ports.ts";
import { startZooKeeper } from "../../test/support/zookeeper_server.ts";
import { tryPeer } from "./peers.ts";
import type { LockContestant, RunningContestants } from "./contestant.ts";

const root = join(import.meta.dirname, "../..");
const baton = join(root, "dist/baton");
/** How long a peer's short command may take, and a server to end, in milliseconds. */
const answerMsMax = 20_000;
/** Debian's Python, which has Debian's packages; PATH may name another one first. */
const python = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";

/** Starts all contestants that are installed, or none unless `wanted`. Names missing ones on stderr. */
export async function startContestants(wanted: boolean): Promise<RunningContestants> {
  await using stack = new AsyncDisposableStack();
  if (!wanted) return { contestants: [], [Symbol.asyncDispose]: async () => {} };
  const folder = mkdtempSync(join(tmpdir(), "baton-bench-"));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const contestants: LockContestant[] = [];
  contestants.push(keeperContestant(folder, stack));
  if (existsSync("/usr/share/java/zookeeper.jar")) {
    contestants.push(...await tryPeer("ZooKeeper", "its start", () => zooKeeperContestants(stack)) ?? []);
  } else missing("Apache ZooKeeper (Debian: zookeeper)");
  if (version(["etcdctl", "version"]) !== null && version(["etcd", "--version"]) !== null) {
    const etcd = await tryPeer("etcd", "its start", () => etcdContestant(folder, stack));
    if (etcd !== null) contestants.push(etcd);
  } else missing("etcd (Debian: etcd-server etcd-client)");
  if (version(["flock", "--version"]) !== null) contestants.push(flockContestant(folder));
  else missing("flock (Debian: util-linux)");
  const owned = stack.move();
  return { contestants, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

function missing(what: string): void {
  console.error(`MISSING PEER: ${what}`);
}

function version(command: [string, ...string[]]): string | null {
  const run = spawnSync(command[0], command.slice(1), { encoding: "utf8", timeout: answerMsMax });
  if (run.error !== undefined || run.status !== 0) return null;
  return /\d+\.\d+(\.\d+)?/.exec(run.stdout)?.[0] ?? "?";
}

const batonVersion = () => version([baton, "--version"]) ?? "?";

async function batonQueued(environment: Record<string, string>, lock: string): Promise<number> {
  const run = Bun.spawn([baton, "who", lock, "--json"], {
    env: { ...process.env, ...environment },
    stderr: "ignore",
    timeout: answerMsMax,
  });
  const text = await new Response(run.stdout).text();
  if (text.trim() === "") return 0;
  const status = JSON.parse(text) as { holders: unknown[]; waiters: unknown[] };
  return status.holders.length + status.waiters.length;
}

async function candidatesOf(servers: string, election: string): Promise<number> {
  await using zk = await connectToZooKeeper({ servers: parseZooKeeperServers(servers) });
  const path = electionPath(election);
  const nodes = await Promise.all([zk.exists(path.queue), zk.exists(path.holders)]);
  return nodes.reduce((sum, node) => sum + (node?.numChildren ?? 0), 0);
}

function batonContestant(name: string, environment: Record<string, string>, servers: string): LockContestant {
  const program = join(import.meta.dirname, "baton_cycles.ts");
  const meetingProgram = join(import.meta.dirname, "baton_meetings.ts");
  return {
    name: `baton ${batonVersion()} on ${name}`,
    command: (lock, child) => [baton, "lock", "-q", lock, "--", ...child],
    environment,
    queued: (lock) => batonQueued(environment, lock),
    election: {
      name: `baton elect ${batonVersion()} on ${name}`,
      command: (election) => [
        baton,
        "elect",
        "-q",
        election,
        "--value",
        "127.0.0.1:1",
        "--",
        "sh",
        "-c",
        "echo leads; exec sleep 600",
      ],
      resignSignal: "SIGTERM",
      candidates: (election) => candidatesOf(servers, election),
    },
    cycles: {
      sessionsMax: 1000,
      command: (lock, sessions, cycles) => ["bun", program, servers, lock, String(sessions), String(cycles)],
    },
    meetings: (barrier, parties, count) => ["bun", meetingProgram, servers, barrier, String(parties), String(count)],
  };
}

function keeperContestant(folder: string, stack: AsyncDisposableStack): LockContestant {
  const environment = { BATON_KEEPER_DIR: join(folder, "keeper") };
  stack.defer(() => {
    spawnSync("pkill", ["-f", environment.BATON_KEEPER_DIR]);
  });
  // The first command starts the keeper, because programs that use the library expect it to run.
  spawnSync(baton, ["lock", "-q", "first", "--", "true"], {
    env: { ...process.env, ...environment },
    timeout: answerMsMax,
  });
  return batonContestant("its keeper", environment, `unix:${join(environment.BATON_KEEPER_DIR, "keeper.sock")}`);
}

async function zooKeeperContestants(stack: AsyncDisposableStack): Promise<LockContestant[]> {
  // As installed: a write is on the disk before it is answered, as with the other servers.
  const server = await startZooKeeper(1, { javaProperties: { "zookeeper.forceSync": "yes" } });
  stack.defer(() => server.close());
  const found = [batonContestant("ZooKeeper", { BATON_SERVERS: server.servers }, server.servers)];
  const kazoo = version([python, "-c", "import kazoo.version as v; print(v.__version__)"]);
  if (kazoo === null) {
    missing("kazoo (Debian: python3-kazoo)");
    return found;
  }
  const client = await connectToZooKeeper({ servers: parseZooKeeperServers(server.servers) });
  stack.use(client);
  return [...found, {
    name: `kazoo ${kazoo} on ZooKeeper`,
    command: (
      lock,
      child,
    ) => [python, join(import.meta.dirname, "kazoo_lock.py"), server.servers, `/kazoo-${lock}`, ...child],
    environment: {},
    queued: async (lock) => (await client.exists(`/kazoo-${lock}`))?.numChildren ?? 0,
    cycles: {
      sessionsMax: 50,
      command: (lock, sessions, cycles) => {
        const words = [server.servers, `/kazoo-${lock}`, String(sessions), String(cycles)];
        return [python, join(import.meta.dirname, "kazoo_cycles.py"), ...words];
      },
    },
    meetings: (barrier, parties, count) => {
      const words = [server.servers, `/kazoo-${barrier}`, String(parties), String(count)];
      return [python, join(import.meta.dirname, "kazoo_meetings.py"), ...words];
    },
  }];
}

async function etcdContestant(folder: string, stack: AsyncDisposableStack): Promise<LockContestant> {
  const [clientPort, peerPort] = await freePorts(2);
  const endpoint = `http://127.0.0.1:${clientPort}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  const server = Bun.spawn([
    "etcd",
    "--data-dir",
    join(folder, "etcd"),
    "--listen-client-urls",
    endpoint,
    "--advertise-client-urls",
    endpoint,
    "--listen-peer-urls",
    peer,
    "--initial-advertise-peer-urls",
    peer,
    "--initial-cluster",
    `default=${peer}`,
  ], { stdout: "ignore", stderr: "ignore" });
  stack.defer(async () => {
    server.kill();
    await Promise.race([server.exited, Bun.sleep(answerMsMax)]);
    server.kill("SIGKILL");
  });
  const environment = { ETCDCTL_API: "3", ETCDCTL_ENDPOINTS: endpoint };
  const etcdctl = (...words: string[]) =>
    spawnSync("etcdctl", words, {
      env: { ...process.env, ...environment },
      encoding: "utf8",
      timeout: answerMsMax,
    });
  await eventually(() => etcdctl("endpoint", "health").status === 0, { withinMs: 20_000, what: "etcd to answer" });
  const keysBelow = (prefix: string) =>
    etcdctl("get", `${prefix}/`, "--prefix", "--keys-only").stdout.split("\n").filter((line) => line !== "").length;
  return {
    name: `etcdctl lock ${version(["etcdctl", "version"])}`,
    command: (lock, child) => ["etcdctl", "lock", lock, "--", ...child],
    environment,
    queued: (lock) => Promise.resolve(keysBelow(lock)),
    election: {
      name: `etcdctl elect ${version(["etcdctl", "version"])}`,
      command: (election) => ["etcdctl", "elect", election, "127.0.0.1:1"],
      resignSignal: "SIGINT",
      candidates: (election) => Promise.resolve(keysBelow(election)),
    },
  };
}

function flockContestant(folder: string): LockContestant {
  const file = (lock: string) => {
    const path = join(folder, `${lock}.flock`);
    if (!existsSync(path)) writeFileSync(path, "");
    return path;
  };
  return {
    name: `flock ${version(["flock", "--version"])}`,
    command: (lock, child) => ["flock", file(lock), ...child],
    environment: {},
    queued: (lock) => {
      const inode = `:${statSync(file(lock)).ino} `;
      return Promise.resolve(
        readFileSync("/proc/locks", "latin1").split("\n").filter((line) => line.includes(inode)).length,
      );
    },
  };
}
