/**
 * Lists that are older than the end of an item they name (docs/protocol/pool.md) as an explicit-state model of one
 * item, with the recipe's own isListValidForItem, isItemRecordNeeded and findOtherRunsListNodes. Its lock is taken for
 * granted: one holder at a time, and no process of a job is left when its session ends. A read that a server answers
 * late is the same read made earlier.
 *
 * Models: docs/protocol/pool.md, src/coordination/pool/item_record.ts, src/coordination/pool/item_records.ts
 */
import {
  findOtherRunsListNodes,
  isListValidForItem,
  itemListNodeName,
} from "../../../src/coordination/pool/item_record.ts";
import type { Model, Transition, TransitionKind } from "../../support/explore.ts";
import {
  cleanerMoves,
  hasVersionOf,
  keyOf,
  type ListMistake,
  type ListState,
  recordOf,
  rest,
  type Row,
  type Run,
} from "./pool_list_world.ts";

export type ListFault = "lost reply" | "crash";

export interface ListModelOptions {
  /** One run for each: whether its list comes from a query. */
  readonly runs: readonly ("query" | "fixed")[];
  /** How often a query is asked. */
  readonly listsMax: number;
  readonly faults: readonly ListFault[];
  readonly faultsMax: number;
  readonly mistakes?: readonly ListMistake[];
}

export class PoolListModel implements Model<ListState> {
  readonly initial: readonly ListState[];
  readonly #options: ListModelOptions;

  constructor(options: ListModelOptions) {
    this.#options = options;
    const runs = options.runs.map(() => fresh(0));
    const { faultsMax: faultsLeft } = options;
    this.initial = [{
      zxid: 1,
      runsVersion: 0,
      lists: [],
      record: null,
      shardVersion: 0,
      holder: null,
      runs,
      ghosts: [],
      cleaner: rest,
      faultsLeft,
    }];
  }

  key(state: ListState): string {
    const { runs, mistakes } = this.#options;
    return keyOf(state, (who) => ({ isQuery: runs[who] === "query", staysOld: mistakes !== undefined }));
  }

  /** All is over, and nothing is left behind. */
  isDone({ runs, record, ghosts }: ListState): boolean {
    return record === null && ghosts.length === 0 && runs.every(({ step }) => step === "ended");
  }

  violation({ runs }: ListState): string | null {
    const who = runs.findIndex(({ step, isOld }, index) =>
      step === "working" && isOld && this.#options.runs[index] === "query"
    );
    return who === -1 ? null : `${sessionOf(who, runs[who])} runs the item by a list from before its end`;
  }

  idleViolation(): string | null {
    return null;
  }

  transitions(state: ListState): Transition<ListState>[] {
    const out: Transition<ListState>[] = [];
    for (const [who, run] of state.runs.entries()) {
      this.#moves(state, who, run, out);
      if (state.faultsLeft > 0 && this.#may("crash") && run.step !== "ended") this.#crash(state, who, run, out);
    }
    this.#ghosts(state, out);
    cleanerMoves(state, out, (mistake) => this.#has(mistake));
    return out;
  }

  #moves(state: ListState, who: number, run: Run, out: Transition<ListState>[]): void {
    const session = sessionOf(who, run);
    const zxid = state.zxid + 1;
    const to = (label: string, change: Partial<Run>, kind: TransitionKind = "step", more: Partial<ListState> = {}) =>
      out.push({
        kind,
        label: `${session} ${label}`,
        state: withRun({ ...state, ...more }, who, { ...run, ...change }),
      });
    const write = (label: string, more: Partial<ListState>, change: Partial<Run>) => {
      to(label, change, "step", { ...more, zxid });
      if (!this.#may("lost reply") || state.faultsLeft === 0) return;
      const faultsLeft = state.faultsLeft - 1;
      to(`${label}, not done, unanswered`, {}, "fault", { faultsLeft });
      to(`${label}, done, unanswered`, {}, "fault", { ...more, zxid, faultsLeft });
    };
    const isQuery = this.#options.runs[who] === "query";
    const late = this.#has("notes the transaction after its query has begun");
    switch (run.step) {
      case "begin": {
        const lists = run.lists + 1;
        if (!isQuery) return write("joins the shared list", this.#shown(state, session, zxid), { step: "take", lists });
        if (late) return void to("begins its query", { step: "show", isOld: false, lists });
        if (run.lists > 0 && this.#has("goes on with the list before")) {
          write("shows a new list and takes from the last", this.#shown(state, session, zxid), {
            step: "take",
            listedAt: zxid,
            lists,
          });
        }
        if (this.#has("shows its list after it has raised the version")) {
          return write("raises the version", { runsVersion: state.runsVersion + 1 }, {
            step: "show",
            version: state.runsVersion + 1,
            lists,
          });
        }
        return write("shows its list", this.#shown(state, session, zxid), {
          step: "others",
          listedAt: zxid,
          version: state.runsVersion + 1,
          aloneAt: null,
          lists,
        });
      }
      case "show": {
        const shown = this.#shown(state, session, zxid);
        if (!late) return write("shows its list", { lists: shown.lists }, { step: "others", listedAt: zxid });
        return write("shows its list", shown, { step: "others", listedAt: zxid, version: state.runsVersion + 1 });
      }
      case "others": {
        const names = state.lists.map(({ owner }) => itemListNodeName(owner));
        const isAlone = findOtherRunsListNodes(names, session).length === 0;
        return void to("looks for lists", { step: late ? "take" : "query", aloneAt: isAlone ? run.version : null });
      }
      case "query":
        return void to("begins its query", { step: "take", isOld: false });
      case "take":
        return this.#take(state, who, run, { to, write });
      case "claim": {
        const record: Row = { holder: holderOf(who, run), zxid, version: 0 };
        if (this.#has("writes no record before the end")) {
          return void to("goes on", { step: "decide", seen: state.record });
        }
        if (state.record === null) return write("writes that it runs", { record }, { step: "ready", before: null });
        return void to("finds a record", { step: "decide", seen: state.record });
      }
      case "decide":
        return this.#decide(state, who, run, { to, write });
      case "ready": {
        to("begins the job", { step: "working" }, "choice");
        if (!this.#has("writes no record before the end")) to("does not begin it", { step: "give back" }, "choice");
        return;
      }
      case "give back": {
        const record = run.before === null ? null : written(state.record, null, run.before);
        if (state.holder !== holderOf(who, run)) return void to("has lost it", { step: "listed" });
        const shardVersion = state.shardVersion + (record === null ? 1 : 0);
        return write("gives it back", { holder: null, record, shardVersion }, { step: "listed" });
      }
      case "working":
        return void to("comes to the end of the job", { step: "end", isOld: true }, "choice", {
          runs: endedIn(state.runs),
        });
      case "end":
        return this.#end(state, who, run, { to, write });
      case "write end": // of the wrong order only
        return write("writes the end", { record: written(state.record, null, zxid) }, { step: "listed" });
      case "listed": {
        if (isQuery && run.lists < this.#options.listsMax) to("asks again", { step: "begin" }, "choice");
        const lists = state.lists.filter(({ owner }) => owner !== session);
        return void to("ends", { ...fresh(run.life), step: "ended" }, "step", { lists, zxid });
      }
      case "ended":
    }
  }

  #take(state: ListState, who: number, run: Run, { to, write }: Moves): void {
    const holder = holderOf(who, run);
    if (state.holder === holder) return void to("finds that it has it", { step: "claim" }); // the answer was lost
    to("does not find it free", { step: "listed" });
    if (state.holder !== null) return;
    const zxid = state.zxid + 1;
    const record: Row = { holder, zxid, version: 0 };
    const hasNone = this.#has("writes no record before the end");
    if (state.record === null && !hasNone) {
      write("takes it and writes that it runs", { holder, record }, { step: "ready", before: null });
    }
    write("takes it", { holder }, { step: "claim" });
  }

  #decide(state: ListState, who: number, run: Run, { to, write }: Moves): void {
    const zxid = state.zxid + 1;
    const { seen, listedAt } = run;
    const held = holderOf(who, run);
    if (state.holder !== held) return void to("has lost it", { step: "listed" });
    if (seen?.holder === held) return void to("finds its own record", { step: "ready", before: zxid });
    const isMistaken = this.#has("takes the item of a pool that was killed for one that ended long ago");
    const isKilled = seen !== null && seen.holder !== null;
    const isValid = seen === null || listedAt === null || this.#options.runs[who] === "fixed" ||
      (isKilled && isMistaken) || isListValidForItem(recordOf(seen), BigInt(listedAt));
    if (this.#has("writes no record before the end")) {
      return isValid
        ? void to("may run it", { step: "ready", before: null })
        : write("gives it back", { holder: null }, { step: "listed" });
    }
    if (seen === null || !hasVersionOf(state.record, seen)) {
      return void to("looks again", { step: "claim" });
    }
    if (isValid) {
      const before = isKilled ? zxid : seen.zxid;
      return write("writes that it runs", { record: written(seen, held, zxid) }, { step: "ready", before });
    }
    if (!isKilled) return write("gives it back", { holder: null }, { step: "listed" });
    // Two transactions, as the second gives back what nothing rests on.
    return write("writes that it had ended", { record: written(seen, null, zxid) }, { step: "claim" });
  }

  #end(state: ListState, who: number, run: Run, { to, write }: Moves): void {
    const zxid = state.zxid + 1;
    const held = holderOf(who, run);
    if (state.holder !== held) return void to("finds that it is given back", { step: "listed" });
    const isUnchecked = this.#has("deletes its record whether or not a list has come");
    if (run.aloneAt !== null) {
      if (run.aloneAt !== state.runsVersion && !isUnchecked) return void to("is not alone", { aloneAt: null });
      const shardVersion = state.shardVersion + 1;
      return write("gives it back", { holder: null, record: null, shardVersion }, { step: "listed" });
    }
    if (this.#has("writes the end after the lock is given back")) {
      return write("gives it back", { holder: null }, { step: "write end" });
    }
    const record = written(state.record, null, zxid);
    return write("gives it back and writes the end", { holder: null, record }, { step: "listed" });
  }

  #shown(state: ListState, session: string, zxid: number): Pick<ListState, "lists" | "runsVersion"> {
    const others = state.lists.filter(({ owner }) => owner !== session);
    return { lists: [...others, { owner: session, zxid }], runsVersion: state.runsVersion + 1 };
  }

  #crash(state: ListState, who: number, run: Run, out: Transition<ListState>[]): void {
    const session = sessionOf(who, run);
    const ghosts = [...state.ghosts, { session, works: run.step === "working" }];
    const next = { ...state, ghosts, faultsLeft: state.faultsLeft - 1 };
    out.push({
      kind: "fault",
      label: `${session} is killed, and comes again`,
      state: withRun(next, who, fresh(run.life + 1)),
    });
  }

  /** What it ran dies before its session ends. */
  #ghosts(state: ListState, out: Transition<ListState>[]): void {
    for (const ghost of state.ghosts) {
      const { session, works } = ghost;
      const others = state.ghosts.filter((other) => other !== ghost);
      const next: ListState = works
        ? { ...state, ghosts: [...others, { session, works: false }], runs: endedIn(state.runs) }
        : {
          ...state,
          ghosts: others,
          zxid: state.zxid + 1,
          lists: state.lists.filter(({ owner }) => owner !== session),
          holder: state.holder?.startsWith(`${session}.`) === true ? null : state.holder,
        };
      out.push({
        kind: "step",
        label: works ? `the job of ${session} dies` : `session ${session} expires`,
        state: next,
      });
    }
  }

  #may(fault: ListFault): boolean {
    return this.#options.faults.includes(fault);
  }

  #has(mistake: ListMistake): boolean {
    return this.#options.mistakes?.includes(mistake) ?? false;
  }
}

interface Moves {
  readonly to: (label: string, change: Partial<Run>, kind?: TransitionKind, more?: Partial<ListState>) => unknown;
  readonly write: (label: string, more: Partial<ListState>, change: Partial<Run>) => void;
}

/** The record after a write: a new node if there was none. */
const written = (before: Row | null, holder: string | null, zxid: number): Row => ({
  holder,
  zxid,
  version: (before?.version ?? -1) + 1,
});

const fresh = (life: number): Run => ({
  step: "begin",
  life,
  lists: 0,
  listedAt: null,
  version: 0,
  aloneAt: null,
  isOld: false,
  seen: null,
  before: null,
});

const sessionOf = (who: number, run: Pick<Run, "life"> | undefined): string => `${"abc"[who]}${run?.life ?? ""}`;

/** A new one for each list: what was taken from one is given back before the next. */
const holderOf = (who: number, run: Run): string => `${sessionOf(who, run)}.${run.lists}`;

/** Its job's processes are dead: the item has ended, whoever notes it when. */
const endedIn = (runs: readonly Run[]): Run[] => runs.map((run) => ({ ...run, isOld: true }));

function withRun(state: ListState, who: number, run: Run): ListState {
  return { ...state, runs: state.runs.map((other, index) => (index === who ? run : other)) };
}
