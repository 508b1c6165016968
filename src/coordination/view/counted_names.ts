/**
 * Chooses which names have their own counters in the metrics. All other names share the counters of `_other`. If a
 * counter decreases, Prometheus assumes a restart and adds the whole count again. A name therefore stays in its group,
 * and `_other` keeps the counts of a deleted history.
 */
import { addHistoryCounters, type HistoryCounters, zeroHistoryCounters } from "../history/history_counters.ts";
import type { HistoryKind } from "../history/history_log.ts";
import { historyResults } from "../history/history_record.ts";
import type { NamedHistoryCounters } from "../history/list_histories.ts";

/** The label that all names without their own counters share. A lock that really has this name is counted with them. */
export const otherNamesMetricLabel = "_other";

/** All histories that are counted under one name. For a pool, these include its items. */
type Counted = readonly NamedHistoryCounters[];

interface KindNames {
  readonly own: Set<string>;
  readonly others: Map<string, Counted>;
  /** The sum of the counters of names in `others` that no longer exist; null if there are none. */
  gone: NamedHistoryCounters | null;
}

export class CountedMetricNames {
  readonly #namesMax: number;
  readonly #kinds = new Map<HistoryKind, KindNames>();

  /** Gives at most `namesMax` names of each kind their own counters. */
  constructor(namesMax: number) {
    this.#namesMax = namesMax;
  }

  /**
   * Groups histories that were just read by label. Among new names, the names with the most ended holds get their own
   * label.
   */
  group(kind: HistoryKind, histories: Counted): ReadonlyMap<string, Counted> {
    const names = this.#kinds.get(kind) ?? { own: new Set(), others: new Map(), gone: null };
    this.#kinds.set(kind, names);
    const { own, others } = names;
    const byName = Map.groupBy(histories, ({ name }) => name);
    for (const name of own) if (!byName.has(name)) own.delete(name);
    for (const [name, before] of others) {
      const now = byName.get(name);
      if (now === undefined) others.delete(name);
      if (now === undefined || endsOf(now) < endsOf(before)) names.gone = before.reduce(sumOf, names.gone);
    }
    const fresh = [...byName].filter(([name]) => !own.has(name) && !others.has(name))
      .sort(([one, more], [other, less]) => endsOf(less) - endsOf(more) || (one < other ? -1 : 1));
    for (const [name, all] of fresh) {
      if (name === otherNamesMetricLabel || own.size >= this.#namesMax) others.set(name, all);
      else own.add(name);
    }
    for (const name of others.keys()) others.set(name, byName.get(name) ?? []);
    const rest = [...[...others.values()].flat(), ...names.gone === null ? [] : [names.gone]];
    const grouped = [...byName].filter(([name]) => own.has(name));
    return new Map<string, Counted>(rest.length === 0 ? grouped : [...grouped, [otherNamesMetricLabel, rest]]);
  }
}

function endsOf(all: Counted): number {
  const ends = (counters: HistoryCounters) => historyResults.reduce((sum, one) => sum + counters.results[one], 0);
  return all.reduce((sum, { counters, refusals }) => sum + ends(counters) + (refusals?.count ?? 0), 0);
}

function sumOf(
  before: NamedHistoryCounters | null,
  { kind, counters, refusals }: NamedHistoryCounters,
): NamedHistoryCounters {
  const count = (before?.refusals?.count ?? 0) + (refusals?.count ?? 0);
  return {
    kind,
    name: otherNamesMetricLabel,
    counters: addHistoryCounters(before?.counters ?? zeroHistoryCounters, counters),
    refusals: { count, lastMs: 0, host: "", pid: 0, user: "" },
  };
}
