/**
 * Every implementation of the protocol, behind one interface:
 * `for (const backend of backends) describeBackend(backend, () => { … })`.
 */
import { describe } from "bun:test";
import type { Backend } from "./backend.ts";
import { startKeeperProcess } from "./keeper_server.ts";
import { describeWithPeer } from "./peers.ts";
import { startZooKeeper } from "./zookeeper_server.ts";

export type { Backend, BackendOptions, RunningBackend, ServerNode } from "./backend.ts";

export const keeper: Backend = {
  name: "keeper",
  kind: "keeper",
  peer: null,
  start: (options) => startKeeperProcess(options),
};

export const zooKeeper: Backend = {
  name: "Apache ZooKeeper, one node",
  kind: "zookeeper",
  peer: "zookeeper",
  start: (options) => startZooKeeper(1, options),
};

/** Takes a second or two to start: only where an ensemble matters. */
export const zooKeeperEnsemble: Backend = {
  name: "Apache ZooKeeper, three nodes",
  kind: "zookeeper",
  peer: "zookeeper",
  start: (options) => startZooKeeper(3, options),
};

export const backends: readonly Backend[] = [keeper, zooKeeper];

/** `describe`, skipped aloud when the backend is not installed. */
export function describeBackend(backend: Backend, body: () => void): void {
  if (backend.peer === null) describe(backend.name, body);
  else describeWithPeer(backend.peer, backend.name, body);
}
