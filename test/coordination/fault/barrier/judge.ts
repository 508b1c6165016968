/** What a barrier's round showed, and whether that is as it must be. Pure. */
import { checkHistory } from "../../../checker/check_history.ts";
import type { Exit } from "../lock/contender.ts";
import type { Section } from "../lock/observer.ts";
import { generationHistory } from "./generation_history.ts";
import type { BarrierPlan } from "./plan.ts";

export const parties = 3;

export interface MemberEvidence {
  readonly name: string;
  readonly section: Section | null;
  readonly exit: Exit | null;
  readonly stderr: string;
  /** On the observer's clock: not before it was spawned, and when it was known to have ended; null while it lives. */
  readonly spawnedMs: number;
  readonly endedMs: number | null;
  /** While it stood still it could not answer. */
  readonly stoppedMs: readonly (readonly [fromMs: number, toMs: number])[];
}

export interface BarrierResult {
  readonly plan: BarrierPlan;
  readonly started: number;
  readonly broken: number;
  /** From the moment the last one that was needed was spawned to the last begin of a section. */
  readonly startMs: number | null;
  readonly failures: readonly string[];
}

const codes = { broken: 82 };

/** The victim first. */
export function judgeBarrier(
  plan: BarrierPlan,
  { members, failures: before }: { readonly members: readonly MemberEvidence[]; readonly failures: readonly string[] },
): BarrierResult {
  const failures = [...before];
  for (const { name, section } of members) {
    if (section?.openedMs === undefined || section.openedMs === null) continue;
    const alive = aliveAt(members, section.openedMs);
    if (alive.length < parties) {
      failures.push(
        `early release: ${name} began with ${alive.length} of ${parties} alive (${alive.join(", ") || "-"})`,
      );
    }
  }
  for (const member of members) {
    const allowed = allowedEnds(plan, member, members);
    const end = member.exit === null ? "still runs" : String(member.exit.code ?? member.exit.signal);
    if (!allowed.includes(end)) failures.push(`${member.name} ${end}, not ${allowed.join(" or ")}: ${member.stderr}`);
  }
  failures.push(...throughness(plan, members), ...togetherness(members), ...tokens(members), ...generations(members));
  const opened = members.map(({ section }) => section?.openedMs ?? null).filter((ms) => ms !== null);
  const needed = members.map(({ spawnedMs }) => spawnedMs).sort((a, b) => a - b)[parties - 1] ?? 0;
  return {
    plan,
    started: opened.length,
    broken: members.filter(({ exit }) => exit?.code === codes.broken).length,
    startMs: opened.length < parties ? null : Math.max(...opened) - needed,
    failures,
  };
}

/**
 * Who can have been started, of those who began at `atMs`. All of them were alive at some moment after the last of them
 * had entered, and so all at once when that one entered, which was when somebody had just been spawned, or later. Who
 * stood still from then on cannot have been asked since.
 */
function aliveAt(members: readonly MemberEvidence[], atMs: number): string[] {
  const moments = members.map(({ spawnedMs }) => spawnedMs).filter((ms) => ms <= atMs);
  const aliveFrom = (momentMs: number) =>
    members.filter(({ spawnedMs, endedMs, stoppedMs }) =>
      spawnedMs <= momentMs && (endedMs === null || endedMs > momentMs) &&
      !stoppedMs.some(([from, to]) => from <= momentMs && atMs < to)
    ).map(({ name }) => name);
  return moments.map(aliveFrom).reduce((most, alive) => (alive.length > most.length ? alive : most), []);
}

/** What every member's session goes through, not only the victim's. */
const isEverybodys = ({ fault }: BarrierPlan): boolean => /^(all servers|leader) /.test(fault.name);

function allowedEnds(plan: BarrierPlan, member: MemberEvidence, members: readonly MemberEvidence[]): string[] {
  const isVictim = member === members[0];
  const { expect } = plan.fault;
  if (plan.phase === "running") {
    if (!isVictim) return isEverybodys(plan) ? ["0", "79"] : ["0"];
    return { survives: ["0"], loses: ["79"], killed: ["SIGKILL"], either: ["0", "79"] }[expect];
  }
  if (isVictim && (plan.restarts || expect === "killed")) return ["SIGKILL"];
  if (plan.restarts || expect === "survives") return ["0"];
  // One that is left over finds nobody to go with, and gives up.
  const lost = plan.onLost === "fail" ? ["82"] : [];
  return ["0", ...lost, "75", ...(isVictim || isEverybodys(plan) ? ["79"] : [])];
}

/** Where a lost one is waited for, and another has come, three go through; else all of a gathering are told. */
function throughness({ phase, onLost, fault, restarts }: BarrierPlan, members: readonly MemberEvidence[]): string[] {
  if (phase === "running") return [];
  const through = members.filter(({ section }) => section !== null).length;
  if (onLost === "wait") {
    return through < parties ? [`only ${through} of ${parties} went through: ${said(members)}`] : [];
  }
  // Its requests still arrive, and keep its session alive: the others can only wait.
  if (!restarts && fault.name.includes("replies are lost")) return [];
  const told = members.filter(({ exit }) => exit?.code === codes.broken).length;
  return through === 0 && told === 0 ? ["nobody went through, and nobody was told that it is broken"] : [];
}

const said = (members: readonly MemberEvidence[]): string =>
  members.map(({ name, exit, stderr }) => `${name} ${exit?.code ?? exit?.signal}: ${stderr}`).join("; ");

/** A busy observer may hear of the end of a process before it looks at a section that ended before. */
const blindMs = 100;

/** Nobody leaves before the others that began with it: their commands have ended by then. */
function togetherness(members: readonly MemberEvidence[]): string[] {
  const failures: string[] = [];
  for (const { name, exit, endedMs, section } of members) {
    if (exit?.code !== 0 || endedMs === null || section === null) continue;
    for (const other of members) {
      if (other.section?.text !== section.text || other.section.openedMs === null) continue;
      const closedMs = other.section.closedMs ?? Number.POSITIVE_INFINITY;
      const earlyMs = closedMs - endedMs;
      if (earlyMs <= blindMs) continue;
      failures.push(`${name} left ${Math.ceil(earlyMs)} ms before the command of ${other.name} had ended`);
    }
  }
  return failures;
}

/** Whether the arrivals explain who was started, and with which token. Undecided is a failure, too. */
function generations(members: readonly MemberEvidence[]): string[] {
  const { violated, undecided } = checkHistory(generationHistory("barrier", parties, members));
  return [...violated, ...undecided].map(({ why }) => why);
}

/** What a section says is its token: all of a generation have the same, and there are as many of them as parties. */
function tokens(members: readonly MemberEvidence[]): string[] {
  const generations = new Map<string, string[]>();
  for (const { name, section } of members) {
    if (section === null) continue;
    if (!/^\d+\n$/.test(section.text)) return [`${name} had no fencing token, but ${JSON.stringify(section.text)}`];
    generations.set(section.text, [...(generations.get(section.text) ?? []), name]);
  }
  return [...generations].filter(([, names]) => names.length > parties).map(([token, names]) =>
    `${names.length} were started with token ${token.trim()}: ${names.join(", ")}`
  );
}
