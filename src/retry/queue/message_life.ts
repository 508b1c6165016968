/**
 * The states of a stored message, and the effect of each event. Pure: the store applies each decision in one durable
 * transaction, and test/retry/model explores all of them with crashes in between.
 *
 *   waiting ──taken──▶ in flight ──tried──▶ done | waiting | dead | dropped
 *      ▲                   └──the lease ended, or the worker died──▶ waiting | dead (crashed)
 *      └──redriven── dead ──purged──▶ dropped          waiting ──cancelled──▶ cancelled
 *
 * Every message is in exactly one state. A message is durably in flight before its try starts. Only the owner of its
 * fencing number may report the result.
 */
import { decideNextTry, type RetryPolicy } from "./retry_policy.ts";

export const messageStates = ["waiting", "in_flight", "done", "dead", "dropped", "cancelled"] as const;
export type MessageState = (typeof messageStates)[number];

/**
 * The reason why a message is dead or dropped. `damaged`: its content differs from what was stored; `purged`: an
 * operator gave it up.
 */
export const deathReasons = ["exhausted", "too_old", "final", "crashed", "damaged", "purged"] as const;
export type DeathReason = (typeof deathReasons)[number];

/** A change that an operator asks for. */
export type MessageChange = "retry" | "cancel" | "redrive" | "purge";

export interface MessageLife {
  readonly state: MessageState;
  /** Tries that ended since the message was accepted or redriven, including the first one. */
  readonly tries: number;
  /** Tries that ended because their worker died; counted separately. */
  readonly crashes: number;
  /** The fencing number of the last try that was started; increases with each. */
  readonly fence: number;
  /** The time when the message was accepted or redriven. Wall clock, milliseconds. */
  readonly sinceMs: number;
  /** The time of the next try; only valid in the state waiting. */
  readonly nextAtMs: number;
  readonly reason: DeathReason | null;
}

export interface LifeRules {
  readonly policy: RetryPolicy;
  /** A message with this many crashes is dead. */
  readonly maxCrashes: number;
  /** True: messages that fail for good are dropped instead of kept as dead letters. */
  readonly drops: boolean;
}

/** The result of a try for its message. */
export interface TryEnd {
  readonly outcome: "done" | "retry" | "final";
  readonly retryAfterMs: number | null;
}

/** The state of a new message: tried once, or waiting for its first try (`tried` null). */
export function newLife(tried: TryEnd | null, rules: LifeRules, nowMs: number, random: () => number): MessageLife {
  const fresh: MessageLife = {
    state: "waiting",
    tries: 0,
    crashes: 0,
    fence: 0,
    sinceMs: nowMs,
    nextAtMs: nowMs,
    reason: null,
  };
  return tried === null ? fresh : lifeAfterOutcome(fresh, tried, rules, nowMs, random);
}

/** Starts a try under a new fencing number. Null: the message is not waiting, or not due. */
export function lifeAfterClaim(life: MessageLife, nowMs: number): MessageLife | null {
  if (life.state !== "waiting" || life.nextAtMs > nowMs) return null;
  return { ...life, state: "in_flight", fence: life.fence + 1 };
}

/**
 * Applies the result of the try with this fencing number. Null: the message has another owner now, and the result is
 * ignored.
 */
export function lifeAfterTry(
  life: MessageLife,
  fence: number,
  end: TryEnd,
  { rules, nowMs, random }: { readonly rules: LifeRules; readonly nowMs: number; readonly random: () => number },
): MessageLife | null {
  if (life.state !== "in_flight" || life.fence !== fence) return null;
  return lifeAfterOutcome(life, end, rules, nowMs, random);
}

/**
 * Returns a message whose try was certainly not started: nothing is counted. Null: the message has another owner now.
 */
export function lifeAfterReturn(life: MessageLife, fence: number, nowMs: number): MessageLife | null {
  if (life.state !== "in_flight" || life.fence !== fence) return null;
  return { ...life, state: "waiting", nextAtMs: nowMs };
}

/** Handles the death of the worker and of what it had started. Null: the message was not in flight. */
export function lifeAfterCrash(
  life: MessageLife,
  rules: LifeRules,
  nowMs: number,
  random: () => number,
): MessageLife | null {
  if (life.state !== "in_flight") return null;
  const crashes = life.crashes + 1;
  if (crashes >= rules.maxCrashes) return deadLife({ ...life, crashes }, "crashed", rules);
  // A crash is not a try, but the delay before the next try is kept.
  const next = decideNextTry(
    { ...rules.policy, maxRetries: Infinity, maxElapsedMs: null },
    { tries: Math.max(1, life.tries), sinceMs: life.sinceMs, nowMs, retryAfterMs: null },
    random,
  );
  return { ...life, crashes, state: "waiting", nextAtMs: next.kind === "at" ? next.atMs : nowMs };
}

/**
 * Handles content that changed on the disk: a claimed message is not tried, and kept even where dead letters are
 * dropped.
 */
export function lifeAfterDamage(life: MessageLife): MessageLife {
  return { ...life, state: "dead", reason: "damaged" };
}

/** The life after a change by an operator; null: the message cannot be changed so. */
export function lifeAfterChange(life: MessageLife, change: MessageChange, nowMs: number): MessageLife | null {
  switch (change) {
    case "retry":
      return lifeDueNow(life, nowMs);
    case "cancel":
      return lifeAfterCancel(life);
    case "redrive":
      return lifeAfterRedrive(life, nowMs);
    case "purge":
      return lifeAfterPurge(life);
  }
}

/** Makes the next try due now, for an operator. Null: the message is not waiting. */
export function lifeDueNow(life: MessageLife, nowMs: number): MessageLife | null {
  return life.state === "waiting" ? { ...life, nextAtMs: Math.min(life.nextAtMs, nowMs) } : null;
}

/** Cancels a waiting message, for an operator. Null: it is not waiting; a try in flight cannot be called back. */
export function lifeAfterCancel(life: MessageLife): MessageLife | null {
  return life.state === "waiting" ? { ...life, state: "cancelled" } : null;
}

/**
 * Returns a dead letter to the queue with all its tries. The fencing number continues to increase. Null: it is not
 * dead.
 */
export function lifeAfterRedrive(life: MessageLife, nowMs: number): MessageLife | null {
  if (life.state !== "dead") return null;
  return { ...life, state: "waiting", tries: 0, crashes: 0, sinceMs: nowMs, nextAtMs: nowMs, reason: null };
}

/** Drops a dead letter, for an operator. Null: it is not dead. */
export function lifeAfterPurge(life: MessageLife): MessageLife | null {
  return life.state === "dead" ? { ...life, state: "dropped", reason: "purged" } : null;
}

function lifeAfterOutcome(
  life: MessageLife,
  { outcome, retryAfterMs }: TryEnd,
  rules: LifeRules,
  nowMs: number,
  random: () => number,
): MessageLife {
  const after = { ...life, tries: life.tries + 1 };
  if (outcome === "done") return { ...after, state: "done" };
  if (outcome === "final") return deadLife(after, "final", rules);
  const next = decideNextTry(rules.policy, { tries: after.tries, sinceMs: life.sinceMs, nowMs, retryAfterMs }, random);
  if (next.kind === "never") return deadLife(after, next.reason, rules);
  return { ...after, state: "waiting", nextAtMs: next.atMs };
}

function deadLife(life: MessageLife, reason: DeathReason, { drops }: LifeRules): MessageLife {
  return { ...life, state: drops ? "dropped" : "dead", reason };
}
