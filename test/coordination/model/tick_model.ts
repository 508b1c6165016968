/**
 * The protocol of docs/protocol/tick.md as an explicit-state model, with the product's own decision. One lock, one
 * schedule, and the records of its history. Each request is one step of the server, and its reply may be lost; the
 * schedule and the lock are read in separate steps. At the end one faultless call settles what is left, and the history
 * must account for every tick.
 *
 * Models: docs/protocol/tick.md, src/coordination/tick/acquire_tick.ts, src/coordination/tick/tick_claim.ts,
 * src/coordination/tick/tick_decision.ts
 */
import {
  decideTick,
  type SettledTickRecord,
  type TickAttempt,
  type TickDecision,
  type TickDecisionFacts,
  tickProgressAfterEnd,
} from "../../../src/coordination/tick/tick_decision.ts";
import type { Model, Transition } from "../../support/explore.ts";
import type { Caller, TickMistake, TickModelOptions, TickWorld, Want } from "./tick_world.ts";

const calendar = {
  last: (at: number) => (at >= 1 ? at : null),
  next: (after: number) => after + 1,
  count: (from: number, to: number) => Math.max(0, to - from),
};

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
}

export class TickModel implements Model<TickWorld> {
  readonly initial: readonly TickWorld[];
  readonly #options: TickModelOptions;

  constructor(options: TickModelOptions) {
    this.#options = options;
    const { calls, faultsMax, stepsBack = 0, sweeps = 0 } = options;
    const lock = { v: 0, holder: null };
    const caller = (count: number): Caller => ({
      ...{ at: "idle", calls: count, guid: "", tick: null, lock, want: null, result: "done", endVersion: 0 } as const,
    });
    this.initial = [{
      ...{ now: 1, stepsBack, faults: faultsMax, sweeps, sweep: null, lock, records: [], floor: 0 },
      tick: { v: 0, uptoMs: 0, open: null, retry: null },
      ...{ started: {}, completed: {}, ghosts: [], sessions: 0, wrong: null },
      callers: [...calls, 1].map(caller), // the last one audits
    }];
  }

  transitions(from: TickWorld): Transition<TickWorld>[] {
    const out: Transition<TickWorld>[] = [];
    const add = (kind: Transition<TickWorld>["kind"], label: string, change: (world: TickWorld) => void) => {
      const state = structuredClone(from);
      change(state);
      out.push({ kind, label, state });
    };
    if (from.now < this.#options.ticks) add("step", "time passes", (s) => s.now++);
    if (from.stepsBack > 0 && from.now > 1) {
      add("choice", "the leader's clock steps back", (s) => {
        s.now--;
        s.stepsBack--;
      });
    }
    from.ghosts.forEach((ghost, index) =>
      add("step", `session ${ghost} expires`, (s) => {
        s.ghosts.splice(index, 1);
        if (s.lock.holder === ghost) s.lock = { ...s.lock, holder: null };
      })
    );
    if (this.#has("ttlLock") && from.lock.holder !== null) {
      add("choice", "the lock's time is over", (s) => s.lock = { ...s.lock, holder: null });
    }
    this.#addSweep(from, add);
    from.callers.forEach((_, index) => this.#addCaller(from, index, add));
    return out;
  }

  #has(mistake: TickMistake): boolean {
    return this.#options.mistake === mistake;
  }

  #addSweep(from: TickWorld, add: Add): void {
    const { tick } = from;
    if (from.sweeps > 0 && from.sweep === null && tick !== null && tick.open === null && tick.uptoMs <= from.now - 2) {
      add("choice", "a sweep reads the schedule's node", (s) => s.sweep = tick.v);
    }
    if (from.sweep === null) return;
    add("step", "the sweep deletes the node", (s) => {
      if (s.tick !== null && (this.#has("sweepBlind") || s.tick.v === s.sweep)) s.tick = null;
      s.sweep = null;
      s.sweeps--;
    });
  }

  #addCaller(from: TickWorld, index: number, add: Add): void {
    const caller = from.callers[index] as Caller;
    const auditor = from.callers.length - 1;
    const isAuditor = index === auditor;
    const me = (s: TickWorld) => s.callers[index] as Caller;
    if (caller.at === "idle") {
      const others = from.callers.slice(0, auditor).every(({ at }) => at === "idle") && from.ghosts.length === 0;
      const isLast = others && from.now === this.#options.ticks && from.sweep === null && from.stepsBack === 0;
      if (caller.calls === 0 || (isAuditor ? !isLast : from.callers[auditor]?.calls !== 1)) return;
      add(isAuditor ? "step" : "choice", `host ${index} calls`, (s) => {
        Object.assign(me(s), { at: "read tick", calls: caller.calls - 1, guid: `g${s.sessions++}` });
      });
      return;
    }
    if (!isAuditor && from.faults > 0) {
      add("fault", `host ${index} is killed`, (s) => {
        s.faults--;
        if (s.lock.holder === caller.guid) s.ghosts.push(caller.guid);
        this.#goIdle(me(s));
      });
      add("fault", `the session of host ${index} expires, and its command is stopped first`, (s) => {
        s.faults--;
        if (s.lock.holder === caller.guid) s.lock = { ...s.lock, holder: null };
        this.#goIdle(me(s));
      });
    }
    this.#addStep(from, index, add);
  }

  #goIdle(caller: Caller): void {
    const { calls } = caller;
    Object.assign(caller, {
      at: "idle",
      calls,
      guid: "",
      tick: null,
      want: null,
      endVersion: 0,
      lock: { v: 0, holder: null },
    });
  }

  #addStep(from: TickWorld, index: number, add: Add): void {
    const caller = from.callers[index] as Caller;
    const me = (s: TickWorld) => s.callers[index] as Caller;
    const readAgain = (s: TickWorld) => void (me(s).at = "read tick");
    const write = (label: string, { apply, ok, refused, lost }: Write) => {
      add("step", `host ${index} ${label}`, (s) => apply(s, me(s)) ? ok(s, me(s)) : refused(s, me(s)));
      if (index === from.callers.length - 1 || from.faults === 0) return;
      for (const isDone of [true, false]) {
        add("fault", `host ${index} ${label}; the reply is lost, ${isDone ? "done" : "not done"}`, (s) => {
          s.faults--;
          if (isDone) apply(s, me(s));
          lost(s, me(s));
        });
      }
    };
    switch (caller.at) {
      case "read tick":
        return add(
          "step",
          `host ${index} reads the schedule's node`,
          (s) => Object.assign(me(s), { tick: s.tick, at: "read lock" }),
        );
      case "read lock":
        for (const isBehind of this.#isContending(from, index) ? [false, true] : [false]) {
          add(
            "step",
            `host ${index} reads the lock${isBehind ? ", behind another contender" : ""}, and decides`,
            (s) => {
              me(s).lock = s.lock;
              this.#decide(s, index, isBehind);
            },
          );
        }
        return;
      case "claim":
      case "grant":
        this.#addStops(from, index, add);
        return write("asks for the lock and the tick", {
          apply: (s, x) => this.#grant(s, x),
          ok: (s, x) => this.#has("lateClaim") ? void (x.at = "late claim") : this.#begin(s, x),
          refused: readAgain,
          lost: (_, x) => void (x.at = this.#has("noLookAfterLost") ? "read tick" : "recover claim"),
        });
      case "give back":
        return add("step", `host ${index} gives back what it has claimed`, (s) => {
          const { guid } = me(s);
          if (s.tick !== null && s.tick.open?.guid === guid && s.lock.holder === guid) {
            const { tickMs, attempt } = s.tick.open;
            s.tick = { ...s.tick, v: s.tick.v + 1, open: null, retry: { tickMs, attempt, fromMs: 0, untilMs: null } };
          }
          if (s.lock.holder === guid) s.lock = { ...s.lock, holder: null };
          this.#goIdle(me(s));
        });
      case "late claim":
        return write("writes the claim", {
          apply: (s, x) => this.#writeClaim(s, x),
          ok: (s, x) => this.#begin(s, x),
          refused: readAgain,
          lost: () => {},
        });
      case "recover claim":
        return add("step", `host ${index} looks after its own writes`, (s) => {
          if (s.lock.holder === me(s).guid) this.#begin(s, me(s));
          else readAgain(s);
        });
      case "run":
        if (this.#has("givesBackStarted")) {
          add("fault", `host ${index} is stopped while its command runs`, (s) => void (me(s).at = "give back"));
        }
        for (const result of ["done", "failed"] as const) {
          add("step", `the command of host ${index} ends: ${result}`, (s) => {
            Object.assign(me(s), { result, at: this.#has("endAfterRelease") ? "release" : "end" });
            const { tickMs } = runOf(me(s));
            if (result === "done") s.completed[tickMs] = (s.completed[tickMs] ?? 0) + 1;
          });
        }
        return;
      case "release":
        return write("releases", {
          apply(s, x) {
            if (s.lock.holder === x.guid) s.lock = { ...s.lock, holder: null };
            return true;
          },
          ok: (_, x) => void (x.at = "end"),
          refused: readAgain,
          lost: () => {},
        });
      case "end":
        return write("writes the end and releases", {
          apply: (s, x) => this.#writeEnd(s, x),
          ok: (_, x) => this.#goIdle(x),
          refused: (s, x) => {
            // The own grant is gone with the session; else a skip came between, and its version is taken.
            if (s.lock.holder !== x.guid && !this.#has("endAfterRelease") && !this.#has("ttlLock")) this.#goIdle(x);
            else x.endVersion = s.tick?.v ?? 0;
          },
          lost: (_, x) => void (x.at = "recover end"),
        });
      case "recover end":
        return add("step", `host ${index} looks after its own writes`, (s) => {
          const x = me(s);
          const isOpen = s.lock.holder === x.guid || (this.#has("endAfterRelease") && s.tick?.open?.guid === x.guid);
          if (isOpen) Object.assign(x, { at: "end", endVersion: s.tick?.v ?? 0 });
          else this.#goIdle(x);
        });
      case "skip":
      case "settle":
        return write(`records: ${caller.at}`, {
          apply: (s, x) => this.#writeSettled(s, x),
          ...{ ok: readAgain, refused: readAgain, lost: readAgain },
        });
    }
  }

  /** A call is stopped while its request is on its way, which may be executed or not. */
  #addStops(from: TickWorld, index: number, add: Add): void {
    if (this.#options.stops !== true || from.faults === 0 || index === from.callers.length - 1) return;
    for (const isDone of [true, false]) {
      add(
        "fault",
        `host ${index} is stopped while it asks for the lock and the tick, ${isDone ? "" : "not "}done`,
        (s) => {
          const caller = s.callers[index] as Caller;
          s.faults--;
          if (isDone) this.#grant(s, caller);
          caller.at = "give back";
        },
      );
    }
  }

  /** True if another caller may be ahead in the queue of a free lock. */
  #isContending({ callers, lock }: TickWorld, index: number): boolean {
    return lock.holder === null &&
      callers.some(({ at }, other) => other !== index && (at === "read lock" || at === "claim"));
  }

  #decide(s: TickWorld, index: number, isBehind: boolean): void {
    const x = s.callers[index] as Caller;
    const { retriesMax = 0, waits = false, lateMax = Infinity } = this.#options;
    const offset = this.#has("ownClock") ? this.#options.skew?.[index] ?? 0 : 0;
    const isAuditor = index === s.callers.length - 1;
    const decision = this.#mistaken({
      calendar,
      progress: x.tick,
      nowMs: s.now + offset,
      holders: x.lock.holder === null ? [] : [x.lock.holder],
      isFree: x.lock.holder === null && !isBehind,
      waits: waits && !isAuditor,
      ...{ retriesMax, retryDelayMs: 0, lateMsMax: lateMax },
    });
    if (decision.do === "skip" && x.lock.holder === null) {
      s.wrong = `tick ${decision.uptoMs} is skipped, and no command runs`;
    }
    switch (decision.do) {
      case "leave":
        return this.#goIdle(x);
      case "wait":
        x.at = "read tick"; // the wait ends with any change; it reads again
        return;
      case "claim":
        Object.assign(x, { want: decision, at: this.#has("lateClaim") ? "grant" : "claim" });
        return;
      default:
        Object.assign(x, { want: decision, at: decision.do });
    }
  }

  /** The decision, with the mistakes that change it. */
  #mistaken(facts: TickDecisionFacts): TickDecision {
    const { progress, isFree } = facts;
    const { open = null, retry = null, uptoMs = 0 } = progress ?? {};
    if (this.#has("skipsBehind") && !isFree) return decideTick({ ...facts, holders: ["another"] });
    if (this.#has("claimIsDone") && progress !== null) {
      return decideTick({ ...facts, progress: { ...progress, open: null } });
    }
    if (this.#has("alwaysRetry") || this.#has("retryFirst")) {
      const { retriesMax } = facts;
      const again = open === null ? retry : { tickMs: open.tickMs, attempt: open.attempt + 1 };
      if (isFree && again !== null && (this.#has("alwaysRetry") || again.attempt <= retriesMax + 1)) {
        const settled: SettledTickRecord[] = open === null ? [] : [{ result: "lost", run: open }];
        return { do: "claim", run: again, uptoMs: Math.max(uptoMs, again.tickMs), settled };
      }
    }
    const decision = decideTick(facts);
    if (this.#has("forgetsGivenBack") && decision.do === "claim" && retry !== null) {
      return {
        ...decision,
        settled: decision.settled.filter((one) => one.result === "lost" || one.tickMs !== retry.tickMs),
      };
    }
    if (this.#has("noGap") && decision.do === "claim") {
      return { ...decision, settled: decision.settled.filter(({ result }) => result !== "missed") };
    }
    return decision;
  }

  #grant(s: TickWorld, x: Caller): boolean {
    if (s.lock.v !== x.lock.v || s.lock.holder !== null) return false;
    const isSecond = this.#has("lateClaim");
    if (!isSecond && !this.#has("noTickVersion") && s.tick?.v !== x.tick?.v) return false;
    s.lock = { v: s.lock.v + 1, holder: x.guid };
    return isSecond || this.#writeClaim(s, x);
  }

  #writeClaim(s: TickWorld, x: Caller): boolean {
    const { uptoMs, settled } = x.want as Extract<Want, { do: "claim" }>;
    const run = runOf(x);
    if (s.tick === null) s.floor = run.tickMs - 1; // a schedule that was cleared starts without history
    addRecords(s, settled);
    const open = { ...run, guid: x.guid, host: "", pid: 0, beganMs: 0 };
    s.tick = { v: (s.tick?.v ?? 0) + 1, uptoMs, open, retry: null };
    return true;
  }

  #begin(s: TickWorld, x: Caller): void {
    const { tickMs } = runOf(x);
    Object.assign(x, { at: "run", endVersion: s.tick?.v ?? 0 });
    s.started[tickMs] = (s.started[tickMs] ?? 0) + 1;
    const { retriesMax = 0, stepsBack = 0 } = this.#options;
    if (s.started[tickMs] > 1 && retriesMax === 0) s.wrong = `tick ${tickMs} was started twice without --retry`;
    if (s.records.includes(`${tickMs}:done`)) s.wrong = `tick ${tickMs} was started after its end was recorded`;
    if (tickMs > s.now && s.stepsBack === stepsBack) s.wrong = `tick ${tickMs} was started before its time`;
  }

  #writeEnd(s: TickWorld, x: Caller): boolean {
    const { retriesMax = 0 } = this.#options;
    const isLoose = this.#has("endAfterRelease") || this.#has("ttlLock");
    if (s.tick !== null && !this.#has("endOverSkip") && s.tick.v !== x.endVersion) return false;
    if (!isLoose && s.lock.holder !== x.guid) return false;
    if (s.lock.holder === x.guid) s.lock = { ...s.lock, holder: null };
    const run = runOf(x);
    const isTriedAgain = x.result === "failed" && run.attempt <= retriesMax;
    addRecord(s, `${run.tickMs}:${x.result}${isTriedAgain ? run.attempt : ""}`);
    if (s.tick === null) return true;
    const { uptoMs } = x.want as Extract<Want, { do: "claim" }>;
    const before = this.#has("endOverSkip") ? { ...s.tick, uptoMs } : s.tick;
    const rules = { calendar, retriesMax, retryDelayMs: 0, lateMsMax: Infinity };
    const end = { run, guid: x.guid, result: x.result, nowMs: s.now, rules };
    s.tick = { v: s.tick.v + 1, ...tickProgressAfterEnd(before, end) };
    return true;
  }

  #writeSettled(s: TickWorld, x: Caller): boolean {
    const want = x.want as Want;
    const isBlind = this.#has("blindSkip") && want.do === "skip";
    if (s.tick?.v !== x.tick?.v && !(isBlind && s.tick !== null)) return false;
    if (s.tick === null && want.do === "skip") s.floor = want.uptoMs - 1;
    addRecords(s, want.settled);
    const v = (s.tick?.v ?? 0) + 1;
    const before = (isBlind ? x.tick : s.tick) ?? { uptoMs: 0, open: null, retry: null };
    s.tick = want.do === "skip"
      ? { ...before, v, uptoMs: want.uptoMs }
      : { ...before, v, open: null, retry: want.do === "settle" ? want.retry : null };
    return true;
  }

  key(world: TickWorld): string {
    // Sessions are named in the order of their appearance: worlds with other numbers are the same.
    const names = new Map<string, string>();
    const { sessions: _, ...rest } = world;
    return JSON.stringify(rest).replace(/"g\d+"/g, (guid) => {
      if (!names.has(guid)) names.set(guid, `"${names.size}"`);
      return names.get(guid) ?? "";
    });
  }

  violation(world: TickWorld): string | null {
    if (world.wrong !== null) return world.wrong;
    if (world.callers.filter(({ at }) => at === "run").length > 1) return "two commands run at the same time";
    for (const record of world.records) {
      const [tick = "", result = ""] = record.split(":");
      if (/missed|skipped/.test(result) && world.started[Number(tick)]) {
        return `tick ${tick} was run, and is recorded as ${result}`;
      }
    }
    const isStrict = (this.#options.retriesMax ?? 0) === 0;
    for (const [tick, count] of Object.entries(world.completed)) {
      if (count > 1 && isStrict) return `tick ${tick} was completed twice without --retry`;
    }
    return null;
  }

  idleViolation(world: TickWorld): string | null {
    if (!this.isDone(world)) return null;
    const { ticks, lateMax = Infinity } = this.#options;
    const isRecorded = (tick: number) =>
      tick <= world.floor || world.records.some((record) => record.startsWith(`${tick}:`));
    // A tick that is too late for the auditor is recorded as missed by the next claim.
    const missing = range(1, ticks).find((tick) => ticks - tick <= lateMax && !isRecorded(tick));
    return missing === undefined ? null : `tick ${missing} is not in the history`;
  }

  isDone(world: TickWorld): boolean {
    const auditor = world.callers.at(-1);
    return auditor?.at === "idle" && auditor.calls === 0;
  }
}

type Add = (kind: "step" | "choice" | "fault", label: string, change: (world: TickWorld) => void) => void;
type Change = (world: TickWorld, caller: Caller) => void;
interface Write {
  /** False: refused. */
  readonly apply: (world: TickWorld, caller: Caller) => boolean;
  readonly ok: Change;
  readonly refused: Change;
  readonly lost: Change;
}

function runOf({ want }: Caller): TickAttempt {
  return (want as Extract<Want, { do: "claim" }>).run;
}

function addRecord(world: TickWorld, record: string): void {
  if (world.records.includes(record)) return;
  world.records.push(record);
  world.records.sort();
}

function addRecords(world: TickWorld, settled: readonly SettledTickRecord[]): void {
  for (const one of settled) {
    if (one.result === "lost") addRecord(world, `${one.run.tickMs}:lost${one.run.attempt}`);
    else if (one.result === "skipped") addRecord(world, `${one.tickMs}:skipped`);
    else for (const tick of range(one.tickMs, one.untilMs)) addRecord(world, `${tick}:missed`);
  }
}
