/** Records the holds of a lock or leadership, and the runs of a pool, in the history. Loaded only when needed. */
import type { SupervisedChildEnding } from "../../base/process/spawn/child_outcome.ts";
import type { HolderInfo } from "../nodes/holder_info.ts";
import type { HistoryKind } from "../history/history_log.ts";
import { LockHoldRecorder, type LockHoldRecorderOptions } from "../history/hold_history.ts";
import { type PoolRunEnd, recordPoolRunEnd } from "../history/run_history.ts";
import { countRefusedCall } from "../history/refused_calls.ts";
import type { ZooKeeperLease } from "../nodes/zookeeper_lease.ts";
import type { Clock } from "../../base/support/clock.ts";
import type { Acl, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { type HistoryValues, readHistoryLimits, toRecordedHoldEnd } from "./hold_end.ts";

export interface RecordedHold {
  /**
   * Records how the command ended, and releases the lock. Returns null if that was recorded. Otherwise returns a
   * message, and the lock may still be held.
   */
  end(ending: SupervisedChildEnding): Promise<string | null>;
}

export interface HoldRecordingOptions {
  readonly kind: HistoryKind;
  readonly values: HistoryValues & { readonly root: string };
  readonly info: HolderInfo;
  readonly acl: Acl[] | undefined;
  readonly clock: Clock;
}

export class HoldRecorder {
  readonly #zk: ZooKeeper;
  readonly #options: LockHoldRecorderOptions;

  constructor(zk: ZooKeeper, { kind, values, info, acl = zk.acl, clock }: HoldRecordingOptions) {
    this.#zk = zk;
    this.#options = {
      kind,
      info,
      acl,
      clock,
      root: values.root,
      limits: readHistoryLimits(values),
      random: Math.random,
    };
  }

  begin(lease: ZooKeeperLease): RecordedHold {
    const history = new LockHoldRecorder(this.#zk, lease, this.#options);
    return {
      async end(ending) {
        const end = toRecordedHoldEnd(ending, lease.lost);
        const problem = end === null ? null : await history.end(end);
        return problem === null ? null : `the hold of "${lease.name}" is not in its history: ${problem}`;
      },
    };
  }

  /** Waits for a lock. If the lock is busy, counts the call as refused in the lock's history. */
  async countIfRefused<T>(name: string, acquiring: Promise<T>): Promise<T> {
    try {
      return await acquiring;
    } catch (thrown) {
      const isBusy = thrown instanceof BatonError && (thrown.code === "LOCK_BUSY" || thrown.code === "LOCK_TIMEOUT");
      if (isBusy) await countRefusedCall(this.#zk, name, this.#options);
      throw thrown;
    }
  }
}

/** Records a run of a pool. Returns null if it was recorded, otherwise a message. */
export async function recordPoolRun(
  zk: ZooKeeper,
  run: PoolRunEnd,
  { kind, values, info, acl = zk.acl, clock }: HoldRecordingOptions,
): Promise<string | null> {
  const limits = readHistoryLimits(values);
  const problem = await recordPoolRunEnd(zk, run, {
    kind,
    info,
    acl,
    clock,
    root: values.root,
    limits,
    random: Math.random,
  });
  return problem === null ? null : `the run of pool "${run.name}" is not in its history: ${problem}`;
}
