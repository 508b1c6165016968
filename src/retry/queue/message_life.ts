/**
 * The states of a stored message, and the effect of each event. Pure. The store applies each decision in one durable
 * transaction; test/retry/model tries all decisions with crashes between them.
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
 * The reason why a message is dead or dropped. `damaged`: its content differs from what was stored. `purged`: an
 * operator gave it up.
 */
export const deathReasons = ["exhausted", "too_old", "final", "crashed", "damaged", "purged"] as const;
export type DeathReason = (typeof deathReasons)[number];

/** A change that an operator asks for. */
export type MessageChange = "retry" | "cancel" | "redrive" | "purge";

export interface MessageLife {
  readonly state: MessageState;
  /** The number of tries that have ended since the message was accepted or redriven, including its first try. */
  readonly tries: number;
  /** The number of tries that ended because their worker died. They are not included in `tries`. */
  readonly crashes: number;
  /** The fencing number of the last started try. It increases with each try. */
  readonly fence: number;
  /** The time at which the message was accepted or redriven, in milliseconds of the wall clock. */
  readonly sinceMs: number;
  /** The time of the next try. It is valid only while the state is "waiting". */
  readonly nextAtMs: number;
  readonly reason: DeathReason | null;
}

export interface LifeRules {
  readonly policy: RetryPolicy;
  /** The number of crashes with which a message is dead. */
  readonly maxCrashes: number;
  /** True if messages that fail permanently are dropped. Otherwise they are kept as dead letters. */
  readonly drops: boolean;
}

/** The result of a try, as it counts for its message. */
export interface TryEnd {
  readonly outcome: "done" | "retry" | "final";
  readonly retryAfterMs: number | null;
}

/** Returns the state of a new message. `tried` is the result of its first try; null if it was not tried. */
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

/** Starts a try under a new fencing number. Returns null if the message is not waiting, or not due. */
export function lifeAfterClaim(life: MessageLife, nowMs: number): MessageLife | null {
  if (life.state !== "waiting" || life.nextAtMs > nowMs) return null;
  return { ...life, state: "in_flight", fence: life.fence + 1 };
}

/**
 * Returns the state after the result of the try with the fencing number `fence`. Returns null if the message has
 * another owner now; the result must then be ignored.
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
 * Returns the waiting state of a message whose try was certainly not started, and that may be claimed from `nextAtMs`
 * on. Returns null if the message has another owner now.
 */
export function lifeAfterReturn(life: MessageLife, fence: number, nextAtMs: number): MessageLife | null {
  if (life.state !== "in_flight" || life.fence !== fence) return null;
  return { ...life, state: "waiting", nextAtMs };
}

/** Returns the state of a message whose worker died: waiting or dead. Returns null if the message was not in flight. */
export function lifeAfterCrash(
  life: MessageLife,
  rules: LifeRules,
  nowMs: number,
  random: () => number,
): MessageLife | null {
  if (life.state !== "in_flight") return null;
  const crashes = life.crashes + 1;
  if (crashes >= rules.maxCrashes) return deadLife({ ...life, crashes }, "crashed", rules);
  // A crash does not count as a try, but the delay before the next try is the same.
  const next = decideNextTry(
    { ...rules.policy, maxRetries: Infinity, maxElapsedMs: null },
    { tries: Math.max(1, life.tries), sinceMs: life.sinceMs, nowMs, retryAfterMs: null },
    random,
  );
  return { ...life, crashes, state: "waiting", nextAtMs: next.kind === "at" ? next.atMs : nowMs };
}

/**
 * Returns the dead state of a claimed message whose content is damaged. Such a message is kept even if dead letters are
 * dropped.
 */
export function lifeAfterDamage(life: MessageLife): MessageLife {
  return { ...life, state: "dead", reason: "damaged" };
}

/** Returns the state after an operator's change; null if this change of the message is not possible. */
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

/** Makes the next try due now, for an operator. Returns null if the message is not waiting. */
export function lifeDueNow(life: MessageLife, nowMs: number): MessageLife | null {
  return life.state === "waiting" ? { ...life, nextAtMs: Math.min(life.nextAtMs, nowMs) } : null;
}

/** Cancels a waiting message, for an operator. Returns null for other states: a try in flight cannot be stopped. */
export function lifeAfterCancel(life: MessageLife): MessageLife | null {
  return life.state === "waiting" ? { ...life, state: "cancelled" } : null;
}

/**
 * Makes a dead letter wait again, with all its tries. Keeps the fencing number. Returns null if the message is not
 * dead.
 */
export function lifeAfterRedrive(life: MessageLife, nowMs: number): MessageLife | null {
  if (life.state !== "dead") return null;
  return { ...life, state: "waiting", tries: 0, crashes: 0, sinceMs: nowMs, nextAtMs: nowMs, reason: null };
}

/** Drops a dead letter, for an operator. Returns null if the message is not dead. */
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
