/** Stores the result of an item and releases its lock, in one transaction if possible. */
import type { MultiRequest, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { isRefusal, retryOnConnectionLoss } from "../nodes/node_requests.ts";
import type { ItemRecords } from "./item_records.ts";
import type { CompletionLog, ItemResult } from "./completion_log.ts";
import type { PoolJobEnd, PoolRunOptions } from "./pool_run_options.ts";
import { type ClaimedItem, releaseUnstarted } from "./item_claimer.ts";

type ItemResultsOptions = Pick<PoolRunOptions, "rememberMs" | "clock" | "info" | "onProblem">;

/** The maximum number of corrections of the cached state of a record. */
const triesMax = 4;

export class ItemResults {
  readonly #zk: ZooKeeper;
  readonly #completionLog: CompletionLog;
  readonly #records: ItemRecords;
  readonly #options: ItemResultsOptions;

  constructor(
    zk: ZooKeeper,
    { completionLog, records, ...options }: ItemResultsOptions & {
      readonly completionLog: CompletionLog;
      readonly records: ItemRecords;
    },
  ) {
    this.#zk = zk;
    this.#completionLog = completionLog;
    this.#records = records;
    this.#options = options;
  }

  /**
   * Stores the result and releases the lock, together or in this order, so that the next holder of the lock can read
   * the result.
   */
  async write(claimed: ClaimedItem, { result, what }: PoolJobEnd): Promise<void> {
    const { lease } = claimed;
    const { rememberMs, info } = this.#options;
    if (result === "not_started") return await releaseUnstarted(claimed);
    const atMs = Date.now();
    const by = `${info.user}@${info.host}:${info.pid}`;
    const isKept = rememberMs !== null && lease.isHeld();
    const ended = isKept ? { result, what, by, atMs, untilMs: atMs + rememberMs } : null;
    if (ended === null || !await this.#writeAndRelease(claimed, ended)) await this.#release(claimed);
  }

  /** Returns false if the lock was not released. */
  async #writeAndRelease({ item, lease }: ClaimedItem, ended: ItemResult): Promise<boolean> {
    try {
      await lease.releaseWith([...this.#records.endRequests(item), this.#completionLog.createRequest(item, ended)]);
      return true;
    } catch {
      // The node exists, a parent is missing, or no response arrived: store first, with retries, and release later.
    }
    const { clock, onProblem } = this.#options;
    await retryOnConnectionLoss(this.#zk, () => this.#completionLog.write(item, ended), {
      clock,
      isWanted: () => lease.isHeld(),
    })
      .catch((thrown: unknown) => onProblem(notRecordedError(item, thrown)));
    return false;
  }

  /**
   * Releases the lock. If the record cannot be updated, it still says that the item runs; readers see that its holder
   * is gone.
   */
  async #release({ item, lease }: ClaimedItem): Promise<void> {
    const { clock } = this.#options;
    const isWanted = () => lease.isHeld();
    for (let tries = 0, isMissing = false; tries < triesMax && isWanted(); tries++) {
      const endRequests: MultiRequest[] = this.#records.endRequests(item, { isMissing });
      try {
        return await retryOnConnectionLoss(this.#zk, () => lease.releaseWith(endRequests), { clock, isWanted });
      } catch (thrown) {
        const isRefused = isRefusal(thrown, "NONODE", "NODEEXISTS", "BADVERSION");
        const refused = isRefused ? endRequests[(thrown.index ?? 0) - 1] : undefined;
        if (!isRefused || refused === undefined) break; // the lock is released already, or cannot be released now
        if (refused.type === "check") this.#records.lists.onOtherListBegun(refused);
        else if (isMissing) this.#records.correctCache(thrown, refused);
        else isMissing = true; // the record was deleted
      }
    }
    await lease.release();
  }
}

function notRecordedError(item: string, cause: unknown): BatonError {
  const message = `Cannot store the result of item "${item}", so it may run again: ${errorMessage(cause)}`;
  return new BatonError("OUTCOME_UNKNOWN", message, { cause });
}
