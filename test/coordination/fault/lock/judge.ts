/** What a round showed, and whether that is as it must be. Pure. */
import { checkHistory } from "../../../checker/check_history.ts";
import { withoutBusyTime } from "../../../support/quiet_time.ts";
import type { Exit } from "./contender.ts";
import type { Expectation } from "./faults.ts";
import { overlapMs, type Section } from "./observer.ts";
import type { RoundPlan } from "./plan.ts";
import { sectionHistory } from "./section_history.ts";

export interface RoundResult {
  readonly plan: RoundPlan;
  readonly outcome: "kept" | "lost" | "killed" | "broken";
  /** Two critical sections at once, for so many milliseconds. */
  readonly overlapMs: number;
  /** From the end of the victim's last process to the begin of the next section; null when there was none. */
  readonly marginMs: number | null;
  /** From the fault to the begin of the next section. */
  readonly takeoverMs: number | null;
  /** From the fault to the end of the victim's last process. */
  readonly goneMs: number | null;
  /** Empty when all is well. */
  readonly failures: readonly string[];
}

export interface Evidence {
  /** The victim first. */
  readonly contenders: readonly {
    readonly name: string;
    /** In their order; more than one where it came back. */
    readonly sections: readonly Section[];
    readonly exit: Exit | null;
    readonly stderr: string;
    /** See Wrapper. */
    readonly isScript?: boolean;
  }[];
  /** What was found wrong already. */
  readonly failures: readonly string[];
  /** Whether the victim's child was told to end. */
  readonly toldToLeave: boolean;
  /** When the fault began and the round ended, on the observer's clock. */
  readonly faultMs: number;
  /**
   * How long tasks of the machine have waited for a processor or a disk from the fault until the next one had the lock,
   * in milliseconds.
   */
  readonly busyMs: number;
  readonly endMs: number;
}

/** After SIGKILL of the wrapper all its processes are gone within this, in milliseconds. */
const goneMsMax = 1000;
/** And the next in line has the lock within this: its guard ends the session, or, of a script, the holder does. */
const takeoverMsMax = 2000;
const exitLost = 79;

export function judge(plan: RoundPlan, evidence: Evidence): RoundResult {
  const { contenders, toldToLeave, faultMs, busyMs, endMs } = evidence;
  const failures = [...evidence.failures];
  const [victim, ...others] = contenders;
  const sections = contenders.flatMap((contender) => contender.sections)
    .sort((a, b) => (a.openedMs ?? 0) - (b.openedMs ?? 0));
  const overlap = overlapMs(sections, endMs);
  if (overlap > 0) failures.push(`two holders at once for ${Math.ceil(overlap)} ms`);
  const wrongTokens = tokenFailures(sections);
  failures.push(...wrongTokens);
  if (overlap === 0 && wrongTokens.length === 0) {
    const { violated, undecided } = checkHistory(sectionHistory(`of round ${plan.number}`, sections));
    failures.push(...[...violated, ...undecided].map(({ why }) => why));
  }
  for (const other of others) {
    if (other.exit?.code !== 0) failures.push(`${describe(other)}; expected 0`);
  }

  const [first] = victim?.sections ?? [];
  const closedMs = first?.closedMs ?? null;
  const goneMs = closedMs === null ? null : closedMs - faultMs;
  const outcome = outcomeOf(victim, plan.fault.expect);
  if (victim !== undefined) {
    const expected = plan.fault.expect === "either"
      ? (toldToLeave ? "kept" : "lost")
      : ({ survives: "kept", loses: "lost", killed: "killed" } as const)[plan.fault.expect];
    if (outcome !== expected) failures.push(`${describe(victim)}; the lock should have been ${expected}`);
  }
  if (plan.fault.expect === "killed" && (goneMs === null || withoutBusyTime(goneMs, busyMs) > goneMsMax)) {
    failures.push(
      `the victim's processes were gone ${goneMs === null ? "never" : `${Math.ceil(goneMs)} ms`} after its end`,
    );
  }
  const nextMs = sections.find((section) => section !== first)?.openedMs ?? null;
  const takeoverMs = nextMs === null ? null : nextMs - faultMs;
  if (plan.fault.expect === "killed" && takeoverMs !== null && withoutBusyTime(takeoverMs, busyMs) > takeoverMsMax) {
    failures.push(`the next one had the lock ${Math.ceil(takeoverMs)} ms after the victim's end`);
  }
  return {
    plan,
    outcome,
    overlapMs: overlap,
    marginMs: nextMs === null || closedMs === null ? null : nextMs - closedMs,
    takeoverMs,
    goneMs,
    failures,
  };
}

function outcomeOf(
  victim: Evidence["contenders"][number] | undefined,
  expect: Expectation,
): RoundResult["outcome"] {
  const exit = victim?.exit ?? null;
  if (victim?.isScript && exit?.signal !== null) {
    const isEnded = exit?.signal === "SIGTERM" || exit?.signal === "SIGKILL";
    return isEnded ? (expect === "killed" ? "killed" : "lost") : "broken";
  }
  if (exit?.code === 0) return victim?.sections.length === 1 ? "kept" : "lost";
  if (exit?.code === exitLost) return "lost";
  return exit?.signal === "SIGKILL" ? "killed" : "broken";
}

/** Tokens must grow in the order of the grants, which is the order in which the sections began. */
function tokenFailures(sections: readonly Section[]): string[] {
  const failures: string[] = [];
  let highest: bigint | null = null;
  for (const { name, text } of sections) {
    const token = /^\d+\n$/.test(text) ? BigInt(text) : null;
    if (token === null) failures.push(`${name} had no fencing token, but ${JSON.stringify(text)}`);
    else if (highest !== null && token <= highest) failures.push(`${name} had token ${token} after ${highest}`);
    highest = token ?? highest;
  }
  return failures;
}

function describe({ name, exit, stderr }: Evidence["contenders"][number]): string {
  const end = exit === null ? "still runs" : `ended with ${exit.code ?? exit.signal}`;
  return `${name} ${end}${stderr === "" ? "" : `, saying ${JSON.stringify(stderr)}`}`;
}
