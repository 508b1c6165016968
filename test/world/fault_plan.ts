/**
 * The faults of a run: a list that is drawn from the seed before it begins, can be kept as a file, and made shorter.
 */
import type { Chance } from "./chance.ts";

/**
 * One fault. `at` is its time, `forMs` how long it lasts, in milliseconds of true time. `target` is the name of a
 * process, or "holder" for a process that holds something at that time.
 */
export type Fault =
  & { readonly at: number; readonly target: string }
  & (
    | { readonly kind: "reset" | "half open" }
    /** `peer`: the process whose machine alone is cut off from the target's; all machines when left out. */
    | {
      readonly kind: "cut";
      readonly direction: "to" | "from" | "both";
      readonly forMs: number;
      readonly peer?: string;
    }
    | { readonly kind: "delay"; readonly addMs: number; readonly forMs: number }
    | { readonly kind: "kill" | "lose" | "stop" | "suspend"; readonly forMs: number }
    | { readonly kind: "wall step"; readonly byMs: number }
    | { readonly kind: "busy"; readonly turnMs: number; readonly forMs: number }
    | { readonly kind: "disk slow"; readonly flushMs: number; readonly forMs: number }
    | { readonly kind: "disk full" | "disk failing"; readonly forMs: number }
    /**
     * A bit of what is stored is another one, from a start of the process on; worlds that have it draw it themselves.
     */
    | { readonly kind: "flipped bit"; readonly forMs: number }
    /** For a process that has signals; drawn by its world. */
    | { readonly kind: "signal"; readonly signal: NodeJS.Signals }
  );

export type FaultKind = Fault["kind"];

export const faultKinds: readonly Exclude<FaultKind, "signal">[] = [
  ...["reset", "half open", "cut", "delay", "kill", "lose", "stop", "suspend"] as const,
  ...["wall step", "busy", "disk slow", "disk full", "disk failing"] as const,
];

const diskFaults: readonly FaultKind[] = ["disk slow", "disk full", "disk failing"];

export interface FaultPlanOptions {
  readonly untilMs: number;
  readonly sessionTimeoutMs: number;
  readonly clients: readonly string[];
  readonly server: string;
}

/** Each run leaves out about half of the kinds: faults of one kind can hide those of another. */
export function drawFaults(chance: Chance, options: FaultPlanOptions): Fault[] {
  const kinds = faultKinds.filter(() => chance.is(0.5));
  if (kinds.length === 0) return [];
  const everyMs = chance.oneOf([300, 1500, 5000, options.sessionTimeoutMs]);
  const faults: Fault[] = [];
  for (let at = chance.between(0, everyMs); at < options.untilMs; at += chance.between(0, 2 * everyMs)) {
    const fault = drawFault(chance, chance.oneOf(kinds), at, options);
    faults.push(roundTimes(fault));
    const follower = fault.target === options.server ? null : drawFollower(chance, fault, options);
    if (follower !== null && kinds.includes("cut")) faults.push(roundTimes(follower));
  }
  return faults;
}

/** A network that becomes slow, or a process that stops, and then a partition before it has recovered. */
function drawFollower(chance: Chance, fault: Fault, { untilMs, sessionTimeoutMs: T }: FaultPlanOptions): Fault | null {
  if (!("forMs" in fault) || fault.kind === "cut" || chance.is(0.7)) return null;
  const at = fault.at + fault.forMs + chance.between(-0.05, 0.05) * T;
  if (at < 0 || at >= untilMs) return null;
  const forMs = Math.min(untilMs - at, T * chance.between(0.9, 1.5));
  return { at, kind: "cut", target: fault.target, direction: "both", forMs };
}

function drawFault(chance: Chance, kind: Exclude<FaultKind, "signal">, at: number, options: FaultPlanOptions): Fault {
  const { sessionTimeoutMs: T, clients, server, untilMs } = options;
  // A fault of the server concerns all clients: most faults are those of a client.
  const target = diskFaults.includes(kind) || chance.is(kind === "wall step" ? 0.6 : 0.2)
    ? server
    : chance.is(0.5)
    ? "holder"
    : chance.oneOf(clients);
  const lastMs = untilMs - at;
  const forMs = Math.min(lastMs, durationMs(chance, T));
  switch (kind) {
    case "reset":
    case "half open":
      return { at, kind, target };
    case "cut":
      return { at, kind, target, direction: chance.oneOf(["to", "from", "both"]), forMs };
    case "delay":
      return { at, kind, target, addMs: chance.oneOf([5, 100, T / 10, T / 3]) * chance.next(), forMs };
    case "kill":
    case "lose":
    case "stop":
    case "suspend":
      return { at, kind, target, forMs };
    case "wall step":
      return { at, kind, target, byMs: chance.oneOf([-1, 1]) * chance.oneOf([100, 5000, 4_000_000]) * chance.next() };
    case "busy":
      return { at, kind, target, turnMs: chance.oneOf([0.1, 5, 50]) * chance.next(), forMs: Math.min(forMs, 3 * T) };
    case "disk slow":
      return { at, kind, target, flushMs: chance.oneOf([20, 500, T]) * chance.next(), forMs };
    case "disk full":
    case "disk failing":
    case "flipped bit":
      return { at, kind, target, forMs: forMs / 2 };
  }
}

/** Short ones, ones about as long as the limits of a session, and ones that a session does not survive. */
function durationMs(chance: Chance, T: number): number {
  return chance.oneOf([20, T / 6, T / 3, T, 1.1 * T, 2 * T]) * chance.between(0.5, 1.2);
}

/** Whole microseconds, so that a file has short numbers and gives the same run. */
function roundTimes(fault: Fault): Fault {
  const rounded = Object.entries(fault).map(([name, value]) => [
    name,
    typeof value === "number" ? Math.round(value * 1000) / 1000 : value,
  ]);
  return Object.fromEntries(rounded) as Fault;
}

/**
 * The time at which what was sent until `untilMs`, when all faults have ended, has arrived at the latest, in
 * milliseconds.
 */
export function arrivalMs(faults: readonly Fault[], untilMs: number): number {
  let latestMs = untilMs;
  for (const fault of faults) {
    if (fault.kind === "delay" && fault.at + fault.forMs + fault.addMs > untilMs) latestMs += fault.addMs;
  }
  return latestMs;
}
