/**
 * Real Apache ZooKeeper, one node or an ensemble, of Debian's or a current release, on free ports of 127.0.0.1 and a
 * folder of its own.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { Address } from "../../src/base/sockets/connection.ts";
import { type BackendOptions, type RunningBackend, runningBackend, type ServerNode } from "./backend.ts";
import { eventually } from "./eventually.ts";
import { fourLetterWord } from "./four_letter_word.ts";
import { freePorts } from "./free_ports.ts";
import { zooKeeperJars } from "./peers.ts";
import { ProcessNode } from "./process_node.ts";
import { ServerProcess } from "./server_process.ts";

/** A port may be taken between the moment it was found free and the moment the server binds it. */
const startTriesMax = 3;
const startMsMax = 30_000;

/** Starts sooner and takes less, and is slower in the long run than what a JVM does by itself. */
const smallJvm = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"];

/** Starts `count` servers and waits until they form a quorum and serve. */
export async function startZooKeeper(count: number, options: BackendOptions = {}): Promise<RunningBackend> {
  for (let tries = 1;; tries++) {
    const folder = mkdtempSync(join(tmpdir(), "baton-zookeeper-"));
    const nodes = await makeNodes(folder, count, options);
    const close = async () => {
      await Promise.all(nodes.map((node) => node.kill()));
      rmSync(folder, { recursive: true, force: true });
    };
    try {
      await Promise.all(nodes.map((node) => node.restart()));
    } catch (error) {
      await close();
      // Most likely somebody took a port; without a logger the server does not say why it ended.
      if (tries === startTriesMax || !/ended at its start/.test(String(error))) throw error;
      continue;
    }
    return runningBackend(nodes, {
      servers: nodes.map(({ address }) => `${address.host}:${address.port}`).join(","),
      leader: () => findLeader(nodes),
      close,
    });
  }
}

/** The node that serves alone or leads; waits for an election to end. */
function findLeader(nodes: readonly ZooKeeperNode[]): Promise<ServerNode> {
  return eventually(async () => {
    const leads = await Promise.all(nodes.map((node) => node.leads()));
    return nodes[leads.indexOf(true)];
  }, { withinMs: startMsMax, what: "a server that leads", everyMs: 50 });
}

async function makeNodes(folder: string, count: number, options: BackendOptions): Promise<ZooKeeperNode[]> {
  const ports = await freePorts(count * 3);
  const members = Array.from({ length: count }, (_, index) => {
    const [client = 0, quorum = 0, election = 0] = ports.slice(index * 3);
    return { client, quorum, election };
  });
  return await Promise.all(members.map(async ({ client }, index) => {
    const home = join(folder, String(index + 1));
    mkdirSync(home);
    writeFileSync(join(home, "myid"), `${index + 1}\n`);
    const ensemble = count === 1 ? [] : await ensembleLines(members, index, options);
    writeFileSync(join(home, "zoo.cfg"), [...configLines(home, client, options), ...ensemble, ""].join("\n"));
    return new ZooKeeperNode(home, client, { ...options, folder });
  }));
}

/** The ensemble as server `from` sees it. */
function ensembleLines(
  members: readonly { quorum: number; election: number }[],
  from: number,
  { portBetween = (_from, _to, port) => Promise.resolve(port) }: BackendOptions,
): Promise<string[]> {
  return Promise.all(members.map(async ({ quorum, election }, to) => {
    const ports = to === from
      ? [quorum, election]
      : [await portBetween(from, to, quorum), await portBetween(from, to, election)];
    return `server.${to + 1}=127.0.0.1:${ports.join(":")}`;
  }));
}

function configLines(home: string, port: number, options: BackendOptions): string[] {
  return [
    `tickTime=${options.tickTimeMs ?? 500}`,
    "initLimit=20",
    `syncLimit=${options.syncLimit ?? 4}`,
    `minSessionTimeout=${options.sessionTimeoutMinMs ?? 1000}`,
    `maxSessionTimeout=${options.sessionTimeoutMaxMs ?? 60_000}`,
    "maxClientCnxns=0",
    `dataDir=${home}`,
    "clientPortAddress=127.0.0.1",
    `clientPort=${port}`,
    "4lw.commands.whitelist=*",
    "admin.enableServer=false",
    "extendedTypesEnabled=true",
    ...options.configLines ?? [],
  ];
}

class ZooKeeperNode extends ProcessNode {
  override readonly address: Address & { kind: "tcp" };
  readonly #home: string;
  readonly #options: BackendOptions & { readonly folder: string };

  constructor(home: string, port: number, options: BackendOptions & { readonly folder: string }) {
    super();
    this.#home = home;
    this.#options = options;
    this.address = { kind: "tcp", host: "127.0.0.1", port };
  }

  override async restart(): Promise<void> {
    await this.kill();
    const server = this.process = new ServerProcess(this.#command(), {
      folder: this.#options.folder,
      env: { ...process.env, ...this.#options.env } as Record<string, string>,
    });
    const serves = eventually(async () => !server.alive || await this.mode() !== null, {
      withinMs: startMsMax,
      what: `ZooKeeper at port ${this.address.port} to serve`,
      everyMs: 20,
    });
    await serves;
    if (!server.alive) throw new Error(`ZooKeeper at port ${this.address.port} ended at its start: ${server.output}`);
  }

  async leads(): Promise<boolean> {
    const mode = await this.mode();
    return mode === "leader" || mode === "standalone";
  }

  /** What `srvr` says: standalone, leader, follower; null while it does not serve. */
  async mode(): Promise<string | null> {
    if (this.process?.alive !== true) return null;
    const [state, configuration] = await Promise.all([this.#ask("srvr"), this.#ask("conf")]);
    // Another server that has the port answers as well, until this one finds it taken and ends.
    if (!configuration.includes(`dataDir=${this.#home}/`)) return null;
    return /^Mode: (\w+)/m.exec(state)?.[1] ?? null;
  }

  #ask(word: string): Promise<string> {
    return fourLetterWord(this.address, word, 500).catch(() => "");
  }

  #command(): string[] {
    const { containerCheckMs, superDigest } = this.#options;
    const properties = {
      "zookeeper.preAllocSize": "1024", // KiB; the default makes a log of 64 MiB per server
      "zookeeper.forceSync": "no", // kill -9 loses nothing that the kernel has
      ...(containerCheckMs === undefined ? {} : { "znode.container.checkIntervalMs": String(containerCheckMs) }),
      ...(superDigest === undefined ? {} : { "zookeeper.DigestAuthenticationProvider.superDigest": superDigest }),
      ...this.#options.javaProperties,
    };
    return [
      "java",
      ...this.#options.jvm ?? smallJvm,
      ...Object.entries(properties).map(([name, value]) => `-D${name}=${value}`),
      "-cp",
      zooKeeperJars(this.#options.release ?? "debian").join(delimiter),
      "org.apache.zookeeper.server.quorum.QuorumPeerMain",
      join(this.#home, "zoo.cfg"),
    ];
  }
}
