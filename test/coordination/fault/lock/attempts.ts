/** Whether the servers did their part of a round. */
import { connectToZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import type { RunningBackend } from "../../../support/backends.ts";

export interface Attempt<Result extends { readonly failures: readonly string[] }> {
  readonly result: Result;
  /** False if no server commits anything any more: what went wrong then shows nothing. */
  readonly isServed: boolean;
}

/** The attempts of a round. What fails in the last one is a failure. */
const attemptsMax = 3;

/**
 * Repeats a round that shows nothing. Of seventy ensembles of ZooKeeper 3.8.0 that were stopped as a whole and woken,
 * one has a leader and followers afterwards and commits nothing any more, for minutes.
 */
export async function againUnlessServed<Result extends { readonly failures: readonly string[] }>(
  round: number,
  attempt: () => Promise<Attempt<Result>>,
): Promise<Result> {
  for (let number = 1;; number++) {
    const { result, isServed } = await attempt();
    if (number === attemptsMax || isServed) return result;
    console.log(
      `again: round ${round}: its servers elected a leader and commit nothing; ${result.failures.join("; ")}`,
    );
  }
}

/** Whether a session can be opened, past every proxy. */
export async function commits({ servers }: RunningBackend): Promise<boolean> {
  const options = { servers: parseZooKeeperServers(servers), connectTimeoutMs: 10_000 };
  return await connectToZooKeeper(options).then((zk) => zk.close().then(() => true), () => false);
}
