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
 * The reason why a message is dead or dropped. `damaged` means that its content differs from what was stored; `purged`
 * means that an operator gave it up.
 */
export const deathReasons = ["exhausted", "too_old", "final", "crashed", "damaged", "purged"] as const;
export type DeathReason = (typeof deathReasons)[number];

/** A change that an operator asks for. */
export type MessageChange = "retry" | "cancel" | "redrive" | "purge";

export interface MessageLife {
  readonly state: MessageState;
  /** Tries that ended since the message was accepted or redriven, including its first try. */
  readonly tries: number;
  /** Number of tries that ended because their worker died. `tries` does not include them. */
  readonly crashes: number;
  /** The fencing number of the last started try. It increases with each try. */
  readonly fence: number;
  /** The time when the message was accepted or redriven, in ms of the wall clock. */
  readonly sinceMs: number;
  /** The time of the next try. Only valid while the state is "waiting". */
  readonly nextAtMs: number;
  readonly reason: DeathReason | null;
}

export interface LifeRules {
  readonly policy: RetryPolicy;
  /** A message with this many crashes is dead. */
  readonly maxCrashes: number;
  /** True if messages that fail permanently are dropped. Otherwise they are kept as dead letters. */
  readonly drops: boolean;
}

/** The meaning of a try for its message. */
export interface TryEnd {
  readonly outcome: "done" | "retry" | "final";
  readonly retryAfterMs: number | null;
}

/** Returns the state of a new message. `tried` is the result of its first try, or null. */
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
 * Applies the result of the try with the fencing number `fence`. Returns null, to ignore the result, if the message has
 * another owner now.
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
 * Makes a message wait again if its try was certainly not started. Returns null if the message has another owner now.
 */
export function lifeAfterReturn(life: MessageLife, fence: number, nowMs: number): MessageLife | null {
  if (life.state !== "in_flight" || life.fence !== fence) return null;
  return { ...life, state: "waiting", nextAtMs: nowMs };
}

/** Makes a message wait again, or dead, after its worker died. Returns null if the message was not in flight. */
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

/** Makes a claimed message dead because its content is damaged. It is kept even where dead letters are dropped. */
export function lifeAfterDamage(life: MessageLife): MessageLife {
  return { ...life, state: "dead", reason: "damaged" };
}

/** Returns the state after a change by an operator, or null if the message cannot be changed so. */
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

/**
 * Cancels a waiting message, for an operator. Returns null for other states, because a try in flight cannot be stopped.
 */
export function lifeAfterCancel(life: MessageLife): MessageLife | null {
  return life.state === "waiting" ? { ...life, state: "cancelled" } : null;
}

/**
 * Makes a dead letter wait again with all its tries. The fencing number is kept. Returns null if the message is not
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
