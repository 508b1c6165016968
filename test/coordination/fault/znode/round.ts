/**
 * One round: clients change and read the same few nodes while connections are cut, responses are lost, and servers are
 * killed.
 */
import { checkHistory, type HistoryVerdict } from "../../../checker/check_history.ts";
import type { HistoryOperation } from "../../../checker/operation.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import { connectToZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import type { Backend } from "../../../support/backends.ts";
import { seededRandom } from "../../../support/random.ts";
import { monotonicMs } from "../../../pubsub/fault/pubsub/monotonic.ts";
import { ZnodeClient } from "./znode_client.ts";

export interface ZnodeRoundOptions {
  readonly backend: Backend;
  readonly seed: number;
  /** How long the clients work, in milliseconds. */
  readonly workMs: number;
}

export interface ZnodeRound {
  readonly operations: readonly HistoryOperation[];
  readonly states: readonly { readonly at: number; readonly state: string }[];
  readonly verdict: HistoryVerdict;
  /** Responses that no server may give. */
  readonly surprises: readonly string[];
}

const clientCount = 5;
const names = ["a", "b", "c"];
/**
 * Milliseconds for which the clients use the same nodes: changes of unknown outcome make a search longer, the more of
 * them a history has.
 */
const sameNodesMs = 2000;
const sessionTimeoutMs = 6000;
/** The server has given it to a node of its own. */
async function firstZxidOf(servers: string): Promise<bigint> {
  await using zk = await connectToZooKeeper({ servers: parseZooKeeperServers(servers), sessionTimeoutMs });
  await zk.create("/znode-first", new Uint8Array(0));
  return (await zk.getData("/znode-first")).stat.czxid;
}

/** Between two faults, in milliseconds, at most. */
const pauseMsMax = 300;
/** A server is killed as one of this many faults: its start takes seconds. */
const faultsPerKill = 12;

export async function runZnodeRound({ backend, seed, workMs }: ZnodeRoundOptions): Promise<ZnodeRound> {
  const random = seededRandom(seed);
  const server = await backend.start();
  const firstZxid = await firstZxidOf(server.servers);
  const states: { at: number; state: string }[] = [];
  const startMs = monotonicMs();
  const keys = () => names.map((name) => `/znode-${name}${Math.floor((monotonicMs() - startMs) / sameNodesMs)}`);
  const clients = Array.from({ length: clientCount }, (_, number) =>
    new ZnodeClient(server.nodes, {
      name: `c${number}`,
      keys,
      random: seededRandom(seed + 1 + number),
      sessionTimeoutMs,
      hasStaleReads: server.nodes.length > 1,
      firstZxid: () => firstZxid,
    }));
  try {
    const endMs = startMs + workMs;
    const isOver = () => monotonicMs() >= endMs;
    const working = Promise.all(clients.map((client) => client.work(isOver)));
    working.catch(() => {}); // awaited below
    for (let count = 1; !isOver(); count++) {
      await sleep(systemClock(), random() * pauseMsMax);
      const client = clients[Math.floor(random() * clients.length)];
      const node = server.nodes[Math.floor(random() * server.nodes.length)];
      const kind = count % faultsPerKill === 0 ? "kill" : random() < 0.5 ? "cut" : "lose a response";
      states.push({ at: monotonicMs(), state: `fault: ${kind}` });
      if (kind === "kill") await node?.restart();
      else if (kind === "cut") client?.cut();
      else client?.loseResponse();
    }
    await working;
  } finally {
    await Promise.all(clients.map((client) => client[Symbol.asyncDispose]()));
    await server.close();
  }
  const operations = clients.flatMap(({ calls }) => calls.operations);
  const surprises = clients.flatMap(({ calls }) => calls.surprises);
  return { operations, states, surprises, verdict: checkHistory(operations) };
}
