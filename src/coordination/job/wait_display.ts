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

/** Updates a line on a terminal. If stderr is not a terminal, prints one message, and only with --verbose. */
export function showLockWait(
  name: string,
  { quiet, verbose }: LockWaitDisplayOptions,
  io: Io,
): Disposable & { readonly options: Pick<AcquireLockOptions, "onWaiting" | "progressMs"> } {
  if (quiet || (!ErasableTerminalLine.canShow(io) && !verbose)) return { options: {}, [Symbol.dispose]: () => {} };
  if (ErasableTerminalLine.canShow(io)) {
    const line = new ErasableTerminalLine(io);
    const onWaiting = (waiting: WaitingStatus) => line.show(`baton: ${describeWait(name, waiting)}`);
    return { options: { onWaiting, progressMs }, [Symbol.dispose]: () => line[Symbol.dispose]() };
  }
  let isReported = false;
  const onWaiting = (waiting: WaitingStatus) => {
    if (!isReported) io.err(`baton: ${describeWait(name, waiting)}\n`);
    isReported = true;
  };
  return { options: { onWaiting }, [Symbol.dispose]: () => {} };
}

function describeWait(name: string, { place, waitedMs, status }: WaitingStatus): string {
  const holders = describeLockHolders(status, Date.now());
  const waited = formatDuration(waitedMs);
  return `waiting for "${name}" for ${waited}, place ${place} of ${status.waiters.length}: ${holders}`;
}
