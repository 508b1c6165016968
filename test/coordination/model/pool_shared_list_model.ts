/**
 * The list that runs of a pool share (docs/protocol/pool.md) as an explicit-state model of one item, with the recipe's
 * own isDoneInSharedList and isItemRecordNeeded. The lock of the item is taken for granted: one holder at a time, and
 * no process of a job is left when its session ends.
 *
 * Models: docs/protocol/pool.md, src/coordination/pool/shared_list.ts, src/coordination/pool/item_record.ts
 */
import {
  isDoneInSharedList,
  isItemRecordNeeded,
  type PoolItemRecord,
} from "../../../src/coordination/pool/item_record.ts";
import type { Model, Transition, TransitionKind } from "../../support/explore.ts";

export type SharedListFault = "lost reply" | "crash";

/** Ways to build it wrong: each must be found out. */
export type SharedListMistake =
  | "takes its own entry for the start of the list"
  | "joins whoever has left meanwhile"
  | "keeps the container of the list before"
  | "takes a failure for the end of the item"
  | "takes a killed run for the end of the item"
  | "deletes its record at the end of the item"
  | "clears the records before it leaves"
  | "leaves the list while it waits for items";

export interface SharedListOptions {
  readonly runs: number;
  /** How often each run takes part in a list. */
  readonly roundsMax: number;
  readonly faults: readonly SharedListFault[];
  readonly faultsMax: number;
  readonly mistakes?: readonly SharedListMistake[];
}

interface Row {
  /** The session that runs the item; null when it has ended. */
  readonly holder: string | null;
  readonly isDone: boolean;
  /** Of its end. */
  readonly zxid: number;
  /** The write that made it. A cleanup recognizes it by the versions of node and shard: see pool_list_model.ts. */
  readonly writtenAt: number;
}

interface Run {
  readonly step:
    | "read"
    | "join"
    | "take"
    | "claim"
    | "decide"
    | "ready"
    | "give back"
    | "working"
    | "end"
    | "leave"
    | "clear"
    | "ended";
  readonly life: number;
  readonly rounds: number;
  readonly members: readonly string[] | null;
  readonly startedAt: number | null;
  readonly seen: Row | null;
  /** How the job has ended. */
  readonly isDone: boolean;
}

interface Cleaner {
  readonly row: Row | null;
  readonly step: "rest" | "lists" | "write";
  readonly oldest: number | null;
}

interface SharedListState {
  readonly zxid: number;
  readonly shared: { readonly startedAt: number; readonly members: readonly string[] } | null;
  readonly record: Row | null;
  readonly holder: string | null;
  /** The truth: a run of the list that is there now has done the item, and has written it down. */
  readonly isDoneInList: boolean;
  readonly runs: readonly Run[];
  /** Sessions of killed runs, and whether what they ran may still be alive. */
  readonly ghosts: readonly { readonly session: string; readonly works: boolean }[];
  readonly cleaner: Cleaner;
  readonly faultsLeft: number;
  readonly wrong: string | null;
}

const rest: Cleaner = { row: null, step: "rest", oldest: null };
const ranked = new Set(["zxid", "writtenAt", "startedAt", "oldest"]);

export class PoolSharedListModel implements Model<SharedListState> {
  readonly initial: readonly SharedListState[];
  readonly #options: SharedListOptions;

  constructor(options: SharedListOptions) {
    this.#options = options;
    this.initial = [{
      zxid: 1,
      shared: null,
      record: null,
      holder: null,
      isDoneInList: false,
      runs: Array.from({ length: options.runs }, () => fresh(0, 1)),
      ghosts: [],
      cleaner: rest,
      faultsLeft: options.faultsMax,
      wrong: null,
    }];
  }

  /** What can make a difference: of transactions their order, of runs what their next steps read. */
  key(state: SharedListState): string {
    const zxids = new Set<number>();
    const note = (name: string, value: unknown) => {
      if (ranked.has(name) && typeof value === "number") zxids.add(value);
      return value;
    };
    const { zxid: _, record, cleaner } = state;
    const isThere = (row: Row | null) => row?.writtenAt === record?.writtenAt;
    const runs = state.runs.map((run) => {
      const { step } = run;
      const isChoosing = step === "take" || step === "claim" || step === "decide";
      return {
        ...run,
        members: step === "join" ? run.members?.slice(0, 1) ?? null : null,
        startedAt: isChoosing ? run.startedAt : null,
        seen: step === "ready" || step === "give back" || (step === "decide" && isThere(run.seen)) ? run.seen : null,
        isDone: step === "end" && run.isDone,
      };
    });
    const isGone = cleaner.row !== null && !isThere(cleaner.row);
    const kept = { ...state, zxid: 0, runs, cleaner: isGone ? cleaner.step : cleaner };
    JSON.stringify(kept, note);
    const ranks = new Map([...zxids].sort((a, b) => a - b).map((zxid, rank) => [zxid, rank]));
    return JSON.stringify(
      kept,
      (name, value: unknown) => ranked.has(name) && typeof value === "number" ? ranks.get(value) : value,
    );
  }

  /** All is over, and nothing is left behind. */
  isDone({ runs, record, ghosts }: SharedListState): boolean {
    return record === null && ghosts.length === 0 && runs.every(({ step }) => step === "ended");
  }

  violation({ wrong }: SharedListState): string | null {
    return wrong;
  }

  idleViolation(): string | null {
    return null;
  }

  transitions(state: SharedListState): Transition<SharedListState>[] {
    const out: Transition<SharedListState>[] = [];
    for (const [who, run] of state.runs.entries()) {
      this.#moves(state, who, run, out);
      if (state.faultsLeft > 0 && this.#options.faults.includes("crash") && run.step !== "ended") {
        out.push({
          kind: "fault",
          label: `${sessionOf(who, run)} is killed, and comes again`,
          state: withRun(
            {
              ...state,
              ghosts: [...state.ghosts, { session: sessionOf(who, run), works: run.step === "working" }],
              faultsLeft: state.faultsLeft - 1,
            },
            who,
            fresh(run.life + 1, run.rounds),
          ),
        });
      }
    }
    this.#servers(state, out);
    this.#cleaner(state, out);
    return out;
  }

  #moves(state: SharedListState, who: number, run: Run, out: Transition<SharedListState>[]): void {
    const session = sessionOf(who, run);
    const { shared, record, holder } = state;
    const zxid = state.zxid + 1;
    const to = (
      label: string,
      change: Partial<Run>,
      { kind = "step", ...more }: Partial<SharedListState> & { kind?: TransitionKind } = {},
    ) =>
      out.push({
        kind,
        label: `${session} ${label}`,
        state: withRun({ ...state, ...more }, who, { ...run, ...change }),
      });
    const write = (label: string, more: Partial<SharedListState>, change: Partial<Run>) => {
      to(label, change, { ...more, zxid });
      if (!this.#options.faults.includes("lost reply") || state.faultsLeft === 0) return;
      const faultsLeft = state.faultsLeft - 1;
      const again: Partial<Run> = run.step === "join" ? { step: "read", members: null } : {};
      to(`${label}, not done, unanswered`, again, { kind: "fault", faultsLeft });
      to(`${label}, done, unanswered`, again, { kind: "fault", ...more, zxid, faultsLeft });
    };
    const running: Row = { holder: session, isDone: false, zxid, writtenAt: zxid };
    switch (run.step) {
      case "read": {
        if (shared?.members.includes(session)) {
          const startedAt = this.#has("takes its own entry for the start of the list") ? zxid : shared.startedAt;
          return void to("finds that it is a member", { step: "take", startedAt });
        }
        return void to("reads the members", { step: "join", members: shared?.members ?? null });
      }
      case "join":
        return this.#join(state, run, { session, to, write });
      case "take": { // at any time, because an item of a list that is still open may come late
        if (this.#has("leaves the list while it waits for items") && shared?.members.includes(session)) {
          to("leaves until an item comes", {}, { ...this.#without(state, session), zxid });
        }
        if (holder === session) return void to("finds that it has it", { step: "claim" }); // the response was lost
        if (record !== null && !this.#mayRun(run, record)) this.#skip(state, "sees that it is done", to);
        if (holder !== null) return void to("leaves it to its holder", { step: "leave" }, { kind: "choice" });
        if (record === null) write("takes it and writes that it runs", { holder: session, record: running }, ready);
        return write("takes it", { holder: session }, { step: "claim" });
      }
      case "claim":
        if (record === null) return write("writes that it runs", { record: running }, ready);
        return void to("finds a record", { step: "decide", seen: record });
      case "decide": {
        if (run.seen === null || record?.writtenAt !== run.seen.writtenAt) {
          return void to("looks again", { step: "claim" });
        }
        if (record.holder === session) return void to("finds its own record", ready);
        if (this.#mayRun(run, record)) return write("writes that it runs", { record: running }, ready);
        return this.#skip(state, "gives it back, as it is done", (label, change, more) => {
          write(label, { ...more, holder: null }, change);
        });
      }
      case "ready": {
        const wrong = state.isDoneInList ? `${session} runs the item again` : null;
        to("begins the job", { step: "working" }, { kind: "choice", wrong });
        return void to("does not begin it", { step: "give back" }, { kind: "choice" });
      }
      case "give back": {
        if (holder !== session) return void to("finds that it is given back", { step: "leave", seen: null });
        const { seen } = run;
        const undone: Row | null = seen === null
          ? null
          : seen.holder === null
          ? { ...seen, writtenAt: zxid }
          : { holder: null, isDone: false, zxid, writtenAt: zxid };
        return write("gives it back", { holder: null, record: undone }, { step: "leave", seen: null });
      }
      case "working":
        for (const isDone of [true, false]) {
          to(isDone ? "has done it" : "has failed", { step: "end", isDone }, { kind: "choice" });
        }
        return;
      case "end": {
        if (holder !== session) return void to("finds that it is given back", { step: "leave", seen: null });
        const isDeleted = this.#has("deletes its record at the end of the item");
        const isDone = run.isDone || this.#has("takes a failure for the end of the item");
        const isDoneInList = state.isDoneInList || (run.isDone && (shared?.members.length ?? 0) > 0);
        const ended: Row | null = isDeleted ? null : { holder: null, isDone, zxid, writtenAt: zxid };
        return write("writes the end and gives it back", { holder: null, record: ended, isDoneInList }, {
          step: "leave",
          seen: null,
        });
      }
      case "leave": {
        const isEarly = this.#has("clears the records before it leaves");
        if (isEarly && shared?.members.length === 1 && record !== null && record.holder === null) {
          to("is the last, and clears the record", {}, { record: null, zxid });
        }
        return write("leaves", this.#without(state, session), { step: "clear" });
      }
      case "clear": {
        const next = run.rounds < this.#options.roundsMax ? fresh(run.life, run.rounds + 1) : null;
        if (next !== null) to("begins again", next, { kind: "choice" });
        return void to("ends", { ...fresh(run.life, run.rounds), step: "ended" });
      }
      case "ended":
    }
  }

  #join(state: SharedListState, run: Run, { session, to, write }: Moves): void {
    const { shared } = state;
    const zxid = state.zxid + 1;
    const [first] = run.members ?? [];
    const begins = { shared: { startedAt: zxid, members: [session] } };
    if (first === undefined) {
      const isEmpty = run.members === null ? shared === null : shared?.members.length === 0;
      if (!isEmpty) return void to("finds that others were faster", { step: "read" });
      if (run.members !== null && shared !== null && this.#has("keeps the container of the list before")) {
        const { startedAt } = shared;
        return write("begins a list", { shared: { startedAt, members: [session] } }, { step: "take", startedAt });
      }
      return write("begins a list", begins, { step: "take", startedAt: zxid });
    }
    const isBlind = this.#has("joins whoever has left meanwhile");
    if (shared === null || !(isBlind || shared.members.includes(first))) {
      return void to("finds that the member has left", { step: "read" });
    }
    const startedAt = this.#has("takes its own entry for the start of the list") ? zxid : shared.startedAt;
    const members = [...shared.members, session];
    write("joins the list", { shared: { ...shared, members } }, { step: "take", startedAt });
  }

  /** The run leaves the item to the others. That is wrong unless one of the list has done it. */
  #skip(
    state: SharedListState,
    label: string,
    to: (label: string, change: Partial<Run>, more: Partial<SharedListState>) => unknown,
  ): void {
    const wrong = state.isDoneInList ? null : "An item is skipped that no run of the list has done";
    to(label, { step: "leave", seen: null }, { wrong });
  }

  #mayRun(run: Run, row: Row): boolean {
    if (row.holder !== null) return !this.#has("takes a killed run for the end of the item");
    return run.startedAt === null || !isDoneInSharedList(recordOf(row), BigInt(run.startedAt));
  }

  #without(state: SharedListState, session: string): Pick<SharedListState, "shared" | "isDoneInList"> {
    const { shared } = state;
    if (shared === null) return { shared, isDoneInList: false };
    const members = shared.members.filter((other) => other !== session);
    return { shared: { ...shared, members }, isDoneInList: state.isDoneInList && members.length > 0 };
  }

  /** Sessions end, after what their runs had started is dead; an empty container is removed. */
  #servers(state: SharedListState, out: Transition<SharedListState>[]): void {
    for (const ghost of state.ghosts) {
      const { session, works } = ghost;
      const others = state.ghosts.filter((other) => other !== ghost);
      const next: SharedListState = works ? { ...state, ghosts: [...others, { session, works: false }] } : {
        ...state,
        ...this.#without(state, session),
        ghosts: others,
        zxid: state.zxid + 1,
        holder: state.holder === session ? null : state.holder,
      };
      out.push({
        kind: "step",
        label: works ? `the job of ${session} dies` : `session ${session} expires`,
        state: next,
      });
    }
    if (state.shared?.members.length === 0) {
      out.push({ kind: "choice", label: "the empty container is removed", state: { ...state, shared: null } });
    }
  }

  /** Whoever it is: it needs no session of its own. */
  #cleaner(state: SharedListState, out: Transition<SharedListState>[]): void {
    const { cleaner, record, shared } = state;
    const to = (label: string, next: Cleaner, more: Partial<SharedListState> = {}, kind: TransitionKind = "step") =>
      out.push({ kind, label: `cleaner ${label}`, state: { ...state, ...more, cleaner: next } });
    const { row } = cleaner;
    if (cleaner.step === "rest" || row === null) {
      if (record !== null) to("reads the record", { row: record, step: "lists", oldest: null }, {}, "choice");
    } else if (cleaner.step === "lists") {
      const oldest = shared !== null && shared.members.length > 0 ? shared.startedAt : null;
      to("looks for the list", { row, step: "write", oldest });
    } else {
      const zxid = state.zxid + 1;
      const oldest = cleaner.oldest === null ? null : BigInt(cleaner.oldest);
      if (record?.writtenAt !== row.writtenAt) return void to("finds another record", rest);
      if (!isItemRecordNeeded(recordOf(row), oldest)) return void to("deletes it", rest, { record: null, zxid });
      const isKilled = row.holder !== null && row.holder !== state.holder;
      if (!isKilled) return void to("leaves it", rest);
      to("writes that it had ended", rest, { record: { holder: null, isDone: false, zxid, writtenAt: zxid }, zxid });
    }
  }

  #has(mistake: SharedListMistake): boolean {
    return this.#options.mistakes?.includes(mistake) ?? false;
  }
}

interface Moves {
  readonly session: string;
  readonly to: (label: string, change: Partial<Run>) => unknown;
  readonly write: (label: string, more: Partial<SharedListState>, change: Partial<Run>) => void;
}

const ready: Partial<Run> = { step: "ready" };

const fresh = (life: number, rounds: number): Run => ({
  step: "read",
  life,
  rounds,
  members: null,
  startedAt: null,
  seen: null,
  isDone: false,
});

/** A new one for each round: a run that begins again is another run. */
const sessionOf = (who: number, { life, rounds }: Run): string => `${"abc"[who]}${life}.${rounds}`;

const recordOf = ({ holder, zxid, isDone }: Row): PoolItemRecord =>
  holder === null ? { state: "ended", zxid: BigInt(zxid), isDone } : { state: "running", holder };

function withRun(state: SharedListState, who: number, run: Run): SharedListState {
  return { ...state, runs: state.runs.map((other, index) => (index === who ? run : other)) };
}
