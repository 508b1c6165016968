/**
 * Decides what baton does with a command, and when, from the clock, the lease and its actions so far. Pure. The timing
 * ensures that all processes are dead before the server can grant the lock to another holder.
 */

/** Why baton stops a command. `leftovers`: the command has ended, but processes that it started have not. */
export type StopReason = "lost" | "revoked" | "time_limit" | "leftovers";

export interface ChildSituation {
  readonly nowMs: number;
  readonly leaseEndMs: number;
  readonly sessionTimeoutMs: number;
  /** True if no other process can wait for the lock. baton then gives up on processes that SIGKILL does not end. */
  readonly isLocal: boolean;
  /** The time from the stop signal to SIGKILL, in milliseconds. */
  readonly killAfterMs: number;
  readonly grantedAtMs: number;
  readonly maxHoldMs: number | null;
  readonly freezeOnDoubt: boolean;
  readonly inDoubt: boolean;
  /** When baton learned that the lock was lost, or that the guard kills the command; null before that. */
  readonly goneAtMs: number | null;
  readonly revokedAtMs: number | null;
  readonly stop: { readonly reason: StopReason; readonly atMs: number } | null;
  readonly killedAtMs: number | null;
}

export type ChildPlan =
  /** `nextMs` is the time at which to decide again, if no event comes before. */
  | { readonly action: "run" | "freeze"; readonly nextMs: number }
  | { readonly action: "stop" | "kill" | "give_up"; readonly reason: StopReason };

/**
 * How long the processes have to die after SIGKILL, in milliseconds, if the deadline passed while baton was suspended.
 */
const killGraceMs = 1000;

export function planChild(situation: ChildSituation): ChildPlan {
  const { nowMs, stop, killedAtMs } = situation;
  const lossMs = lockLossAtMs(situation);
  const killAtMs = Math.min(lossMs, stop === null ? Infinity : stop.atMs + situation.killAfterMs);
  if (killedAtMs !== null || nowMs >= killAtMs) {
    const reason = nowMs >= lossMs ? "lost" : stop?.reason ?? "lost";
    return { action: killedAtMs !== null && nowMs >= giveUpAtMs(situation, killedAtMs) ? "give_up" : "kill", reason };
  }
  if (stop !== null) return { action: actionWhileHeld(situation), nextMs: killAtMs };
  const stops = stopTimes(situation);
  const due = stops.find(([, atMs]) => nowMs >= atMs);
  if (due !== undefined) return { action: "stop", reason: due[0] };
  return { action: actionWhileHeld(situation), nextMs: Math.min(lossMs, ...stops.map(([, atMs]) => atMs)) };
}

/** Returns the time from which the server may have granted the lock to another holder, as far as this process knows. */
export function lockLossAtMs(situation: Pick<ChildSituation, "leaseEndMs" | "goneAtMs">): number {
  return Math.min(situation.leaseEndMs, situation.goneAtMs ?? Infinity);
}

/**
 * Returns how long processes may still live after the end of the lease, in milliseconds. The lease ends this long
 * before the session timeout, so that the server grants the lock to no other holder earlier.
 */
export function lockLossMarginMs(sessionTimeoutMs: number): number {
  return Math.max(500, sessionTimeoutMs / 20);
}

function stopTimes(situation: ChildSituation): [StopReason, number][] {
  const { sessionTimeoutMs, maxHoldMs, grantedAtMs } = situation;
  const warningMs = Math.min(situation.killAfterMs, sessionTimeoutMs / 4);
  return [
    ["revoked", situation.revokedAtMs ?? Infinity],
    ["time_limit", maxHoldMs === null ? Infinity : grantedAtMs + maxHoldMs],
    // A frozen command cannot react to the signal, and baton must not resume it while the lock is in doubt.
    ["lost", actionWhileHeld(situation) === "freeze" ? Infinity : situation.leaseEndMs - warningMs],
  ];
}

function actionWhileHeld(situation: ChildSituation): "run" | "freeze" {
  return situation.freezeOnDoubt && situation.inDoubt ? "freeze" : "run";
}

/**
 * Returns the time at which baton gives up on processes that it cannot stop. While baton holds the lease, it never
 * gives up: another process could then get the lock.
 */
function giveUpAtMs(situation: ChildSituation, killedAtMs: number): number {
  const { nowMs, isLocal, sessionTimeoutMs } = situation;
  const lossMs = lockLossAtMs(situation);
  const heldLimitMs = isLocal ? killedAtMs + sessionTimeoutMs : Infinity;
  const limitMs = nowMs >= lossMs ? lossMs + lockLossMarginMs(sessionTimeoutMs) : heldLimitMs;
  return Math.max(limitMs, killedAtMs + killGraceMs);
}

/** The time after SIGKILL, in milliseconds, after which a living process counts as unstoppable. */
const unstoppableMs = 1000;

/** Returns true if processes that are still alive count as unstoppable. Always false after the loss of the lease. */
export function isChildUnstoppable(situation: ChildSituation): boolean {
  const { nowMs, killedAtMs, isLocal } = situation;
  return !isLocal && killedAtMs !== null && nowMs >= killedAtMs + unstoppableMs && nowMs < lockLossAtMs(situation);
}

/** Returns the milliseconds until baton checks killed processes again. While the lease is held, the pause grows. */
export function nextKillCheckDelayMs(
  situation: ChildSituation,
  { firstMs, maxMs }: { firstMs: number; maxMs: number },
): number {
  const { nowMs, killedAtMs } = situation;
  if (killedAtMs === null || nowMs >= lockLossAtMs(situation)) return firstMs;
  return Math.min(maxMs, Math.max(firstMs, (nowMs - killedAtMs) / 20));
}
