/** Makes sure that a new lease is long enough to be of use. */
import type { ZooKeeperSession } from "../zookeeper/zookeeper.ts";
import { steadyLeaseMs } from "../zookeeper/session_timing.ts";
import { BatonError } from "../errors.ts";
import { onAbort } from "../support/abort.ts";
import type { Clock } from "../support/clock.ts";

/**
 * Waits until the session's lease is as long as steady heartbeats keep it; nearly always this resolves immediately. After the
 * process was suspended, the session may be alive with an expired lease: then it waits for a response of the ZooKeeper
 * leader. Rejects with the signal's reason, and UNREACHABLE when `isPatient` is false and no response arrives within T.
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
