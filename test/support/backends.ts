/**
 * Every implementation of the protocol, behind one interface:
 * `for (const backend of backends) describeBackend(backend, () => { … })`.
 */
import { describe } from "bun:test";
import process from "node:process";
import type { Backend } from "./backend.ts";
import { startKeeperProcess } from "./keeper_server.ts";
import { describeWithPeer, type ZooKeeperRelease } from "./peers.ts";
import { startZooKeeper } from "./zookeeper_server.ts";

export type { Backend, BackendOptions, RunningBackend, ServerNode } from "./backend.ts";

export const keeper: Backend = {
  name: "keeper",
  kind: "keeper",
  release: null,
  peer: null,
  start: (options) => startKeeperProcess(options),
};

const releasePeers = { debian: "zookeeper", "3.8.7": "zookeeper38", "3.9.6": "zookeeper39" } as const;

function zooKeeperOf(release: ZooKeeperRelease, nodes: 1 | 3): Backend {
  return {
    name: `Apache ZooKeeper${release === "debian" ? "" : ` ${release}`}, ${nodes === 1 ? "one node" : "three nodes"}`,
    kind: "zookeeper",
    release,
    peer: releasePeers[release],
    start: (options) => startZooKeeper(nodes, { release, ...options }),
  };
}

/** The release that tests use that do not name one: Debian's, or that of BATON_ZOOKEEPER. */
const release = demandRelease(process.env["BATON_ZOOKEEPER"] ?? "debian");

export const zooKeeper = zooKeeperOf(release, 1);

/** Takes a second or two to start: only where an ensemble matters. */
export const zooKeeperEnsemble = zooKeeperOf(release, 3);

/** Current releases: for tests of the protocol itself. */
export const currentZooKeepers: readonly Backend[] = [zooKeeperOf("3.8.7", 1), zooKeeperOf("3.9.6", 1)];

/** An ensemble in which `baton doctor` finds no fault. */
export const currentEnsemble = zooKeeperOf("3.9.6", 3);

export const backends: readonly Backend[] = [keeper, zooKeeper];

function demandRelease(word: string): ZooKeeperRelease {
  if (word in releasePeers) return word as ZooKeeperRelease;
  throw new Error(`BATON_ZOOKEEPER=${word} is none of ${Object.keys(releasePeers).join(", ")}`);
}

/** `describe`, skipped aloud when the backend is not installed. */
export function describeBackend(backend: Backend, body: () => void): void {
  if (backend.peer === null) describe(backend.name, body);
  else describeWithPeer(backend.peer, backend.name, body);
}
