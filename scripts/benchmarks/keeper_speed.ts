/**
 * Benchmark: the keeper and a real ZooKeeper as installed, with forceSync, process the same requests over TCP in turn.
 */
import type { Address } from "../../src/base/sockets/connection.ts";
import { startKeeperProcess } from "../../test/support/keeper_server.ts";
import { hasPeer } from "../../test/support/peers.ts";
import { startZooKeeper } from "../../test/support/zookeeper_server.ts";
import { processCpuMs } from "./pubsub_contestants.ts";
import { measureInTurn, tryPeer } from "./peers.ts";
import { createFrame, existsFrame, type RequestFrame, RequestLoad, setFrame, watchFrame } from "./request_load.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";

interface Server {
  readonly name: string;
  readonly address: Address;
  readonly pid: number;
}

interface Outcome {
  /** With one request in flight, the median time; with more, the total time divided by their number. */
  readonly us: number;
  readonly cpuUs: number;
}

const inFlight = 128;
const counts = { 1: 1_500, [inFlight]: 15_000 } as const;
const watchers = 100;
const changes = 30;
/** Warm-up rounds, because a JVM is several times slower until it has compiled its code. */
const warmRounds = 3;

/**
 * Returns a table with a row for each load: medians over the rounds, and the ratio of the keeper's time to ZooKeeper's.
 */
export async function keeperSpeed(rounds: number): Promise<string> {
  await using stack = new AsyncDisposableStack();
  const servers = await started(stack);
  const results = await measureInTurn(
    servers,
    { task: "keeper", rounds, warmRounds },
    (server, round) => measureServer(server, `/r${round + warmRounds}`),
  );
  const measured = [...results.keys()];
  const loads = new Set([...results.values()].flat().flatMap((outcomes) => [...outcomes.keys()]));
  const rows = [["", ...measured.flatMap(({ name }) => [`${name} µs`, "min", "max", "cpu µs"]), "ZooKeeper ÷ keeper"]];
  for (const name of loads) {
    const of = (server: Server, figure: keyof Outcome) =>
      summarizeMeasurements((results.get(server) ?? []).map((outcomes) => outcomes.get(name)?.[figure] ?? NaN));
    const medians = measured.map((server) => of(server, "us").p50);
    rows.push([
      name,
      ...measured.flatMap((server) => {
        const { p50, min, max } = of(server, "us");
        return [p50, min, max, of(server, "cpuUs").p50].map(formatFigure);
      }),
      medians.length === 2 ? formatFigure((medians[1] ?? NaN) / (medians[0] ?? NaN)) : "–",
    ]);
  }
  return `${
    alignedTable(rows)
  }\nµs: of one request; in flight 1: its median; watch: from the change to the last of ${watchers} events`;
}

async function started(stack: AsyncDisposableStack): Promise<Server[]> {
  const keeper = await startKeeperProcess();
  stack.defer(() => keeper.close());
  const running = [{ name: "keeper", backend: keeper }];
  if (hasPeer("zookeeper")) {
    const start = () => startZooKeeper(1, { javaProperties: { "zookeeper.forceSync": "yes" }, jvm: [] });
    const backend = await tryPeer("ZooKeeper", "its start", start);
    if (backend !== null) {
      stack.defer(() => backend.close());
      running.push({ name: "ZooKeeper", backend });
    }
  } else console.error("MISSING PEER: Apache ZooKeeper (Debian: zookeeper)");
  return running.map(({ name, backend }) => {
    const [node] = backend.nodes;
    if (node === undefined) throw new Error(`${name} has no node`);
    return { name, address: node.address, pid: node.pid };
  });
}

async function measureServer({ address, pid }: Server, root: string): Promise<Map<string, Outcome>> {
  const load = await RequestLoad.open(address);
  const outcomes = new Map<string, Outcome>();
  await load.run([createFrame(root), createFrame(`${root}/x`)], 1);
  for (const window of [1, inFlight] as const) {
    const count = counts[window];
    await load.run([createFrame(`${root}/c${window}`)], 1);
    const frames: Readonly<Record<string, RequestFrame[]>> = {
      exists: Array<RequestFrame>(count).fill(existsFrame(`${root}/x`)),
      create: Array.from({ length: count }, (_, index) => createFrame(`${root}/c${window}/n${index}`)),
      set: Array<RequestFrame>(count).fill(setFrame(`${root}/x`)),
    };
    for (const [name, list] of Object.entries(frames)) {
      const before = processCpuMs(pid);
      const { totalMs, eachMs } = await load.run(list, window);
      const us = window === 1 ? summarizeMeasurements(eachMs).p50 * 1000 : totalMs * 1000 / count;
      outcomes.set(`${name}, ${window} in flight`, { us, cpuUs: (processCpuMs(pid) - before) * 1000 / count });
    }
  }
  outcomes.set(`watch by ${watchers} clients`, await fannedOut(load, { address, pid }, `${root}/x`));
  load.close();
  return outcomes;
}

/** Measures one change of a node that every client watches, until all have the event. */
async function fannedOut(writer: RequestLoad, { address, pid }: Omit<Server, "name">, path: string): Promise<Outcome> {
  const loads = await Promise.all(Array.from({ length: watchers }, () => RequestLoad.open(address)));
  const times: number[] = [];
  const beforeMs = processCpuMs(pid);
  for (let change = 0; change < changes; change++) {
    await Promise.all(loads.map((load) => load.run([watchFrame(path)], 1)));
    let left = watchers;
    const told = new Promise<void>((resolve) => {
      for (const load of loads) load.onEvent = () => --left === 0 && resolve();
    });
    const startMs = performance.now();
    await Promise.all([writer.run([setFrame(path)], 1), told]);
    times.push(performance.now() - startMs);
  }
  for (const load of loads) load.close();
  return { us: summarizeMeasurements(times).p50 * 1000, cpuUs: (processCpuMs(pid) - beforeMs) * 1000 / changes };
}
