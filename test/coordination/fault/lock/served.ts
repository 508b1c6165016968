/** Whether the servers of a round did their part of it. */
import { connectToZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import type { RunningBackend } from "../../../support/backends.ts";

export interface Attempt<Result> {
  readonly result: Result;
  /** False: nobody committed anything any more, and what went wrong shows nothing. */
  readonly isServed: boolean;
}

/**
 * Of seventy ensembles of ZooKeeper 3.8.0 that were stopped as a whole and woken, one has a leader and followers
 * afterwards and commits nothing any more, for minutes. Such a round shows nothing, and is done again, once.
 */
export async function againUnlessServed<Result>(
  round: number,
  attempt: () => Promise<Attempt<Result>>,
): Promise<Result> {
  const { result, isServed } = await attempt();
  if (isServed) return result;
  console.log(`again: round ${round}: its servers elected a leader and commit nothing`);
  return (await attempt()).result;
}

/** Whether a session can be opened, past every proxy. */
export async function commits({ servers }: RunningBackend): Promise<boolean> {
  const options = { servers: parseZooKeeperServers(servers), connectTimeoutMs: 10_000 };
  return await connectToZooKeeper(options).then((zk) => zk.close().then(() => true), () => false);
}
