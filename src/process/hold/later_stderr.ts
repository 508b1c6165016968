/** Where a holder says that a lock was lost, when `baton hold` and its stderr are gone. */
import { constants, fstatSync, openSync, statSync } from "node:fs";
import { isSameFile } from "../../support/one_file.ts";

/**
 * A descriptor, or undefined for nowhere. stderr itself, if nobody waits for its end longer than for the script's:
 * `$(baton hold … 2>&1)` reads a pipe up to its end, and would wait as long as the lock is held. Then the script's own.
 */
export function laterStderr(scriptPid: number): number | undefined {
  try {
    const own = fstatSync(2);
    if (!own.isFIFO() && !own.isSocket()) return 2;
    for (const fd of [1, 2]) {
      if (isSameFile(statSync(`/proc/${scriptPid}/fd/${fd}`), own)) return 2;
    }
  } catch {
    // closed, or not ours to look at
  }
  try {
    const { O_WRONLY, O_APPEND, O_NOCTTY, O_NONBLOCK } = constants;
    return openSync(`/proc/${scriptPid}/fd/2`, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK);
  } catch {
    return undefined; // closed, a socket, or another user's
  }
}
