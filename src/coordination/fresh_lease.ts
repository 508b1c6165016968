/** A lease that begins when the session's own is about to end is lost before anybody can use it. */
import type { ZooKeeperSession } from "../zookeeper/zookeeper.ts";
import { steadyLeaseMs } from "../zookeeper/session_timing.ts";
import { BatonError } from "../errors.ts";
import { onAbort } from "../support/abort.ts";
import type { Clock } from "../support/clock.ts";

/**
 * Resolves when as much of the lease lies ahead as with steady heartbeats: nearly always at once. A session that nobody
 * guarded, in a process that stood still, may live with nothing to show for it; then the leader is asked. Rejects with
 * the signal's reason, and UNREACHABLE when nothing was heard within T and `isPatient` is false.
 */
export async function waitForFreshLease(session: ZooKeeperSession, { clock, signal, isPatient }: {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly isPatient: boolean;
}): Promise<void> {
  const isProven = () => {
    clock.noticeSuspend();
    return session.leaseEndMs() - clock.now() >= steadyLeaseMs(session.timeoutMs);
  };
  if (isProven()) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const why = `no server has responded for ${session.timeoutMs} ms, and the session may have ended`;
  const offs = [
    session.guard(),
    session.subscribe(() => isProven() && resolve()),
    onAbort(signal, reject),
    isPatient ? () => {} : clock.after(session.timeoutMs, () => reject(new BatonError("UNREACHABLE", why))),
  ];
  try {
    await promise;
  } finally {
    for (const off of offs) off();
  }
}
