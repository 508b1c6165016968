/** What a pool's round showed, and whether that is as it must be. Pure. */
import type { Exit } from "../lock/contender.ts";
import { withoutBusyTime } from "../../../support/quiet_time.ts";
import { overlapMs, type Section } from "../lock/observer.ts";
import type { PoolPlan } from "./plan.ts";

export interface PoolResult {
  readonly plan: PoolPlan;
  /** Runs of items. */
  readonly runs: number;
  /** Two runs of one item at once, for so many milliseconds. */
  readonly overlapMs: number;
  /** From the victim's death to the end of the last process it had started; null where it was not killed. */
  readonly goneMs: number | null;
  readonly failures: readonly string[];
}

export interface PoolEvidence {
  /** By item: its runs, as far as they began. */
  readonly sections: ReadonlyMap<string, readonly Section[]>;
  /** By item: what its pool remembers. */
  readonly states: ReadonlyMap<string, string>;
  /** Every pool process that there was; the victim first. */
  readonly ends: readonly { readonly name: string; readonly exit: Exit | null; readonly stderr: string }[];
  readonly failures: readonly string[];
  /** When the fault began, and the round ended, on the observer's clock. */
  readonly faultMs: number;
  /** How long tasks of the machine have waited for a processor or a disk since the fault, in milliseconds. */
  readonly busyMs: number;
  readonly endMs: number;
}

/** After SIGKILL of a pool all its processes are gone within this, in milliseconds. */
const goneMsMax = 1000;
/** All good · some failed · unreachable · busy · outcome unknown · lost · skipped: the item comes to its turn again. */
const codes = [0, 69, 75, 76, 79, 81, 123];
/** Others run it that are set up otherwise. */
const refused = 78;

export function judgePool(plan: PoolPlan, evidence: PoolEvidence): PoolResult {
  const { sections, states, ends, faultMs, busyMs, endMs } = evidence;
  const failures = [...evidence.failures];
  let overlap = 0;
  for (const [item, runs] of sections) {
    const itemsOverlapMs = overlapMs(runs, endMs);
    overlap = Math.max(overlap, itemsOverlapMs);
    if (itemsOverlapMs > 0) failures.push(`item ${item} ran twice at once for ${Math.ceil(itemsOverlapMs)} ms`);
    failures.push(...tokenFailures(item, runs));
    // What is done was named by no query that began after its end.
    const again = runs.filter(({ text }) => text.includes("\nagain\n")).length;
    if (plan.querySeconds !== null && again > 0) {
      failures.push(`item ${item} was run again by a list from before its end: ${told(runs)}`);
    }
    if (states.get(item) !== "done") failures.push(`item ${item} is ${states.get(item) ?? "unknown"}, not done`);
    if (runs.some(({ closedMs }) => closedMs === null)) failures.push(`item ${item} runs on`);
    const ended = runs.filter(({ text }) => text.endsWith("ok\n")).length;
    if (ended === 0) failures.push(`item ${item} never came to its end`);
    // Where nothing was lost each end was written down, and read by all. A machine that stands still loses what it may.
    const isLost = ends.some(({ stderr }) => stderr.includes(`"${item}": `) && stderr.includes(`"${item}" is lost`));
    if (plan.fault.expect === "survives" && runs.length > 1 && !isLost) {
      failures.push(`item ${item} ran ${runs.length} times: ${told(runs)}`);
    }
  }
  const expected = plan.isSplit ? [...codes, refused] : codes;
  for (const [index, { name, exit, stderr }] of ends.entries()) {
    const isKilled = index === 0 && plan.fault.expect === "killed";
    const isExpected = isKilled ? exit?.signal === "SIGKILL" : expected.includes(exit?.code ?? -1);
    if (!isExpected) {
      failures.push(`${name} ended with ${exit?.code ?? exit?.signal}, saying ${JSON.stringify(stderr)}`);
    }
  }
  if (failures.length > 0) {
    for (const { name, stderr } of ends) if (stderr !== "") failures.push(`${name} said ${JSON.stringify(stderr)}`);
  }
  const goneMs = plan.fault.expect === "killed" ? goneAfterMs(sections, { name: ends[0]?.name ?? "", faultMs }) : null;
  if (goneMs !== null && withoutBusyTime(goneMs, busyMs) > goneMsMax) {
    failures.push(`the victim's processes were gone ${Math.ceil(goneMs)} ms after its end`);
  }
  const runs = [...sections.values()].reduce((sum, each) => sum + each.length, 0);
  return { plan, runs, overlapMs: overlap, goneMs, failures };
}

/** Each run, for people: when, whose, how far it came. */
const told = (runs: readonly Section[]): string =>
  runs.map(({ openedMs, closedMs, text }) =>
    `${Math.round(openedMs ?? 0)} to ${Math.round(closedMs ?? 0)} ${text.trim().replaceAll("\n", ", ")}`
  ).join("; ");

/** Of what the pool of this name had started before the fault. */
function goneAfterMs(
  sections: PoolEvidence["sections"],
  { name, faultMs }: { readonly name: string; readonly faultMs: number },
): number {
  const its = [...sections.values()].flat().filter(({ text }) => text.split("\n")[0]?.endsWith(` ${name}`));
  return Math.max(0, ...its.map(({ closedMs }) => (closedMs ?? Infinity) - faultMs));
}

/** Tokens grow in the order of the grants, which is the order in which the runs began. */
function tokenFailures(item: string, runs: readonly Section[]): string[] {
  const failures: string[] = [];
  let highest: bigint | null = null;
  for (const { text } of [...runs].sort((a, b) => (a.openedMs ?? 0) - (b.openedMs ?? 0))) {
    if (text === "") continue; // killed before it could say anything
    const token = /^(\d+) /.exec(text)?.[1];
    if (token === undefined) failures.push(`a run of ${item} had no fencing token, but ${JSON.stringify(text)}`);
    else if (highest !== null && BigInt(token) <= highest) {
      failures.push(`a run of ${item} had token ${token} after ${highest}`);
    }
    highest = token === undefined ? highest : BigInt(token);
  }
  return failures;
}
