/**
 * What to do with a job, and when: a pure decision over the clock, the lease and what has been done so far. Owns the
 * timing of "the processes are dead before the server can give the lock to anybody else"; sends no signal itself.
 */

/** Why a job is stopped. `leftovers`: the command has ended, something it started has not. */
export type StopReason = "lost" | "revoked" | "time_limit" | "leftovers";

export interface Situation {
  readonly nowMs: number;
  readonly leaseEndMs: number;
  readonly sessionTimeoutMs: number;
  /** From the stop signal to SIGKILL. */
  readonly killAfterMs: number;
  readonly grantedAtMs: number;
  readonly maxHoldMs: number | null;
  readonly freezeOnDoubt: boolean;
  readonly inDoubt: boolean;
  /** When the lock was learnt to be gone, or the guard struck. */
  readonly goneAtMs: number | null;
  readonly revokedAtMs: number | null;
  /** The stop signal that was sent. */
  readonly stop: { readonly reason: StopReason; readonly atMs: number } | null;
  /** The first SIGKILL. */
  readonly killedAtMs: number | null;
}

export type Plan =
  /** `nextMs`: when to ask again if nothing happens before. */
  | { readonly action: "run" | "freeze"; readonly nextMs: number }
  | { readonly action: "stop" | "kill" | "give_up"; readonly reason: StopReason };

/** How long SIGKILL is given after a pause so long that the deadline had passed before anything could be done. */
const killGraceMs = 1000;

export function planChild(situation: Situation): Plan {
  const { nowMs, stop, killedAtMs } = situation;
  const lossMs = lossAtMs(situation);
  const killAtMs = Math.min(lossMs, stop === null ? Infinity : stop.atMs + situation.killAfterMs);
  if (killedAtMs !== null || nowMs >= killAtMs) {
    const reason = nowMs >= lossMs ? "lost" : stop?.reason ?? "lost";
    return { action: killedAtMs !== null && nowMs >= giveUpAtMs(situation, killedAtMs) ? "give_up" : "kill", reason };
  }
  if (stop !== null) return { action: resting(situation), nextMs: killAtMs };
  const stops = stopTimes(situation);
  const due = stops.find(([, atMs]) => nowMs >= atMs);
  if (due !== undefined) return { action: "stop", reason: due[0] };
  return { action: resting(situation), nextMs: Math.min(lossMs, ...stops.map(([, atMs]) => atMs)) };
}

/** The moment from which the server owes the lock to nobody as far as this process knows. */
export function lossAtMs(situation: Pick<Situation, "leaseEndMs" | "goneAtMs">): number {
  return Math.min(situation.leaseEndMs, situation.goneAtMs ?? Infinity);
}

/**
 * How long after the lease end everything must be dead: the lease keeps this much back from the session timeout, and
 * the server gives nothing away before that has passed.
 */
export function lossMarginMs(sessionTimeoutMs: number): number {
  return Math.max(500, sessionTimeoutMs / 20);
}

function stopTimes(situation: Situation): [StopReason, number][] {
  const { sessionTimeoutMs, maxHoldMs, grantedAtMs } = situation;
  const warningMs = Math.min(situation.killAfterMs, sessionTimeoutMs / 4);
  return [
    ["revoked", situation.revokedAtMs ?? Infinity],
    ["time_limit", maxHoldMs === null ? Infinity : grantedAtMs + maxHoldMs],
    // A frozen job could act on the signal only after being woken, which is what freezing is to prevent.
    ["lost", resting(situation) === "freeze" ? Infinity : situation.leaseEndMs - warningMs],
  ];
}

function resting(situation: Situation): "run" | "freeze" {
  return situation.freezeOnDoubt && situation.inDoubt ? "freeze" : "run";
}

/** While the lease is held nothing is unsafe yet, but no wait is endless: one session timeout. */
function giveUpAtMs(situation: Situation, killedAtMs: number): number {
  const lossMs = lossAtMs(situation);
  const limitMs = situation.nowMs >= lossMs
    ? lossMs + lossMarginMs(situation.sessionTimeoutMs)
    : killedAtMs + situation.sessionTimeoutMs;
  return Math.max(limitMs, killedAtMs + killGraceMs);
}
