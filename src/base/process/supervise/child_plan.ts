/**
 * Decides what to do with a command, and when, from the clock, the lease and the actions so far. Pure. Its timing
 * ensures that all processes are dead before the server can grant the lock to another holder.
 */

/** Why baton stops a command. `leftovers`: the command has ended, but processes that it started have not. */
export type StopReason = "lost" | "revoked" | "time_limit" | "leftovers";

export interface ChildSituation {
  readonly nowMs: number;
  readonly leaseEndMs: number;
  readonly sessionTimeoutMs: number;
  /** No other process can wait for the lock, so baton gives up on processes that SIGKILL does not end. */
  readonly isLocal: boolean;
  /** Time from the stop signal to SIGKILL. */
  readonly killAfterMs: number;
  readonly grantedAtMs: number;
  readonly maxHoldMs: number | null;
  readonly freezeOnDoubt: boolean;
  readonly inDoubt: boolean;
  /** When baton learned that the lock was lost, or that the guard killed. */
  readonly goneAtMs: number | null;
  readonly revokedAtMs: number | null;
  readonly stop: { readonly reason: StopReason; readonly atMs: number } | null;
  readonly killedAtMs: number | null;
}

export type ChildPlan =
  /** `nextMs` is when to decide again if no event comes earlier. */
  | { readonly action: "run" | "freeze"; readonly nextMs: number }
  | { readonly action: "stop" | "kill" | "give_up"; readonly reason: StopReason };

/** The time that processes have to die after SIGKILL if the deadline passed while baton was suspended. */
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

/** Returns the time from which the server may grant the lock to another holder, as far as this process knows. */
export function lockLossAtMs(situation: Pick<ChildSituation, "leaseEndMs" | "goneAtMs">): number {
  return Math.min(situation.leaseEndMs, situation.goneAtMs ?? Infinity);
}

/**
 * Returns the time after the end of the lease within which all processes must be dead. The lease ends this long before
 * the session timeout, and the server grants the lock to no other holder earlier.
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
    // A frozen command cannot react to the signal before it is resumed, and must not be resumed while in doubt.
    ["lost", actionWhileHeld(situation) === "freeze" ? Infinity : situation.leaseEndMs - warningMs],
  ];
}

function actionWhileHeld(situation: ChildSituation): "run" | "freeze" {
  return situation.freezeOnDoubt && situation.inDoubt ? "freeze" : "run";
}

/**
 * Returns when baton gives up on processes that it cannot stop. Never while another process could then get the lock:
 * baton stays as long as it holds the lease.
 */
function giveUpAtMs(situation: ChildSituation, killedAtMs: number): number {
  const { nowMs, isLocal, sessionTimeoutMs } = situation;
  const lossMs = lockLossAtMs(situation);
  const heldLimitMs = isLocal ? killedAtMs + sessionTimeoutMs : Infinity;
  const limitMs = nowMs >= lossMs ? lossMs + lockLossMarginMs(sessionTimeoutMs) : heldLimitMs;
  return Math.max(limitMs, killedAtMs + killGraceMs);
}

/** How long a process may live after SIGKILL before it counts as one that cannot be stopped, in milliseconds. */
const unstoppableMs = 1000;

/** Returns whether living processes now count as ones that cannot be stopped, while the lease is held. */
export function isChildUnstoppable(situation: ChildSituation): boolean {
  const { nowMs, killedAtMs, isLocal } = situation;
  return !isLocal && killedAtMs !== null && nowMs >= killedAtMs + unstoppableMs && nowMs < lockLossAtMs(situation);
}

/** Returns the milliseconds until killed processes are checked again; the pause grows while the lease is held. */
export function nextChildKillMs(
  situation: ChildSituation,
  { firstMs, maxMs }: { firstMs: number; maxMs: number },
): number {
  const { nowMs, killedAtMs } = situation;
  if (killedAtMs === null || nowMs >= lockLossAtMs(situation)) return firstMs;
  return Math.min(maxMs, Math.max(firstMs, (nowMs - killedAtMs) / 20));
}
