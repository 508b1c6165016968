/** A session under test: a clock whose hands the test turns, and servers that do what it says. */
import {
  connectToZooKeeper,
  type ZooKeeperConnectOptions,
} from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { ScriptedEnsemble, type ScriptedServer } from "./scripted_ensemble.ts";

/** The session timeout, in milliseconds. */
export const T = 6000;

export async function start(
  servers: number,
  { prepare, ...options }: Partial<ZooKeeperConnectOptions> & { readonly prepare?: (server: ScriptedServer) => void } =
    {},
) {
  const clock = new FakeClock();
  const ensemble = new ScriptedEnsemble(servers);
  if (prepare !== undefined) ensemble.servers.forEach(prepare);
  const zk = await connectToZooKeeper({
    servers: parseZooKeeperServers(ensemble.text),
    sessionTimeoutMs: T,
    clock,
    dial: ensemble.dial,
    ...options,
  });
  const states: string[] = [];
  zk.session.subscribe((change) => change === "state" && states.push(zk.session.state));
  return { clock, ensemble, zk, states };
}

/** What became of a promise: the value, or the error's reason. */
export function outcome(promise: Promise<unknown>): { of: unknown } {
  const result: { of: unknown } = { of: "pending" };
  promise.then((value) => result.of = value ?? null, (error) => result.of = error.reason ?? error);
  return result;
}

export const aNode = (zk: ZooKeeper) => zk.delete("/a", -1);
