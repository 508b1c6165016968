/** The end of an item: written down, and its lock given back, in one transaction where that can be. */
import type { MultiRequest, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError, messageOf } from "../../errors.ts";
import { isRefusal } from "../request_errors.ts";
import type { ItemRecords } from "./item_records.ts";
import type { EndedItem, PoolMemory } from "./completion_log.ts";
import type { PoolJobEnd, PoolOptions } from "./pool_run_options.ts";
import { giveBack, type TakenItem } from "./item_claimer.ts";
import { retryOnConnectionLoss } from "../retry_on_connection_loss.ts";

type EndingOptions = Pick<PoolOptions, "rememberMs" | "clock" | "info" | "onProblem">;

/** So often what its record is believed to be is corrected. */
const triesMax = 4;

export class ItemEndings {
  readonly #zk: ZooKeeper;
  readonly #memory: PoolMemory;
  readonly #records: ItemRecords;
  readonly #options: EndingOptions;

  constructor(
    zk: ZooKeeper,
    { memory, records, ...options }: EndingOptions & { readonly memory: PoolMemory; readonly records: ItemRecords },
  ) {
    this.#zk = zk;
    this.#memory = memory;
    this.#records = records;
    this.#options = options;
  }

  /** Writes down how it ended and gives its lock back: at once, or in this order, so that whoever has the lock next knows. */
  async write(taken: TakenItem, { result, what }: PoolJobEnd): Promise<void> {
    const { lease } = taken;
    const { rememberMs, info } = this.#options;
    if (result === "unbegun") return await giveBack(taken);
    const atMs = Date.now();
    const by = `${info.user}@${info.host}:${info.pid}`;
    const isRemembered = rememberMs !== null && lease.isHeld();
    const ended = isRemembered ? { result, what, by, atMs, untilMs: atMs + rememberMs } : null;
    if (ended === null || !await this.#endTogether(taken, ended)) await this.#release(taken);
  }

  /** False when the lock was not given back with it. */
  async #endTogether({ item, lease }: TakenItem, ended: EndedItem): Promise<boolean> {
    try {
      await lease.releaseWith([...this.#records.endRequests(item), this.#memory.deedOf(item, ended)]);
      return true;
    } catch {
      // Its node, or none above it, is there already, or no answer came: one after the other, and as often as it takes.
    }
    const { clock, onProblem } = this.#options;
    await retryOnConnectionLoss(this.#zk, () => this.#memory.remember(item, ended), {
      clock,
      isWanted: () => lease.isHeld(),
    })
      .catch((thrown: unknown) => onProblem(notRemembered(item, thrown)));
    return false;
  }

  /** Where its record cannot be written, it says on that the item runs: whoever reads it takes it for ended by then. */
  async #release({ item, lease }: TakenItem): Promise<void> {
    const { clock } = this.#options;
    const isWanted = () => lease.isHeld();
    for (let tries = 0, isMissing = false; tries < triesMax && isWanted(); tries++) {
      const requests: MultiRequest[] = this.#records.endRequests(item, { isMissing });
      try {
        return await retryOnConnectionLoss(this.#zk, () => lease.releaseWith(requests), { clock, isWanted });
      } catch (thrown) {
        const isRefused = isRefusal(thrown, "NONODE", "NODEEXISTS", "BADVERSION");
        const refused = isRefused ? requests[(thrown.index ?? 0) - 1] : undefined;
        if (!isRefused || refused === undefined) break; // it is given back already, or cannot be now
        if (refused.type === "check") this.#records.noMoreAlone(refused);
        else if (isMissing) this.#records.corrects(thrown, refused);
        else isMissing = true; // somebody has forgotten it
      }
    }
    await lease.release();
  }
}

function notRemembered(item: string, cause: unknown): BatonError {
  const message = `Cannot write down that "${item}" has ended, and it may run again: ${messageOf(cause)}`;
  return new BatonError("OUTCOME_UNKNOWN", message, { cause });
}
