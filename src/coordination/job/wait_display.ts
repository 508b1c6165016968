/** Shows that a call waits for a lock: on a terminal as a line that is updated, otherwise as a message. */
import type { Io } from "../../base/terminal/io.ts";
import { ErasableTerminalLine } from "../../base/terminal/progress_line.ts";
import type { AcquireLockOptions, WaitingStatus } from "../lock/acquire_lock.ts";
import { describeLockHolders } from "../lock/lock_status.ts";
import { formatDuration } from "../../base/support/duration.ts";

export interface LockWaitDisplayOptions {
  readonly quiet: boolean;
  readonly verbose: boolean;
}

const progressMs = 1000;

export interface LockWaitDisplay extends Disposable {
  readonly options: Pick<AcquireLockOptions, "onWaiting" | "progressMs">;
  /** Shows another reason to wait. Undefined if nothing is shown. */
  readonly show?: (text: string) => void;
}

/** Updates a line on a terminal. If stderr is not a terminal, prints one message, and only with --verbose. */
export function showLockWait(name: string, { quiet, verbose }: LockWaitDisplayOptions, io: Io): LockWaitDisplay {
  const line = ErasableTerminalLine.canShow(io) ? new ErasableTerminalLine(io) : null;
  if (quiet || (line === null && !verbose)) return { options: {}, [Symbol.dispose]() {} };
  const show = (text: string) => line === null ? io.err(`baton: ${text}\n`) : line.show(`baton: ${text}`);
  let isReported = false;
  const onWaiting = (waiting: WaitingStatus) => {
    if (line !== null || !isReported) show(describeWait(name, waiting));
    isReported = true;
  };
  return {
    options: line === null ? { onWaiting } : { onWaiting, progressMs },
    show,
    [Symbol.dispose]: () => line?.erase(),
  };
}

function describeWait(name: string, { place, waitedMs, status }: WaitingStatus): string {
  const holders = describeLockHolders(status, Date.now());
  const waited = formatDuration(waitedMs);
  return `waiting for "${name}" for ${waited}, place ${place} of ${status.waiters.length}: ${holders}`;
}
