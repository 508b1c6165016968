/** Decides from rows what is wrong. `baton doctor` and the page show these findings. Pure. */
import { formatDuration } from "../support/duration.ts";
import { countWithNoun } from "../support/text.ts";
import { type Finding, type JudgedRows, type JudgeRows, makeFinding } from "./finding.ts";
import type { FollowedCoordinationRow } from "./object_row.ts";
import type { FollowedPoolRow } from "./pool_row.ts";
import { type FollowedScheduleRow, isScheduleOverdue } from "./schedule_row.ts";
import { isStoreUnattended, type StoreRow } from "./store_row.ts";

/**
 * Maximum time, in milliseconds, in which the first waiter acquires a free lock. It is long because the clocks of two
 * machines are compared.
 */
export const acquireMsMax = 30_000;
/** Maximum time, in milliseconds, in which a holder releases the lock after a request. */
export const releaseMsMax = 60_000;
/** Free disk space, in bytes, below which a store is about to refuse messages. */
const freeBytesMin = 64 << 20;

/** Returns the name as one word of a shell. */
function shellWord(name: string): string {
  return /^[\w@%+=:,./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}

export const judgeCoordinationRows: JudgeRows = (rows, nowMs) => [
  ...[rows.lock, rows.election, rows.barrier, rows.gate].flatMap((some = []) =>
    some.flatMap((row) => judgeObject(row, nowMs))
  ),
  ...(rows.pool ?? []).flatMap(judgePool),
  ...(rows.schedule ?? []).flatMap((row) => judgeSchedule(row, nowMs)),
];

function judgeObject(row: FollowedCoordinationRow, nowMs: number): Finding[] {
  const { kind, name, problem, first_holders } = row;
  const where = `${kind} ${JSON.stringify(name)}`;
  if (problem !== null) {
    const action = "use one version of baton, and no other program, below this root";
    return [makeFinding("object-unreadable", { where, what: problem, action })];
  }
  const findings: Finding[] = [];
  const who = `baton who --kind ${kind} ${shellWord(name)}`;
  for (const { host, pid, since, revoke, warning } of first_holders) {
    const holder = `process ${pid} on ${host}`;
    if (warning !== null) findings.push(makeFinding("holder-not-guarded", { where, what: warning, action: who }));
    if (revoke === null || since === null || nowMs - Date.parse(since) < releaseMsMax) continue;
    const what = `${holder} was asked to release it and still holds it: its command may ignore the stop signal`;
    const action = kind === "lock" ? `baton break --force ${shellWord(name)}` : who;
    findings.push(makeFinding("holder-asked-to-release", { where, what, action }));
  }
  return [...findings, ...judgeFirstWaiter(row, { nowMs, where, action: who })];
}

/** Finds the waiter that does not acquire a free lock, and blocks the others. */
function judgeFirstWaiter(
  { kind, holders, first_waiters: [first] }: FollowedCoordinationRow,
  { nowMs, where, action }: { readonly nowMs: number; readonly where: string; readonly action: string },
): Finding[] {
  if ((kind !== "lock" && kind !== "election") || holders !== 0 || first === undefined || first.since === null) {
    return [];
  }
  const waitedMs = nowMs - Date.parse(first.since);
  if (waitedMs < acquireMsMax) return [];
  const waiter = `process ${first.pid} on ${first.host} has waited for ${formatDuration(waitedMs)}`;
  const what = `${waiter} and does not acquire it, although it is free: stop that process`;
  return [makeFinding(kind === "lock" ? "lock-not-taken" : "election-without-leader", { where, what, action })];
}

function judgePool({ name, failed }: FollowedPoolRow): Finding[] {
  if (failed === 0) return [];
  const what = `${countWithNoun(failed, "item")} failed`;
  return [
    makeFinding("pool-items-failed", {
      where: `pool ${JSON.stringify(name)}`,
      what,
      action: `baton pool status ${shellWord(name)}`,
    }),
  ];
}

function judgeSchedule(row: FollowedScheduleRow, nowMs: number): Finding[] {
  const { name, schedule, next, running, runs } = row;
  const where = `schedule "${schedule}" of lock ${JSON.stringify(name)}`;
  const history = `baton history ${shellWord(name)}`;
  if (running !== null && !running.lost) return [];
  if (isScheduleOverdue(row, nowMs)) {
    const what = `the tick of ${next} has not begun on any host`;
    const action = "check that cron or baton cron runs on a host: baton explain " + shellWord(name);
    return [makeFinding("schedule-overdue", { where, what, action })];
  }
  if (running !== null) {
    const what = `${running.host || "an unknown host"} began the tick of ${running.tick}, and lost the lock`;
    return [makeFinding("schedule-lost", { where, what, action: history })];
  }
  const last = runs.findLast(({ result }) => result !== "skipped");
  if (last === undefined || last.result === "done") return [];
  if (last.result === "missed") {
    const what = `${countWithNoun(last.count, "tick")} up to ${last.until} passed while no host was there`;
    return [makeFinding("schedule-missed", { where, what, action: history })];
  }
  const why = last.why === null ? "" : `: ${last.why}`;
  const what = `the last run, on ${last.host}, ${last.result === "failed" ? "failed" : `was ${last.result}`}${why}`;
  return [makeFinding("schedule-failing", { where, what, action: history })];
}

export const judgeTopicRows: JudgeRows = ({ topic = [] }) => {
  const offline = Map.groupBy(topic.filter(({ there }) => !there), ({ server }) => server);
  return [...offline].map(([server, topics]) => {
    const what = `it is offline, and no other server has its store: ${countWithNoun(topics.length, "topic")} ` +
      "cannot be reached";
    return makeFinding("topics-without-server", {
      where: `server ${JSON.stringify(server)}`,
      what,
      action: "start it again: baton pubsub server",
    });
  });
};

export const judgeStoreRows: JudgeRows = ({ store = [] }) => store.flatMap(judgeStore);

function judgeStore(row: StoreRow): Finding[] {
  const { name, folder, states: { dead: { count: dead } }, dead_letters: { pending, error }, disk } = row;
  const where = `message store ${JSON.stringify(name)}`;
  const findings: Finding[] = [];
  const from = `--store ${shellWord(folder)}`;
  if (isStoreUnattended(row)) {
    const what = "messages wait, and no processor is running";
    findings.push(makeFinding("store-unattended", { where, what, action: `baton retry-processor run ${from}` }));
  }
  if (dead > 0) {
    const what = `it has ${countWithNoun(dead, "dead letter")}`;
    findings.push(makeFinding("dead-letters", { where, what, action: `baton retry-processor dlq ls ${from}` }));
  }
  if (pending > 0 && error !== null) {
    const what = `${countWithNoun(pending, "dead letter")} cannot be delivered to their destination: ${error}`;
    const action = "check the destination of --dead-letter-to";
    findings.push(makeFinding("dead-letters-not-delivered", { where, what, action }));
  }
  if (disk.free_bytes !== null && disk.free_bytes < freeBytesMin) {
    const what = `its disk has only ${disk.free_bytes >> 20} MiB left, and it refuses messages before the disk is full`;
    findings.push(makeFinding("store-disk-full", { where, what, action: "make room on the disk" }));
  }
  return findings;
}

/** Decides the findings of all products. */
export const judgeRows: JudgeRows = (rows: JudgedRows, nowMs) =>
  [judgeCoordinationRows, judgeTopicRows, judgeStoreRows].flatMap((judge) => judge(rows, nowMs));
