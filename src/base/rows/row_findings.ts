/** Decides from rows what is wrong. `baton doctor` and the page show these findings. */
import { formatDuration } from "../support/duration.ts";
import { formatUtcMinute } from "../support/instant.ts";
import { shellQuoteIfNeeded } from "../support/shell_quote.ts";
import { type Finding, type JudgedRows, makeFinding } from "./finding.ts";
import type { FollowedCoordinationRow, WaiterRow } from "./object_row.ts";
import type { FollowedPoolRow } from "./pool_row.ts";
import { type FollowedScheduleRow, isScheduleOverdue, tickRetryText, waitingTry } from "./schedule_row.ts";
import { brokenText, countedText, countText } from "./row_texts.ts";
import { isStoreUnattended, type StoreRow, undeliveredDeadLetters } from "./store_row.ts";
import type { TopicDetailsRow, TopicListRow } from "./topic_row.ts";

/**
 * Maximum time, in milliseconds, in which the first waiter acquires a free lock. It is long because the clocks of two
 * machines are compared.
 */
const acquireMsMax = 30_000;
/** Maximum time, in milliseconds, in which a holder releases the lock after a request. */
const releaseMsMax = 60_000;
/** Free disk space, in bytes, below which a store or a keeper is about to refuse data. */
const freeBytesMin = 64 << 20;
/** How many undelivered messages a subscriber may have. A subscriber that runs has fewer most of the time. */
const pendingMax = 10_000;
/** How long a message may be undelivered, in milliseconds. Later, its subscriber may be gone for good. */
const undeliveredMsMax = 3_600_000;

/** Returns the findings of all rows. Pure. `nowMs` is the wall clock. */
export function judgeRows(rows: JudgedRows, nowMs: number): Finding[] {
  const { lock = [], election = [], barrier = [], gate = [], pool = [], schedule = [] } = rows;
  const { topic = [], topicDetails = [], store = [], process = [] } = rows;
  return [
    ...[...lock, ...election, ...barrier, ...gate].flatMap((row) => judgeObject(row, nowMs)),
    ...pool.flatMap(judgePool),
    ...schedule.flatMap((row) => judgeSchedule(row, nowMs)),
    ...judgeTopics(topic),
    ...topicDetails.flatMap((row) => judgeTopicDetails(row, nowMs)),
    ...store.flatMap((row) => judgeStore(row, nowMs)),
    ...process.flatMap((row) => judgeDisk(`${row.process} ${JSON.stringify(row.address)}`, row.disk_free_bytes)),
  ];
}

function judgeObject(row: FollowedCoordinationRow, nowMs: number): Finding[] {
  const { kind, name, problem, first_holders } = row;
  const where = `${kind} ${JSON.stringify(name)}`;
  if (problem !== null) {
    const action = "use one version of baton, and no other program, below this root";
    return [makeFinding("object-unreadable", { where, what: problem, action })];
  }
  const findings: Finding[] = [];
  const who = `baton who --kind ${kind} ${shellQuoteIfNeeded(name)}`;
  for (const { host, pid, since, revoke, warning } of first_holders) {
    const holder = `process ${pid} on ${host}`;
    if (warning !== null) findings.push(makeFinding("holder-not-guarded", { where, what: warning, action: who }));
    if (revoke === null || since === null || nowMs - Date.parse(since) < releaseMsMax) continue;
    const what = `it was ${brokenText(revoke)}, and ${holder} still holds it: its command may ignore the stop signal`;
    const action = kind === "lock" ? `baton break --force ${shellQuoteIfNeeded(name)}` : who;
    findings.push(makeFinding("broken-but-held", { where, what, action }));
  }
  return [...findings, ...judgeFirstWaiter(row, { nowMs, where, action: who })];
}

/** Finds the waiter that does not acquire a free lock, and blocks the others. */
function judgeFirstWaiter(
  row: FollowedCoordinationRow,
  { nowMs, where, action }: { readonly nowMs: number; readonly where: string; readonly action: string },
): Finding[] {
  const { kind, first_waiters: [first] } = row;
  if ((kind !== "lock" && kind !== "election") || first === undefined || first.since === null) return [];
  if (!isFreeFor(first, row)) return [];
  const waitedMs = nowMs - Date.parse(first.since);
  if (waitedMs < acquireMsMax) return [];
  const waiter = `process ${first.pid} on ${first.host} has waited for ${formatDuration(waitedMs)}`;
  const what = `${waiter} and does not acquire it, although it is free: stop that process`;
  return [makeFinding(kind === "lock" ? "lock-not-taken" : "election-without-leader", { where, what, action })];
}

/** Returns true if a waiter can join the holders. All holders have the same mode. */
function isFreeFor({ mode }: WaiterRow, { holders, limit, first_holders: [holder] }: FollowedCoordinationRow): boolean {
  if (holders === null || holders === 0) return holders === 0;
  if (mode !== holder?.mode) return false;
  return mode === "shared" || mode === "permit" && limit !== null && holders < limit;
}

function judgePool({ name, failed }: FollowedPoolRow): Finding[] {
  if (failed === 0) return [];
  const what = `${countedText(failed, "item")} failed`;
  return [
    makeFinding("pool-items-failed", {
      where: `pool ${JSON.stringify(name)}`,
      what,
      action: `run the call again to retry them; to list them: baton pool status ${shellQuoteIfNeeded(name)}`,
    }),
  ];
}

function judgeSchedule(row: FollowedScheduleRow, nowMs: number): Finding[] {
  const { name, schedule, next, running, runs } = row;
  const where = `schedule "${schedule}" of lock ${JSON.stringify(name)}`;
  const history = `baton history ${shellQuoteIfNeeded(name)}`;
  const byHand = "run the job by hand if it cannot wait for its next tick";
  // A good run ends the finding, too.
  const settle = history.replace("history", "history forget");
  if (running !== null && !running.lost) return [];
  const findings: Finding[] = [];
  if (isScheduleOverdue(row, nowMs)) {
    const what = `the tick of ${minuteOf(next)} has not begun on any host`;
    const quoted = shellQuoteIfNeeded(name);
    const action = `check that cron or baton cron runs on a host: baton explain ${quoted}; ` +
      `if no host has this schedule any longer: baton cron forget ${quoted}`;
    findings.push(makeFinding("schedule-overdue", { where, what, action }));
  }
  if (running !== null) {
    const what = `${running.host || "an unknown host"} began the tick of ${minuteOf(running.tick)}, and lost the lock`;
    return [...findings, makeFinding("schedule-lost", { where, what, action: history })];
  }
  const last = runs.findLast(({ result }) => result !== "skipped");
  if (last === undefined || last.result === "done") return findings;
  if (last.result === "missed") {
    const today = formatUtcMinute(nowMs).slice(0, "2026-11-24T".length);
    const missed = last.count === 1
      ? `the ${minuteOf(last.until).replace(today, "")} run`
      : `${countText(last.count)} runs up to ${minuteOf(last.until)}`;
    const what = `missed ${missed}: no host was running it`;
    const action = `${byHand}; to end this finding: ${settle}`;
    return [...findings, makeFinding("schedule-missed", { where, what, action })];
  }
  const why = last.why === null ? "" : `: ${last.why}`;
  const retry = waitingTry(row.retry, nowMs);
  const again = retry === null ? "" : `; ${tickRetryText(retry)}`;
  const how = last.result === "failed" ? "failed" : `was ${last.result}`;
  const what = `the last run, on ${last.host}, ${how}${why}${again}`;
  const action = retry === null ? `see why: ${history}; ${byHand}, then ${settle}` : history;
  return [...findings, makeFinding("schedule-failing", { where, what, action })];
}

const minuteOf = (time: string | null): string => time === null ? "" : formatUtcMinute(Date.parse(time));

function judgeTopics(rows: readonly TopicListRow[]): Finding[] {
  const offline = Map.groupBy(rows.filter(({ there }) => !there), ({ server }) => server);
  return [...offline].map(([server, topics]) => {
    const what = `it is offline, and no other server has its store: ${countedText(topics.length, "topic")} ` +
      "cannot be reached";
    return makeFinding("topics-without-server", {
      where: `server ${JSON.stringify(server)}`,
      what,
      action: `start it again: ${isOfLocalService(server) ? "baton pubsub serve" : serverCommand(server)}`,
    });
  });
}

/** Returns true for the IDs that `baton pubsub serve` gives its server. */
const isOfLocalService = (server: string): boolean => /^local(-|$)/.test(server);

const serverCommand = (server: string): string =>
  `baton pubsub server --id ${shellQuoteIfNeeded(server)} --data-dir FOLDER`;

function judgeTopicDetails(row: TopicDetailsRow, nowMs: number): Finding[] {
  const { topic, subscribers: [slowest], oldest, damage } = row;
  const where = `topic ${JSON.stringify(topic)}`;
  const findings: Finding[] = [];
  if (damage !== null) {
    const action = `baton pubsub topic repair ${shellQuoteIfNeeded(topic)}`;
    findings.push(makeFinding("topic-damaged", { where, what: damage, action }));
  }
  const sinceMs = oldest === null ? 0 : nowMs - Date.parse(oldest);
  if (slowest !== undefined && (slowest.pending > pendingMax || slowest.pending > 0 && sinceMs > undeliveredMsMax)) {
    const { client, pending } = slowest;
    const age = oldest === null ? "" : `, the oldest for ${formatDuration(sinceMs)}`;
    const what = `subscriber ${JSON.stringify(client)} has ${countedText(pending, "undelivered message")}${age}`;
    const subscription = `${shellQuoteIfNeeded(topic)} --id ${shellQuoteIfNeeded(client)}`;
    const action = `start it, or end its subscription: baton subscribe ${subscription} --unsubscribe`;
    findings.push(makeFinding("subscriber-behind", { where, what, action }));
  }
  return findings;
}

function judgeStore(row: StoreRow, nowMs: number): Finding[] {
  const { name, folder, next, dead_letters: { pending, error }, disk } = row;
  const dead = undeliveredDeadLetters(row);
  const where = `message store ${JSON.stringify(name)}`;
  const findings: Finding[] = [];
  const from = `--store ${shellQuoteIfNeeded(folder)}`;
  if (row.paused && next !== null && Date.parse(next) <= nowMs) {
    const what = "messages are due, and the store is paused";
    findings.push(makeFinding("store-paused", { where, what, action: `baton retry-processor resume ${from}` }));
  }
  if (isStoreUnattended(row) && Date.parse(next ?? "") <= nowMs) {
    const what = "messages are due, and no processor is running";
    findings.push(makeFinding("store-unattended", { where, what, action: `baton retry-processor run ${from}` }));
  }
  if (dead > 0) {
    const what = `it has ${countedText(dead, "dead letter")}`;
    findings.push(makeFinding("dead-letters", { where, what, action: `baton retry-processor dlq ls ${from}` }));
  }
  if (pending > 0 && error !== null) {
    const what = `${countedText(pending, "dead letter")} cannot be delivered to their destination: ${error}`;
    const action = "check the destination of --dead-letter";
    findings.push(makeFinding("dead-letters-not-delivered", { where, what, action }));
  }
  return [...findings, ...judgeDisk(where, disk.free_bytes)];
}

/** Finds a disk that is almost full. `freeBytes` is null for the disk of another machine. */
export function judgeDisk(where: string, freeBytes: number | null): Finding[] {
  if (freeBytes === null || freeBytes >= freeBytesMin) return [];
  const what = `its disk has only ${Math.floor(freeBytes / 2 ** 20)} MiB left, and it refuses data before it is full`;
  return [makeFinding("disk-full", { where, what, action: "make room on the disk" })];
}
