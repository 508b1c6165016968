/** The end of an item: written down, and its lock given back, in one transaction where that can be. */
import type { MultiRequest, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError, messageOf } from "../../errors.ts";
import { isRefusal } from "../request_errors.ts";
import type { ItemRecords } from "./item_records.ts";
import type { CompletionLog, ItemResult } from "./completion_log.ts";
import type { PoolJobEnd, PoolRunOptions } from "./pool_run_options.ts";
import { type ClaimedItem, releaseUnstarted } from "./item_claimer.ts";
import { retryOnConnectionLoss } from "../retry_on_connection_loss.ts";

type ItemResultsOptions = Pick<PoolRunOptions, "rememberMs" | "clock" | "info" | "onProblem">;

/** So often what its record is believed to be is corrected. */
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

  /** Writes down how it ended and gives its lock back: at once, or in this order, so that whoever has the lock next knows. */
  async write(taken: ClaimedItem, { result, what }: PoolJobEnd): Promise<void> {
    const { lease } = taken;
    const { rememberMs, info } = this.#options;
    if (result === "unbegun") return await releaseUnstarted(taken);
    const atMs = Date.now();
    const by = `${info.user}@${info.host}:${info.pid}`;
    const isRemembered = rememberMs !== null && lease.isHeld();
    const ended = isRemembered ? { result, what, by, atMs, untilMs: atMs + rememberMs } : null;
    if (ended === null || !await this.#writeAndRelease(taken, ended)) await this.#release(taken);
  }

  /** False when the lock was not given back with it. */
  async #writeAndRelease({ item, lease }: ClaimedItem, ended: ItemResult): Promise<boolean> {
    try {
      await lease.releaseWith([...this.#records.endRequests(item), this.#completionLog.createRequest(item, ended)]);
      return true;
    } catch {
      // Its node, or none above it, is there already, or no answer came: one after the other, and as often as it takes.
    }
    const { clock, onProblem } = this.#options;
    await retryOnConnectionLoss(this.#zk, () => this.#completionLog.write(item, ended), {
      clock,
      isWanted: () => lease.isHeld(),
    })
      .catch((thrown: unknown) => onProblem(notRecorded(item, thrown)));
    return false;
  }

  /** Where its record cannot be written, it says on that the item runs: whoever reads it takes it for ended by then. */
  async #release({ item, lease }: ClaimedItem): Promise<void> {
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
        if (refused.type === "check") this.#records.otherListBegun(refused);
        else if (isMissing) this.#records.correctCache(thrown, refused);
        else isMissing = true; // somebody has forgotten it
      }
    }
    await lease.release();
  }
}

function notRecorded(item: string, cause: unknown): BatonError {
  const message = `Cannot write down that "${item}" has ended, and it may run again: ${messageOf(cause)}`;
  return new BatonError("OUTCOME_UNKNOWN", message, { cause });
}
