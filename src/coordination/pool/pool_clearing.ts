/** Deletes records and results that are no longer needed: a part from time to time, and the rest by the last run. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import type { Clock } from "../../support/clock.ts";
import { withinLeaveTime } from "../session_waits.ts";
import { isRefusal, isTransient, retryOnConnectionLoss } from "../request_errors.ts";
import type { ItemRecords } from "./item_records.ts";
import type { CompletionLog } from "./completion_log.ts";

/** The interval between two cleanups: number of ended items, or time. */
const every = { ends: 500, ms: 60_000 };

export class PoolCleanup {
  readonly #records: ItemRecords;
  readonly #completionLog: CompletionLog | null;
  readonly #clock: Clock;
  #cleared: { readonly ends: number; readonly ms: number };

  constructor({ records, completionLog, clock }: {
    readonly records: ItemRecords;
    /** Null if results are not kept. */
    readonly completionLog: CompletionLog | null;
    readonly clock: Clock;
  }) {
    this.#records = records;
    this.#completionLog = completionLog;
    this.#clock = clock;
    this.#cleared = { ends: 0, ms: clock.now() };
  }

  /** Whether a cleanup is due. `ends`: the number of items that ended in this run. */
  isDue(ends: number): boolean {
    const now = this.#clock.now();
    if (ends > 0 && ends - this.#cleared.ends < every.ends && now - this.#cleared.ms < every.ms) return false;
    this.#cleared = { ends, ms: now };
    return true;
  }

  /** Cleans up a part. Another run deletes what cannot be deleted now. */
  async some(): Promise<void> {
    try {
      await this.#records.clearSome(Math.random());
      await this.#completionLog?.clearExpired(Math.floor(Math.random() * 16), Date.now());
    } catch (thrown) {
      if (!isTransient(thrown) && !isRefusal(thrown, "SESSIONEXPIRED")) throw thrown;
    }
  }

  /** Cleans up the rest, if this is the last run. The time is limited. */
  async last({ session }: Pick<ZooKeeper, "session">): Promise<void> {
    const clock = this.#clock;
    const clearing = retryOnConnectionLoss({ session }, () => this.#records.clearLast(), { clock });
    await withinLeaveTime({ session, clock, why: "responded" }, clearing.catch(() => {})); // another run cleans up the rest
  }
}
