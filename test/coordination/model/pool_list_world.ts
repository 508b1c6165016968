/** What the model of a pool's lists is made of, when two states are the same, and what clears the records meanwhile. */
import { isItemRecordNeeded, type PoolItemRecord } from "../../../src/coordination/pool/item_record.ts";
import type { Transition, TransitionKind } from "../../support/explore.ts";

/** Ways to build it wrong: each must be found out. */
export type ListMistake =
  | "notes the transaction after its query has begun"
  | "writes no record before the end"
  | "deletes its record whether or not a list has come"
  | "shows its list after it has raised the version"
  | "goes on with the list before"
  | "clears whatever has ended"
  | "looks for lists before it reads what it clears"
  | "clears by name, not by version"
  | "clears by the version of the record alone"
  | "takes the item of a pool that was killed for one that ended long ago"
  | "writes the end after the lock is given back";

export interface Run {
  readonly step:
    | "begin"
    | "show"
    | "others"
    | "query"
    | "take"
    | "claim"
    | "decide"
    | "ready"
    | "give back"
    | "working"
    | "end"
    | "write end"
    | "listed"
    | "ended";
  readonly life: number;
  readonly lists: number;
  readonly listedAt: number | null;
  /** As it was answered, and as it may be relied on. */
  readonly version: number;
  readonly aloneAt: number | null;
  /** The item has ended since the query began of whose list it is taken: what must not be run. */
  readonly isOld: boolean;
  readonly seen: Row | null;
  /** What a give-back restores: no record, or an end. */
  readonly before: number | null;
}

export interface Row {
  /** Of the holder's node; null when it has ended. */
  readonly holder: string | null;
  /** Of its end. */
  readonly zxid: number;
  /** As the server counts: 0 for a node that was created, also if it was deleted before. */
  readonly version: number;
}

export interface Cleaner {
  readonly step: "rest" | "lists" | "holder" | "write";
  readonly row: Row | null;
  /** Of the shard, before the record was read. */
  readonly shardVersion: number;
  readonly oldest: number | null;
  readonly isKilled: boolean;
}

export interface ListState {
  readonly zxid: number;
  readonly runsVersion: number;
  readonly lists: readonly { readonly owner: string; readonly zxid: number }[];
  readonly record: Row | null;
  /** Each deletion of the record raises it. */
  readonly shardVersion: number;
  readonly holder: string | null;
  readonly runs: readonly Run[];
  /** Sessions of runs that were killed, and whether what they ran may still be alive. */
  readonly ghosts: readonly { readonly session: string; readonly works: boolean }[];
  readonly cleaner: Cleaner;
  readonly faultsLeft: number;
}

const ranked = new Set(["zxid", "listedAt", "before", "oldest"]);
export const rest: Cleaner = { step: "rest", row: null, shardVersion: 0, oldest: null, isKilled: false };

/** Whether a write by the version that was read finds the node as it was, or one that looks the same. */
export const hasVersionOf = (record: Row | null, row: Row): boolean => record?.version === row.version;

export const recordOf = ({ holder, zxid }: Row): PoolItemRecord =>
  holder === null ? { state: "ended", zxid: BigInt(zxid), isDone: false } : { state: "running", holder };

/** What can make a difference: of versions whether they still stand, of transactions their order. */
export function keyOf(
  state: ListState,
  kindOf: (who: number) => { readonly isQuery: boolean; readonly staysOld: boolean },
): string {
  const { record, cleaner, runsVersion } = state;
  const runs = state.runs.map((run, who) => {
    const { step, life, lists, listedAt } = run;
    const isTaking = ["take", "claim", "decide", "ready", "give back", "working"].includes(step);
    const { isQuery, staysOld } = kindOf(who);
    return {
      step,
      life,
      lists,
      listedAt: isTaking || step === "others" || step === "query" ? listedAt : null,
      isCurrent: step === "others" || step === "show" ? run.version === runsVersion : null,
      alone: run.aloneAt === null ? null : run.aloneAt === runsVersion,
      isOld: isQuery && (isTaking || staysOld) && run.isOld,
      seen: step === "decide" ? run.seen : null,
      before: step === "ready" || step === "give back" ? run.before : null,
    };
  });
  const { row } = cleaner;
  const isCurrent = row === null || cleaner.shardVersion === state.shardVersion;
  const zxids = new Set<number>();
  for (const { zxid } of state.lists) zxids.add(zxid);
  for (const { listedAt, seen, before } of runs) {
    for (const zxid of [listedAt, seen?.zxid, before]) if (typeof zxid === "number") zxids.add(zxid);
  }
  for (const zxid of [record?.zxid, row?.zxid, cleaner.oldest]) if (typeof zxid === "number") zxids.add(zxid);
  const ranks = new Map([...zxids].sort((a, b) => a - b).map((zxid, rank) => [zxid, rank]));
  const { lists, holder, ghosts, faultsLeft } = state;
  return JSON.stringify(
    { runs, lists, holder, ghosts, faultsLeft, record, cleaner: { ...cleaner, shardVersion: isCurrent } },
    (name, value: unknown) => ranked.has(name) && typeof value === "number" ? ranks.get(value) : value,
  );
}

/** Whoever it is: it needs no session of its own. */
export function cleanerMoves(
  state: ListState,
  out: Transition<ListState>[],
  has: (mistake: ListMistake) => boolean,
): void {
  const { cleaner } = state;
  const { row, step } = cleaner;
  const to = (
    label: string,
    change: Partial<Cleaner>,
    more: Partial<ListState> = {},
    kind: TransitionKind = "step",
  ) => out.push({ kind, label: `cleaner ${label}`, state: { ...state, ...more, cleaner: { ...cleaner, ...change } } });
  const isEarly = has("looks for lists before it reads what it clears");
  const zxids = state.lists.map(({ zxid }) => zxid);
  const oldest = zxids.length === 0 ? null : Math.min(...zxids);
  switch (step) {
    case "rest":
      if (isEarly) return void to("looks for lists", { step: "holder", oldest }, {}, "choice");
      if (state.record !== null) {
        const { record: row, shardVersion } = state;
        to("reads the record", { step: "lists", row, shardVersion }, {}, "choice");
      }
      return;
    case "lists":
      return void to("looks for lists", { step: "holder", oldest });
    case "holder": {
      const read = isEarly ? state.record : row;
      if (read === null) return void to("finds nothing", rest);
      const isKilled = read.holder !== null && read.holder !== state.holder;
      const shardVersion = isEarly ? state.shardVersion : cleaner.shardVersion;
      return void to("looks for the holder", { step: "write", row: read, shardVersion, isKilled });
    }
    case "write": {
      if (row === null) return;
      const record = recordOf(row);
      const isAlone = has("clears by the version of the record alone");
      const isThere = hasVersionOf(state.record, row) && (isAlone || cleaner.shardVersion === state.shardVersion);
      const least = cleaner.oldest === null ? null : BigInt(cleaner.oldest);
      const isNeeded = has("clears whatever has ended") ? row.holder !== null : isItemRecordNeeded(record, least);
      const more: Partial<ListState> = { zxid: state.zxid + 1 };
      if (!isNeeded && (isThere || has("clears by name, not by version"))) {
        return void to("deletes it", rest, { ...more, record: null, shardVersion: state.shardVersion + 1 });
      }
      if (!cleaner.isKilled || !isThere) return void to("leaves it", rest);
      const ended: Row = { holder: null, zxid: state.zxid + 1, version: row.version + 1 };
      return void to("writes that it had ended", rest, { ...more, record: ended });
    }
  }
}
