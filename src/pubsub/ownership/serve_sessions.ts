/** Keeps a server or a proxy serving across its sessions of the coordination service. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { throwIfAborted } from "../../base/support/abort.ts";
import { backoffMs, serverBackoff } from "../../base/support/backoff.ts";
import type { Clock } from "../../base/support/clock.ts";
import { sleep } from "../../base/support/deadline.ts";
import { BatonError } from "../../base/errors.ts";

/**
 * Opens a session, serves until the session ends, and opens the next session. `serve` calls `begun` when the process is
 * announced, so that the next pause is short. Rejects with the signal's reason, or with CONFIG, because another session
 * cannot fix such an error.
 */
export async function serveOwnershipSessions(
  open: (signal: AbortSignal) => Promise<ZooKeeper>,
  serve: (zk: ZooKeeper, begun: () => void) => Promise<void>,
  { clock, signal, onProblem }: {
    readonly clock: Clock;
    readonly signal: AbortSignal;
    readonly onProblem: (problem: unknown) => void;
  },
): Promise<never> {
  for (let failures = 0;; failures++) {
    throwIfAborted(signal);
    try {
      await using zk = await open(signal);
      await serve(zk, () => failures = 0);
    } catch (thrown) {
      throwIfAborted(signal);
      if (thrown instanceof BatonError && thrown.code === "CONFIG") throw thrown;
      onProblem(thrown);
    }
    await sleep(clock, backoffMs(failures, serverBackoff), signal);
  }
}
