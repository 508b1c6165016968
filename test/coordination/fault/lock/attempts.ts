/** Whether a round has shown anything: its servers did their part of it, and the machine did not stand still. */
import { connectToZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import type { RunningBackend } from "../../../support/backends.ts";

export interface Attempt<Result extends { readonly failures: readonly string[] }> {
  readonly result: Result;
  /** False: nobody committed anything any more, and what went wrong shows nothing. */
  readonly isServed: boolean;
}

/** The attempts of a round. What fails in the last one is a failure. */
const attemptsMax = 3;
/** A process that gets no processor for this long may lose its lock, or end late, in milliseconds. */
const stallMsMax = 500;
/** Failures of processes that were late or gave up. All others show that a promise is broken. */
const isOfLateness = (failure: string): boolean =>
  /ended with |still runs|were gone |had the lock \d+ ms after |^Waited | said "/.test(failure);

/**
 * Repeats a round that shows nothing. Of seventy ensembles of ZooKeeper 3.8.0 that were stopped as a whole and woken,
 * one has a leader and followers afterwards and commits nothing any more, for minutes.
 */
export async function againUnlessShown<Result extends { readonly failures: readonly string[] }>(
  round: number,
  attempt: () => Promise<Attempt<Result>>,
): Promise<Result> {
  for (let number = 1;; number++) {
    using stalls = new StallWatch();
    const { result, isServed } = await attempt();
    const { failures } = result;
    const isStall = failures.length > 0 && failures.every(isOfLateness) && stalls.longestMs > stallMsMax;
    if (number === attemptsMax || (isServed && !isStall)) return result;
    const why = isStall
      ? `the machine stood still for ${Math.round(stalls.longestMs)} ms`
      : "its servers elected a leader and commit nothing";
    console.log(`again: round ${round}: ${why}; ${failures.join("; ")}`);
  }
}

/** How long this process got no processor at the longest. */
class StallWatch implements Disposable {
  longestMs = 0;
  #lastMs = performance.now();
  readonly #timer = setInterval(() => {
    const nowMs = performance.now();
    this.longestMs = Math.max(this.longestMs, nowMs - this.#lastMs - lookEveryMs);
    this.#lastMs = nowMs;
  }, lookEveryMs);

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

const lookEveryMs = 20;

/** Whether a session can be opened, past every proxy. */
export async function commits({ servers }: RunningBackend): Promise<boolean> {
  const options = { servers: parseZooKeeperServers(servers), connectTimeoutMs: 10_000 };
  return await connectToZooKeeper(options).then((zk) => zk.close().then(() => true), () => false);
}
