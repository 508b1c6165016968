/**
 * Judges a history of publish/subscribe clients (history.ts says how to make one): is every promise of the design kept?
 * Pure, and about linear: a second for some hundred thousand messages. The invariants by name are in findings.ts.
 */
import { Findings, invariants, type Violation } from "./findings.ts";
import type { History, Operation, Sample } from "./history.ts";
import { judgeNodes } from "./judge_nodes.ts";
import { at, judgeOrder, logsOf, ReturnedPuts, type TopicLog } from "./judge_puts.ts";
import { lastAskedOf } from "./judge_seeks.ts";
import { judgeReader, type Reader } from "./judge_readers.ts";

export interface Verdict {
  /** Messages that were put, and how many of them were answered OK, definitely failed, or were never heard of. */
  readonly puts: { readonly all: number; readonly ok: number; readonly fail: number; readonly unknown: number };
  readonly topics: number;
  /** Clients × topics. */
  readonly readers: number;
  readonly deliveries: number;
  readonly redelivered: number;
  /** Messages × subscribers, as readers were told: given up by retention. Whoever asks again is told again. */
  readonly missed: number;
  /** Messages × subscribers: lost in a fail-over of the database, and named by servers. */
  readonly named: number;
  /** Messages × subscribers; must be 0. */
  readonly lost: number;
  /** Must be 0. */
  readonly duplicated: number;
  /** Never put, not as they were put, or by a put that had failed; must be 0. */
  readonly unexpected: number;
  /** Messages of unknown outcome that were delivered; as is right. */
  readonly recovered: number;
  readonly faults: number;
  /** All that is not kept; none is wanted. */
  readonly violations: readonly Violation[];
}

/** What may be left behind, beyond what was there before the load. */
export interface BaselineLimits {
  readonly rssBytes: number;
  readonly descriptors: number;
  readonly diskBytes: number;
}

const defaultLimits: BaselineLimits = { rssBytes: 128 << 20, descriptors: 32, diskBytes: 32 << 20 };

/** What of it has grown by more than it may: each as a sentence. */
export function grownBeyond(begin: Sample, end: Sample, limits = defaultLimits): string[] {
  return (["rssBytes", "descriptors", "diskBytes"] as const).flatMap((what) => {
    const grownBy = (end[what] ?? 0) - (begin[what] ?? 0);
    return grownBy > limits[what]
      ? [`${what} of ${end.of} grew by ${grownBy}, from ${begin[what]} to ${end[what]}`]
      : [];
  });
}

/**
 * `isDrained`: false where the end was not waited for; then only what is missing between messages that came is lost.
 * `mayLose`: a fail-over of the database may lose what servers then name; otherwise nothing may be named.
 * `retains`: servers give messages up, and who was told so has lost nothing; `keeps`: at least so many of the newest
 * remain; `expiresAfterMs`: also without newer ones.
 */
export function judge(
  history: History,
  limits: BaselineLimits = defaultLimits,
  { isDrained = true, retains = false, keeps = 0, expiresAfterMs = Infinity, mayLose = false }: {
    readonly isDrained?: boolean;
    readonly retains?: boolean;
    readonly keeps?: number;
    readonly expiresAfterMs?: number;
    readonly mayLose?: boolean;
  } = {},
): Verdict {
  const findings = new Findings();
  const logs = logsOf(history, findings);
  const figures = { deliveries: 0, redelivered: 0, named: 0, readers: 0 };
  const readers = readersOf(history, logs);
  for (const [topic, log] of logs) {
    judgeOrder(log, findings);
    const returned = new ReturnedPuts(log);
    const stored = [...log.byName.values()].filter(({ id, outcome }) => id !== null || outcome === "ok");
    stored.sort((a, b) => (a.id ?? Infinity) - (b.id ?? Infinity) || 0);
    const lastAsked = lastAskedOf(readers.get(topic) ?? []);
    for (const reader of readers.get(topic) ?? []) {
      const { deliveries, redelivered, named } = judgeReader(reader, {
        ...{ stored, returned, lastAsked, findings, isDrained, retains, keeps, expiresAfterMs },
      });
      figures.deliveries += deliveries;
      figures.redelivered += redelivered;
      figures.named += named;
      figures.readers++;
    }
  }
  for (const { topic, last } of mayLose ? [] : history.losses) {
    findings.add("loss named", () => `messages of "${topic}" after ${last} may be lost, say its servers`);
  }
  judgeNodes(history, findings);
  judgeHealed(history, findings);
  judgeSamples(history.samples, { limits, findings });
  const messages = [...logs.values()].flatMap(({ byName }) => [...byName.values()]);
  const count = (wanted: string) => messages.filter(({ outcome }) => outcome === wanted).length;
  return {
    ...figures,
    puts: { all: messages.length, ok: count("ok"), fail: count("fail"), unknown: count("unknown") },
    topics: logs.size,
    lost: findings.count("lost"),
    duplicated: findings.count("duplicated", "stored twice"),
    unexpected: findings.count("unexpected", "corrupted", "fail delivered"),
    recovered: [...logs.values()].reduce((sum, log) => sum + recoveredOf(log), 0),
    missed: history.operations.reduce((sum, { result }) => sum + (result.missed ?? 0), 0),
    faults: history.faults.length,
    violations: findings.all(),
  };
}

/** For people: the four figures, and each violation with its first example. */
export function verdictText(verdict: Verdict): string {
  const { puts, lost, duplicated, unexpected, recovered, missed, named, violations } = verdict;
  return [
    `${puts.all} messages put (${puts.ok} OK, ${puts.fail} failed, ${puts.unknown} unknown), ` +
    `${verdict.deliveries} delivered ` +
    `to ${verdict.readers} readers of ${verdict.topics} topics, ${verdict.redelivered} again as is allowed; ${verdict.faults} faults`,
    `lost ${lost}, duplicated ${duplicated}, unexpected ${unexpected}, recovered ${recovered}` +
    (missed === 0 ? "" : `; ${missed} given up by retention or lost by the database, and told`) +
    (named === 0 ? "" : `; ${named} lost by the database, and named`),
    ...violations.map(({ invariant, count, first }) => `VIOLATED ${count} times: ${invariants[invariant]}: ${first}`),
  ].join("\n");
}

function readersOf({ operations, states }: History, logs: ReadonlyMap<string, TopicLog>): Map<string, Reader[]> {
  const byReader = new Map<string, Operation[]>();
  for (const operation of operations) {
    if (operation.do === "put") continue;
    const key = JSON.stringify([operation.topic, operation.client]);
    const list = byReader.get(key);
    if (list === undefined) byReader.set(key, [operation]);
    else list.push(operation);
  }
  const readers = new Map<string, Reader[]>();
  for (const its of byReader.values()) {
    const { client, topic } = its[0] as Operation;
    const log = logs.get(topic) as TopicLog;
    const reader = { client, log, operations: its, states: states.filter((state) => state.client === client) };
    readers.set(topic, [...readers.get(topic) ?? [], reader]);
  }
  return readers;
}

function recoveredOf({ delivered }: TopicLog): number {
  return [...delivered].filter(({ outcome }) => outcome === "unknown").length;
}

function judgeHealed({ operations, healedAt }: History, findings: Findings): void {
  for (const operation of operations) {
    if (operation.invokedAt < healedAt || operation.result.outcome === "ok") continue;
    const { do: what, client, topic, result, invokedAt } = operation;
    findings.add(
      "after healing",
      () =>
        `${what} by ${client} at "${topic}", ${at(invokedAt)}, ended as ${result.outcome}${
          result.status === undefined ? "" : `, ${result.status}`
        }`,
    );
  }
}

function judgeSamples(
  samples: readonly Sample[],
  { limits, findings }: { readonly limits: BaselineLimits; readonly findings: Findings },
): void {
  const first = new Map(samples.filter(({ when }) => when === "baseline").map((sample) => [sample.of, sample]));
  for (const end of samples.filter(({ when }) => when === "end")) {
    const begin = first.get(end.of);
    const grown = begin === undefined ? [] : grownBeyond(begin, end, limits);
    for (const sentence of grown) findings.add("baseline", () => sentence);
  }
}
