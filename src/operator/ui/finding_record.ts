/**
 * Judges the rows of the page, and remembers when each finding was first seen. Its owner judges each changed row, and
 * all rows at intervals, because some findings come with time. Owns no clock.
 */
import type { Finding, JudgedRows } from "../../base/rows/finding.ts";
import { judgeRows } from "../../base/rows/row_findings.ts";
import type { RecordedFindingRow, UiTableName, UiTables } from "./ui_rows.ts";

/** A finding that is there now, or that has ended. */
export interface FindingChange {
  readonly key: string;
  readonly finding: Finding;
  /** Null if the finding has ended. */
  readonly row: RecordedFindingRow | null;
  readonly isNew: boolean;
}

interface JudgedObject {
  readonly table: UiTableName;
  readonly key: string;
}

const judgedKinds: { readonly [Name in UiTableName]?: (row: UiTables[Name]) => JudgedRows } = {
  locks: (row) => ({ lock: [row] }),
  elections: (row) => ({ election: [row] }),
  barriers: (row) => ({ [row.kind]: [row] }),
  pools: (row) => ({ pool: [row] }),
  ticks: (row) => ({ schedule: [row] }),
  stores: (row) => ({ store: [row] }),
  processes: (row) => ({ process: [{ ...row, counters: {} }] }),
};

/** Returns a row of the page as rows that can be judged. */
export function asJudgedRows<Name extends UiTableName>(table: Name, row: UiTables[Name]): JudgedRows {
  return judgedKinds[table]?.(row) ?? {};
}

export class FindingRecord {
  /** The findings of each object that has some, by table and key. */
  readonly #found = new Map<UiTableName, Map<string, ReadonlyMap<string, RecordedFindingRow>>>();
  /** The objects that were judged since the servers responded. A finding of any other object may be older. */
  readonly #judged = new Set<string>();

  /** Call this when the servers respond again: what has begun meanwhile is older than its first judgment. */
  startAgain(): void {
    this.#judged.clear();
  }

  /** Judges one object. */
  judge({ table, key }: JudgedObject, rows: JudgedRows, nowMs: number): FindingChange[] {
    const place = `${table}/${key}`;
    const seen = { since: new Date(nowMs).toISOString(), isOlder: !this.#judged.has(place) };
    this.#judged.add(place);
    const objects = this.#found.get(table) ?? new Map<string, ReadonlyMap<string, RecordedFindingRow>>();
    this.#found.set(table, objects);
    const before = objects.get(key) ?? new Map<string, RecordedFindingRow>();
    const now = new Map<string, RecordedFindingRow>();
    for (const finding of judgeRows(rows, nowMs)) {
      let name = `${place}/${finding.id}`;
      while (now.has(name)) name += "+"; // a lock with two holders may have a finding twice
      const { since, isOlder } = before.get(name) ?? seen;
      now.set(name, { ...finding, table, key, since, isOlder });
    }
    if (now.size === 0) objects.delete(key);
    else objects.set(key, now);
    const ended = [...before].filter(([name]) => !now.has(name));
    return [
      ...[...now].map(([name, row]) => ({ key: name, finding: row, row, isNew: !before.has(name) })),
      ...ended.map(([name, finding]) => ({ key: name, finding, row: null, isNew: false })),
    ];
  }

  /** Judges all objects of a table. The findings of other objects of this table end. */
  judgeTable(table: UiTableName, objects: ReadonlyMap<string, JudgedRows>, nowMs: number): FindingChange[] {
    const gone = [...this.#found.get(table)?.keys() ?? []].filter((key) => !objects.has(key));
    return [
      ...gone.flatMap((key) => this.judge({ table, key }, {}, nowMs)),
      ...[...objects].flatMap(([key, rows]) => this.judge({ table, key }, rows, nowMs)),
    ];
  }
}
