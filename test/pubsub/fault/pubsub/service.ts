/**
 * Servers and proxies as processes, each behind a bad network of its own: one to who asks it (ZmtpRelay), one to the
 * coordination service (ChaosProxy). Owns the processes, the networks and the data; not the coordination service.
 */
import { isAlive } from "../../../support/is_alive.ts";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { PubsubPath } from "../../../../src/pubsub/ownership/pubsub_path.ts";
import { errorMessage } from "../../../../src/base/errors.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { rejectOnAbort } from "../../../../src/base/support/abort.ts";
import { deadlineAfter, sleep } from "../../../../src/base/support/deadline.ts";
import type { RunningBackend } from "../../../support/backends.ts";
import { bytesBelow } from "../../../support/bytes_below.ts";
import { ChaosProxy } from "../../../support/chaos_proxy.ts";
import type { DatabaseWay, PostgresPair } from "../../../support/postgres_pair.ts";
import { ProcessNode } from "../../../support/pubsub_nodes.ts";
import { StorageFaults } from "../../../support/storage_faults/storage_faults.ts";
import type { Sample } from "./history.ts";
import { ZmtpRelay } from "./zmtp_relay.ts";

/** A role may need long to come back while others are away. */
const reviveMsMax = 120_000;
const stopMsMax = 40_000;

export interface ServiceOptions {
  readonly folder: string;
  readonly backend: RunningBackend;
  readonly random: () => number;
  readonly sessionTimeoutMs: number;
  readonly servers: number;
  readonly proxies: number;
  /** Servers' disks can forget, fill up and err. */
  readonly hasStorageFaults: boolean;
  /** Servers have their topics there; null: each has a data directory. */
  readonly database: PostgresPair | null;
  /** The first server has a data directory, whatever the others have. */
  readonly isMixed: boolean;
  /** More for `baton pubsub server`. */
  readonly serverWords: readonly string[];
}

/** One server or proxy. */
export class Role {
  readonly id: string;
  readonly kind: "server" | "proxy";
  readonly relay: ZmtpRelay;
  /** Its ways to the coordination service. */
  readonly coordination: readonly ChaosProxy[];
  readonly node: ProcessNode;
  /** Null for a proxy, and for a server whose topics are in a database. */
  readonly dataDir: string | null;
  /** The connections of such a server to the database. */
  readonly way: DatabaseWay | null;
  /** What is below its data directory; null where that is an ordinary disk. */
  readonly storage: StorageFaults | null;
  /** It was told to be away. */
  isAway = false;

  constructor(
    { id, kind, relay, coordination, node, dataDir, way, storage }:
      & Pick<Role, "id" | "kind" | "relay" | "coordination">
      & Pick<Role, "node" | "dataDir" | "way" | "storage">,
  ) {
    this.id = id;
    this.kind = kind;
    this.relay = relay;
    this.coordination = coordination;
    this.node = node;
    this.dataDir = dataDir;
    this.way = way;
    this.storage = storage;
  }

  get isRunning(): boolean {
    return isRunning(this.node.pid);
  }

  /** Null: it runs. Otherwise what it said last: nobody has told it to end. */
  get lastWords(): string | null {
    return this.isAway || this.isRunning ? null : this.node.output;
  }

  async kill(): Promise<void> {
    this.isAway = true;
    await this.node.kill();
  }

  /** SIGTERM. Throws when it has not ended in time: --drain-timeout is 10 s. */
  async stop(): Promise<void> {
    this.isAway = true;
    const late = () => new Error(`${this.id} has not ended within ${stopMsMax} ms of SIGTERM: ${this.node.output}`);
    const deadline = deadlineAfter(systemClock(), stopMsMax, { reason: late });
    await rejectOnAbort(this.node.stop(), deadline.signal).finally(() => deadline.cancel());
  }

  /** Tries until it serves: the coordination service may be away, too. */
  async revive(): Promise<void> {
    this.isAway = true;
    const endMs = systemClock().now() + reviveMsMax;
    for (;;) {
      try {
        await this.node.restart();
        break;
      } catch (thrown) {
        if (systemClock().now() > endMs) throw new Error(`${this.id} does not come back: ${errorMessage(thrown)}`);
        await sleep(systemClock(), againMs);
      }
    }
    this.isAway = false;
  }

  heal(): void {
    this.relay.heal();
    for (const proxy of this.coordination) proxy.heal();
    for (const cutter of this.way?.cutters ?? []) {
      cutter.disarm();
      cutter.release();
    }
  }

  sample(when: Sample["when"]): Sample {
    const rssPages = Number(readFileSync(`/proc/${this.node.pid}/statm`, "utf8").split(" ")[1]);
    return {
      of: this.id,
      when,
      rssBytes: rssPages * 4096,
      descriptors: readdirSync(`/proc/${this.node.pid}/fd`).length,
      ...(this.dataDir === null ? {} : { diskBytes: bytesBelow(this.dataDir) }),
    };
  }
}

const againMs = 200;

export class Service implements AsyncDisposable {
  readonly path: PubsubPath;
  readonly servers: readonly Role[];
  readonly proxies: readonly Role[];

  static async start(options: ServiceOptions): Promise<Service> {
    const root = "/faults";
    const names = (letter: string, count: number) => Array.from({ length: count }, (_, at) => `${letter}${at + 1}`);
    const make = (kind: Role["kind"]) => (id: string) => makeRole(id, kind, root, options);
    const servers = await Promise.all(names("s", options.servers).map(make("server")));
    const proxies = await Promise.all(names("p", options.proxies).map(make("proxy")));
    const service = new Service(new PubsubPath(root), servers, proxies);
    try {
      await Promise.all(service.roles.map((role) => role.revive()));
      return service;
    } catch (thrown) {
      await service[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  private constructor(path: PubsubPath, servers: readonly Role[], proxies: readonly Role[]) {
    this.path = path;
    this.servers = servers;
    this.proxies = proxies;
  }

  get roles(): readonly Role[] {
    return [...this.servers, ...this.proxies];
  }

  /** As clients are told them. */
  get endpoints(): string[] {
    return this.proxies.map(({ relay }) => relay.endpoint);
  }

  heal(): void {
    for (const role of this.roles) {
      role.heal();
      role.node.resume();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.roles.map((role) => role.kill()));
    for (const { storage } of this.roles) storage?.[Symbol.dispose]();
    await Promise.all(
      this.roles.flatMap(({ relay, coordination }) => [relay.close(), ...coordination.map((p) => p.close())]),
    );
  }
}

async function makeRole(id: string, kind: Role["kind"], root: string, options: ServiceOptions): Promise<Role> {
  const { folder, backend, random, sessionTimeoutMs, database } = options;
  const port = await quietPort();
  const relay = await ZmtpRelay.start(port, random);
  const coordination = await Promise.all(backend.nodes.map(({ address }) => ChaosProxy.start(address)));
  const place = join(folder, id);
  mkdirSync(place);
  const hasFolder = database === null || (options.isMixed && id === "s1");
  const way = kind === "server" && !hasFolder ? await database.way() : null;
  const dataDir = kind === "server" && way === null ? join(folder, "data", id) : null;
  if (dataDir !== null) mkdirSync(dataDir, { recursive: true });
  const storage = dataDir !== null && options.hasStorageFaults ? new StorageFaults(dataDir) : null;
  const words = [
    ...[kind, "--id", id, "--listen", `tcp://127.0.0.1:${port}`, "--advertise", relay.endpoint],
    ...(dataDir === null ? [] : ["--data-dir", dataDir]),
    ...(way === null ? [] : ["--store", way.url]),
    ...(kind === "server" ? options.serverWords : []),
  ];
  const around = {
    folder: place,
    path: new PubsubPath(root),
    connect: () => Promise.reject(new Error("a process makes its own session")),
    onProblem: () => {},
    words: [
      ...["--servers", coordination.map(({ servers }) => servers).join(",")],
      ...["--root", root, "--session-timeout", `${sessionTimeoutMs}ms`],
    ],
    ...(storage === null ? {} : { env: storage.env }),
  };
  const says = kind === "server" ? / serves \S+ at (\S+),/ : / takes requests at (\S+),/;
  const node = new ProcessNode(id, around, { words, says });
  return new Role({ id, kind, relay, coordination, node, dataDir, way, storage });
}

/** A free port that nobody is given who asks for any: it has to be free again after each kill. */
async function quietPort(): Promise<number> {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 18_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

function isRunning(pid: number): boolean {
  return pid > 0 && isAlive(pid);
}
