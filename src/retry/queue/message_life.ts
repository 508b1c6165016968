/**
 * The life of a stored message: in which state it is, and what each event makes of it. Pure; the store applies what this
 * decides, one durable transaction for each change, and test/model walks through all of it with crashes in between.
 *
 *   waiting ──taken──▶ in flight ──tried──▶ done | waiting | dead | dropped
 *      ▲                   └──the lease ended, or the worker died──▶ waiting | dead (crashed)
 *      └──redriven── dead ──purged──▶ dropped          waiting ──cancelled──▶ cancelled
 *
 * Every message is in exactly one state. A try that has begun is in flight, durably, before it begins; only who has its
 * fencing number may say how it ended.
 */
import { nextTry, type RetryPolicy } from "./retry_policy.ts";

export const messageStates = ["waiting", "in_flight", "done", "dead", "dropped", "cancelled"] as const;
export type MessageState = (typeof messageStates)[number];

/** Why it is dead, or dropped. `damaged`: its content is not what was stored; `purged`: an operator gave it up. */
export const deathReasons = ["exhausted", "too_old", "final", "crashed", "damaged", "purged"] as const;
export type DeathReason = (typeof deathReasons)[number];

export interface MessageLife {
  readonly state: MessageState;
  /** Tries that have ended, the first one included, since it was accepted or redriven. */
  readonly tries: number;
  /** Tries that ended with their worker, counted apart. */
  readonly crashes: number;
  /** Of the last try that was begun; grows with each. */
  readonly fence: number;
  /** When it was accepted, or redriven. Wall clock, milliseconds. */
  readonly sinceMs: number;
  /** When the next try is due; means nothing in other states than waiting. */
  readonly nextAtMs: number;
  readonly reason: DeathReason | null;
}

export interface LifeRules {
  readonly policy: RetryPolicy;
  /** A message whose tries ended so often with their worker is dead. */
  readonly maxCrashes: number;
  /** What is over without success is dropped instead of kept as a dead letter. */
  readonly drops: boolean;
}

/** How a try ended, as far as its message is concerned. */
export interface TryEnd {
  readonly outcome: "done" | "retry" | "final";
  readonly retryAfterMs: number | null;
}

/** A message that was tried once and is stored now, or that waits for its first try (`tried` null). */
export function accepted(tried: TryEnd | null, rules: LifeRules, nowMs: number, random: () => number): MessageLife {
  const fresh: MessageLife = {
    state: "waiting",
    tries: 0,
    crashes: 0,
    fence: 0,
    sinceMs: nowMs,
    nextAtMs: nowMs,
    reason: null,
  };
  return tried === null ? fresh : afterTry(fresh, tried, rules, nowMs, random);
}

/** A try may begin, under a new fencing number. Null: it is not waiting, or not due. */
export function taken(life: MessageLife, nowMs: number): MessageLife | null {
  if (life.state !== "waiting" || life.nextAtMs > nowMs) return null;
  return { ...life, state: "in_flight", fence: life.fence + 1 };
}

/** The holder of `fence` says how the try ended. Null: the message is not his any more, and what he says counts nothing. */
export function tried(
  life: MessageLife,
  fence: number,
  end: TryEnd,
  { rules, nowMs, random }: { readonly rules: LifeRules; readonly nowMs: number; readonly random: () => number },
): MessageLife | null {
  if (life.state !== "in_flight" || life.fence !== fence) return null;
  return afterTry(life, end, rules, nowMs, random);
}

/** The try was never begun, and everybody knows: nothing is counted. Null as above. */
export function givenBack(life: MessageLife, fence: number, nowMs: number): MessageLife | null {
  if (life.state !== "in_flight" || life.fence !== fence) return null;
  return { ...life, state: "waiting", nextAtMs: nowMs };
}

/** Its worker is gone, and so is whatever it had begun. Null: it was not in flight. */
export function crashed(life: MessageLife, rules: LifeRules, nowMs: number, random: () => number): MessageLife | null {
  if (life.state !== "in_flight") return null;
  const crashes = life.crashes + 1;
  if (crashes >= rules.maxCrashes) return failedForGood({ ...life, crashes }, "crashed", rules);
  // Not a try, but the gap to the next one is kept all the same.
  const next = nextTry(
    { ...rules.policy, maxRetries: Infinity, maxElapsedMs: null },
    { tries: Math.max(1, life.tries), sinceMs: life.sinceMs, nowMs, retryAfterMs: null },
    random,
  );
  return { ...life, crashes, state: "waiting", nextAtMs: next.kind === "at" ? next.atMs : nowMs };
}

/** The disk has changed its content: no try of it may begin. It is kept, whatever else is dropped. Null: it does not wait. */
export function damaged(life: MessageLife): MessageLife | null {
  return life.state === "waiting" ? { ...life, state: "dead", reason: "damaged" } : null;
}

/** An operator wants the next try now. Null: it does not wait. */
export function dueNow(life: MessageLife, nowMs: number): MessageLife | null {
  return life.state === "waiting" ? { ...life, nextAtMs: Math.min(life.nextAtMs, nowMs) } : null;
}

/** An operator gives up a message that waits. Null: it does not, and a try that has begun cannot be called back. */
export function cancelled(life: MessageLife): MessageLife | null {
  return life.state === "waiting" ? { ...life, state: "cancelled" } : null;
}

/** A dead letter begins again, with all its tries. The fencing number goes on growing. Null: it is not dead. */
export function redriven(life: MessageLife, nowMs: number): MessageLife | null {
  if (life.state !== "dead") return null;
  return { ...life, state: "waiting", tries: 0, crashes: 0, sinceMs: nowMs, nextAtMs: nowMs, reason: null };
}

/** An operator gives up a dead letter. Null: it is not dead. */
export function purged(life: MessageLife): MessageLife | null {
  return life.state === "dead" ? { ...life, state: "dropped", reason: "purged" } : null;
}

function afterTry(
  life: MessageLife,
  { outcome, retryAfterMs }: TryEnd,
  rules: LifeRules,
  nowMs: number,
  random: () => number,
): MessageLife {
  const after = { ...life, tries: life.tries + 1 };
  if (outcome === "done") return { ...after, state: "done" };
  if (outcome === "final") return failedForGood(after, "final", rules);
  const next = nextTry(rules.policy, { tries: after.tries, sinceMs: life.sinceMs, nowMs, retryAfterMs }, random);
  if (next.kind === "never") return failedForGood(after, next.reason, rules);
  return { ...after, state: "waiting", nextAtMs: next.atMs };
}

function failedForGood(life: MessageLife, reason: DeathReason, { drops }: LifeRules): MessageLife {
  return { ...life, state: drops ? "dropped" : "dead", reason };
}
