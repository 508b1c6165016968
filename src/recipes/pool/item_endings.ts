/** The end of an item: written down, and its lock given back, in one transaction where that can be. */
import type { ZooKeeper } from "../../clients/zookeeper/zookeeper.ts";
import { BatonError, messageOf } from "../../errors.ts";
import type { ZooKeeperLease } from "../zookeeper_lease.ts";
import type { EndedItem, PoolMemory } from "./pool_memory.ts";
import type { PoolJobEnd, PoolOptions } from "./pool_options.ts";
import type { TakenItem } from "./pool_taker.ts";
import { untilAnswered } from "../until_answered.ts";

type EndingOptions = Pick<PoolOptions, "rememberMs" | "clock" | "info" | "onProblem">;

export class ItemEndings {
  readonly #zk: ZooKeeper;
  readonly #memory: PoolMemory;
  readonly #options: EndingOptions;

  constructor(zk: ZooKeeper, memory: PoolMemory, options: EndingOptions) {
    this.#zk = zk;
    this.#memory = memory;
    this.#options = options;
  }

  /** Writes down how it ended and gives its lock back: at once, or in this order, so that whoever has the lock next knows. */
  async write({ item, lease }: TakenItem, { result, what }: PoolJobEnd): Promise<void> {
    const { rememberMs, info } = this.#options;
    const atMs = Date.now();
    const by = `${info.user}@${info.host}:${info.pid}`;
    const isRemembered = rememberMs !== null && result !== "unbegun" && lease.isHeld();
    const ended = isRemembered ? { result, what, by, atMs, untilMs: atMs + rememberMs } : null;
    if (ended === null || !await this.#endTogether(item, lease, ended)) await lease.release();
  }

  /** False when the lock was not given back with it. */
  async #endTogether(item: string, lease: ZooKeeperLease, ended: EndedItem): Promise<boolean> {
    try {
      await lease.releaseWith([this.#memory.deedOf(item, ended)]);
      return true;
    } catch {
      // Its node, or none above it, is there already, or no answer came: one after the other, and as often as it takes.
    }
    const { clock, onProblem } = this.#options;
    await untilAnswered(this.#zk, () => this.#memory.remember(item, ended), { clock, isWanted: () => lease.isHeld() })
      .catch((thrown: unknown) => onProblem(notRemembered(item, thrown)));
    return false;
  }
}

function notRemembered(item: string, cause: unknown): BatonError {
  const message = `Cannot write down that "${item}" has ended, and it may run again: ${messageOf(cause)}`;
  return new BatonError("OUTCOME_UNKNOWN", message, { cause });
}
