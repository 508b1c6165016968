/** What a test knows of a running coordination server, whichever it is. */
import type { Address } from "../../src/base/sockets/connection.ts";
import type { PeerName, ZooKeeperRelease } from "./peers.ts";

/** One server process. */
export interface ServerNode {
  readonly address: Address;
  readonly pid: number;
  /** What it said last, if it ended without having been killed; null otherwise. */
  readonly lastWords: string | null;
  /** SIGSTOP */
  pause(): void;
  /** SIGCONT */
  resume(): void;
  /** SIGKILL; its data stays. */
  kill(): Promise<void>;
  /** SIGKILL if it still runs, then starts it again on the same data and address, and waits until it serves. */
  restart(): Promise<void>;
}

export interface RunningBackend {
  /** As for `--servers`. */
  readonly servers: string;
  readonly nodes: readonly ServerNode[];
  /** The node that leads; of one node, that node. */
  leader(): Promise<ServerNode>;
  /** Every node at once. */
  pause(): void;
  resume(): void;
  kill(): Promise<void>;
  restart(): Promise<void>;
  /** Kills what runs and removes the data. */
  close(): Promise<void>;
}

export interface BackendOptions {
  /** Milliseconds; 500 when left out. Session timeouts are rounded up to it. */
  readonly tickTimeMs?: number;
  /** Ticks a follower may lag behind its leader; 4 when left out. */
  readonly syncLimit?: number;
  /** Milliseconds; 1,000 and 60,000 when left out. */
  readonly sessionTimeoutMinMs?: number;
  readonly sessionTimeoutMaxMs?: number;
  /** How often empty containers are looked for, in milliseconds; the server's own 60,000 when left out. */
  readonly containerCheckMs?: number;
  /** The scheme `super` is open to this digest id ("super:base64(sha1(…))"). */
  readonly superDigest?: string;
  /**
   * The port at which server `from` is to reach `port` of server `to`, both counted from 0; ZooKeeper ensembles only.
   */
  readonly portBetween?: (from: number, to: number, port: number) => Promise<number>;
  /** Release of ZooKeeper; Debian's when left out. */
  readonly release?: ZooKeeperRelease;
  /** More lines for zoo.cfg; ZooKeeper only. */
  readonly configLines?: readonly string[];
  /** More system properties for its JVM; ZooKeeper only. */
  readonly javaProperties?: Readonly<Record<string, string>>;
  /** Added to the environment of the server processes. */
  readonly env?: Readonly<Record<string, string>>;
  /** Options of its JVM instead of those that make it small and quick to start; ZooKeeper only. */
  readonly jvm?: readonly string[];
}

export interface Backend {
  readonly name: string;
  readonly kind: "keeper" | "zookeeper";
  /** The release of ZooKeeper; null for another server. */
  readonly release: ZooKeeperRelease | null;
  /** The peer it needs, for describeWithPeer. */
  readonly peer: PeerName | null;
  start(options?: BackendOptions): Promise<RunningBackend>;
}

/** A sentence about each server that ended without having been killed. */
export function serversThatEnded(nodes: readonly Pick<ServerNode, "lastWords">[]): string[] {
  return nodes.flatMap(({ lastWords }) =>
    lastWords === null ? [] : [`a server ended by itself, saying ${JSON.stringify(lastWords)}`]
  );
}

/** Builds the whole of a backend out of its nodes. */
export function runningBackend(
  nodes: readonly ServerNode[],
  rest: Pick<RunningBackend, "servers" | "leader" | "close">,
): RunningBackend {
  return {
    ...rest,
    nodes,
    pause: () => nodes.forEach((node) => node.pause()),
    resume: () => nodes.forEach((node) => node.resume()),
    kill: async () => void await Promise.all(nodes.map((node) => node.kill())),
    restart: async () => {
      await Promise.all(nodes.map((node) => node.kill()));
      await Promise.all(nodes.map((node) => node.restart()));
    },
  };
}
