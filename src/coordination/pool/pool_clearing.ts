/** When a run deletes what is kept of items and nobody needs any more: some now and then, and the rest by the last run. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import type { Clock } from "../../support/clock.ts";
import { withinLeaveTime } from "../leave_time.ts";
import { isRefusal, isTransient } from "../request_errors.ts";
import type { ItemRecords } from "./item_records.ts";
import type { CompletionLog } from "./completion_log.ts";
import { retryOnConnectionLoss } from "../retry_on_connection_loss.ts";

/** After so many ends, or so long, another part is cleared. */
const every = { ends: 500, ms: 60_000 };

export class PoolCleanup {
  readonly #records: ItemRecords;
  readonly #completionLog: CompletionLog | null;
  readonly #clock: Clock;
  #cleared: { readonly ends: number; readonly ms: number };

  constructor({ records, completionLog, clock }: {
    readonly records: ItemRecords;
    /** Null when nothing is remembered. */
    readonly completionLog: CompletionLog | null;
    readonly clock: Clock;
  }) {
    this.#records = records;
    this.#completionLog = completionLog;
    this.#clock = clock;
    this.#cleared = { ends: 0, ms: clock.now() };
  }

  /** Whether it is time, so many items having ended here. */
  isDue(ends: number): boolean {
    const now = this.#clock.now();
    if (ends > 0 && ends - this.#cleared.ends < every.ends && now - this.#cleared.ms < every.ms) return false;
    this.#cleared = { ends, ms: now };
    return true;
  }

  /** What cannot be deleted now is deleted by another run. */
  async some(): Promise<void> {
    try {
      await this.#records.clearSome(Math.random());
      await this.#completionLog?.clearExpired(Math.floor(Math.random() * 16), Date.now());
    } catch (thrown) {
      if (!isTransient(thrown) && !isRefusal(thrown, "SESSIONEXPIRED")) throw thrown;
    }
  }

  /** The last run clears the rest, within the time that leaving may take. */
  async last({ session }: Pick<ZooKeeper, "session">): Promise<void> {
    const clock = this.#clock;
    const clearing = retryOnConnectionLoss({ session }, () => this.#records.clearLast(), { clock });
    await withinLeaveTime({ session, clock, why: "answered" }, clearing.catch(() => {})); // what is left another run clears
  }
}
