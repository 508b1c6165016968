/**
 * A client that sends the reads of a short time together, so that they and their responses share packets; after `join`,
 * data of several nodes in one request. Owns the reads that wait.
 */
import type { Clock } from "../../base/support/clock.ts";
import { sleep } from "../../base/support/deadline.ts";
import type { NodeData, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { ZooKeeperError } from "../../protocols/zookeeper/zookeeper_error.ts";
import { isTransient } from "../nodes/node_requests.ts";
import { replaceCalls } from "./replaced_calls.ts";

/** Milliseconds. */
const gateMs = 10;
/** Maximum number of nodes in a request. */
const joinedMax = 100;

interface WaitingRead extends Pick<PromiseWithResolvers<NodeData>, "resolve" | "reject"> {
  readonly path: string;
}

export class ReadBatch {
  /** The same client; `getData` and `getChildren` wait for the other reads of their time. */
  readonly client: ZooKeeper;
  readonly #zk: ZooKeeper;
  readonly #clock: Clock;
  #opening: Promise<void> | null = null;
  #isJoining = false;
  #waiting: WaitingRead[] = [];
  /**
   * Number of nodes in a request. A keeper closes the connection instead of a response that is too long: after each
   * loss of a connection requests are for one node, and then for one more each time.
   */
  #size = joinedMax;

  constructor(zk: ZooKeeper, clock: Clock) {
    this.#zk = zk;
    this.#clock = clock;
    const reads: Partial<ZooKeeper> = {
      getData: (path, options) =>
        this.#isJoining && options?.watch === undefined
          ? this.#join(path)
          : this.#pass().then(() => zk.getData(path, options)),
      getChildren: (path, options) => this.#pass().then(() => zk.getChildren(path, options)),
    };
    this.client = replaceCalls(zk, reads);
  }

  /** The server knows requests for several nodes, or does not. */
  join(isKnown: boolean): void {
    this.#isJoining = isKnown && this.#zk.getDataOfAll !== undefined;
  }

  #pass(): Promise<void> {
    return this.#opening ??= sleep(this.#clock, gateMs).finally(() => this.#opening = null);
  }

  #join(path: string): Promise<NodeData> {
    const { promise, resolve, reject } = Promise.withResolvers<NodeData>();
    if (this.#waiting.length === 0) {
      void this.#pass().then(() => {
        const waiting = this.#waiting.splice(0);
        while (waiting.length > 0) void this.#send(waiting.splice(0, this.#size));
        this.#size = Math.min(joinedMax, this.#size + 1);
      });
    }
    this.#waiting.push({ path, resolve, reject });
    return promise;
  }

  /** Never rejects. */
  async #send(reads: readonly WaitingRead[]): Promise<void> {
    try {
      const results = await this.#zk.getDataOfAll?.(reads.map(({ path }) => path)) ?? [];
      for (const [index, { resolve, reject }] of reads.entries()) {
        const result = results[index];
        if (result === undefined || result instanceof ZooKeeperError) reject(result);
        else resolve(result);
      }
    } catch (thrown) {
      if (isTransient(thrown)) this.#size = 1;
      for (const { reject } of reads) reject(thrown);
    }
  }
}
