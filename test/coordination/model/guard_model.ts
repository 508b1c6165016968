/**
 * baton, its guard and the session as an explicit-state model: who is told what when, and when the guard may end the
 * session of a dead baton. The guard reads lines and decides with its own readGuardLine and chooseGuardSessionToEnd.
 * Everything is written and read line by line, so that a kill may fall between any two. A living baton's session ends
 * only when its jobs are dead: that is the lease's business. A dead baton's session expires when the guard has had its
 * time: it has killed what it can, and keeps the session alive only while a process lives that it cannot stop.
 *
 * Models: src/base/process/guard/guard.ts, src/base/process/guard/guard_main.ts, src/base/process/guard/guard_state.ts,
 * src/base/process/guard/kill_job.ts
 */
import {
  chooseGuardSessionToEnd,
  guardChildLine,
  guardForgetLine,
  guardSessionLine,
  type GuardState,
  guardWatchLine,
  idleGuardState,
  readGuardLine,
} from "../../../src/base/process/guard/guard_state.ts";
import type { Model, Transition, TransitionKind } from "../../support/explore.ts";

/**
 * The last two: a process that the guard can see and not kill, and something of a job that it can neither see for
 * certain nor kill.
 */
export type GuardFault =
  | "baton killed"
  | "guard killed"
  | "guard strikes"
  | "pipe breaks"
  | "session expires"
  | "unstoppable"
  | "unseen";

/** Ways to build it wrong: each must be found out. */
export type GuardMistake =
  | "ends the session before the last process is gone"
  | "takes what it cannot see for gone"
  | "ends the session of a baton that lives"
  | "ends the session although its pipe broke"
  | "takes a command that nobody told of for one that was not started"
  | "is told of a job after its start"
  | "is told of the session before the jobs when it is the next guard"
  | "is told of the session but not of a job that was killed when it is the next guard"
  | "lets the session expire while it cannot stop a process"
  | "gives up a process that it cannot stop"
  | "is not told of another session"
  | "is not told of the session when it is the next guard";

export interface GuardModelOptions {
  readonly jobsMax: number;
  readonly sessionsMax: number;
  readonly faults: readonly GuardFault[];
  readonly faultsMax: number;
  readonly mistakes?: readonly GuardMistake[];
}

interface Job {
  readonly session: number;
  readonly step: "ordered" | "started" | "over";
  /** Forked: it runs, and does not show whose it is yet. */
  readonly process: "none" | "forked" | "runs" | "dead";
  readonly isStruck: boolean;
  readonly isUnstoppable: boolean;
  readonly isUnseen: boolean;
  /** baton has said that the command runs. */
  readonly isTold: boolean;
}

interface Guard {
  readonly state: GuardState;
  /** What it has not read. */
  readonly pipe: readonly string[];
  readonly isBroken: boolean;
  /** Keeps the session of a dead baton alive. */
  readonly isKeeping: boolean;
  readonly isOver: boolean;
}

export interface GuardWorld {
  readonly isAlive: boolean;
  /** baton's present session; 0 for none. */
  readonly session: number;
  readonly sessions: number;
  readonly open: readonly number[];
  /** The session that has the lock, or another process. */
  readonly holder: number | "another" | null;
  /** By their cookies, which are their numbers. */
  readonly jobs: readonly Job[];
  /** What baton has not written yet. */
  readonly unwritten: readonly string[];
  readonly guard: Guard;
  readonly faultsLeft: number;
  /** baton and its guard were killed, or something cannot be seen: then the session is left to expire. */
  readonly isExcused: boolean;
}

const owner = 7;
const newGuard: Guard = { state: idleGuardState, pipe: [], isBroken: false, isKeeping: false, isOver: false };
const isProcess = ({ process }: Job): boolean => process === "forked" || process === "runs";
const isKillable = ({ process, isUnseen, isUnstoppable }: Job): boolean =>
  process === "runs" && !isUnseen && !isUnstoppable;
const isStuck = ({ process, isUnstoppable }: Job): boolean => process === "runs" && isUnstoppable;
const sessionText = (number: number): string => guardSessionLine({ owner, handle: String(number) });
const toldOf = (cookie: number): string => guardChildLine(String(cookie), { pid: 1, ownGroup: true, startTicks: 1 });

export class GuardModel implements Model<GuardWorld> {
  readonly initial: readonly GuardWorld[];
  readonly #options: GuardModelOptions;

  constructor(options: GuardModelOptions) {
    this.#options = options;
    this.initial = [{
      isAlive: true,
      session: 0,
      sessions: 0,
      open: [],
      holder: null,
      jobs: [],
      unwritten: [],
      guard: newGuard,
      faultsLeft: options.faultsMax,
      isExcused: false,
    }];
  }

  key(world: GuardWorld): string {
    const { jobs, ...rest } = world.guard.state;
    return JSON.stringify([world, rest, [...jobs]]);
  }

  isDone({ holder, isExcused }: GuardWorld): boolean {
    return holder === "another" || isExcused;
  }

  violation({ holder, jobs }: GuardWorld): string | null {
    return holder === "another" && jobs.some(isProcess) ? "Another process has the lock beside the job" : null;
  }

  idleViolation(world: GuardWorld): string | null {
    const isKept = world.guard.isKeeping && world.jobs.some(isStuck);
    return world.isAlive || this.isDone(world) || isKept ? null : "A dead baton's session is left to expire";
  }

  transitions(world: GuardWorld): Transition<GuardWorld>[] {
    const out: Transition<GuardWorld>[] = [];
    const to = (label: string, change: Partial<GuardWorld>, kind: TransitionKind = "step") =>
      out.push({ kind, label, state: { ...world, ...change } });
    if (world.holder === "another") return out;
    if (world.isAlive) this.#baton(world, to);
    this.#jobs(world, to);
    this.#guard(world, to);
    if (!world.isAlive && !world.isExcused) this.#expiry(world, to);
    if (world.holder === null) to("another takes the lock", { holder: "another" });
    if (world.faultsLeft > 0) this.#faults(world, to);
    return out;
  }

  #baton(world: GuardWorld, to: To): void {
    const { jobs, session, holder, unwritten, guard } = world;
    const [line, ...rest] = unwritten;
    if (line !== undefined) to("writes", { unwritten: rest, guard: { ...guard, pipe: [...guard.pipe, line] } });
    if (session === 0) {
      if (world.sessions === this.#options.sessionsMax) return;
      const next = world.sessions + 1;
      const isTold = next === 1 || !this.#has("is not told of another session");
      const told = isTold ? [...unwritten, sessionText(next)] : unwritten;
      return to("opens a session", { session: next, sessions: next, open: [...world.open, next], unwritten: told });
    }
    if (holder === null) to("is granted the lock", { holder: session });
    if (holder !== session) return;
    for (const [cookie, job] of jobs.entries()) this.#tell(world, { cookie, job }, to);
    if (jobs.some(({ step }) => step !== "over")) return;
    const open = world.open.filter((each) => each !== session);
    to("closes its session", { session: 0, open, holder: null }, "choice");
    if (jobs.length === this.#options.jobsMax) return;
    const job: Job = {
      session,
      step: "ordered",
      process: "none",
      isStruck: false,
      isUnstoppable: false,
      isUnseen: false,
      isTold: false,
    };
    const isLate = this.#has("is told of a job after its start");
    const order = isLate ? unwritten : [...unwritten, guardWatchLine(String(jobs.length), 1)];
    to("has a job watched", { jobs: [...jobs, job], unwritten: order }, "choice");
  }

  /** What baton says of one job, and its start. */
  #tell(world: GuardWorld, { cookie, job }: { readonly cookie: number; readonly job: Job }, to: To): void {
    const { unwritten } = world;
    const order = guardWatchLine(String(cookie), 1);
    if (job.step === "ordered" && !unwritten.includes(order)) {
      const late = this.#has("is told of a job after its start") ? [order] : [];
      to(`forks job ${cookie}`, {
        jobs: withJob(world, cookie, { step: "started", process: "forked" }),
        unwritten: [...unwritten, ...late],
      });
    }
    if (job.process === "runs" && !job.isTold) {
      to(`tells of job ${cookie}`, {
        jobs: withJob(world, cookie, { isTold: true }),
        unwritten: [...unwritten, toldOf(cookie)],
      });
    }
    // It waits for what it started, and its own children hide nothing from it.
    if (job.step === "started" && job.process === "dead") {
      to(`forgets job ${cookie}`, {
        jobs: withJob(world, cookie, { step: "over" }),
        unwritten: [...unwritten, guardForgetLine(String(cookie))],
      });
    }
  }

  #jobs(world: GuardWorld, to: To): void {
    for (const [cookie, job] of world.jobs.entries()) {
      if (job.process === "forked") to(`job ${cookie} runs`, { jobs: withJob(world, cookie, { process: "runs" }) });
      const dead = { jobs: withJob(world, cookie, { process: "dead" }) } as const;
      if (job.process === "runs") to(`job ${cookie} ends`, dead, "choice");
    }
  }

  #guard(world: GuardWorld, to: To): void {
    const { guard, jobs } = world;
    if (guard.isOver) return;
    const [line, ...pipe] = guard.pipe;
    if (line !== undefined && !guard.isBroken) {
      // baton writes a line only when it is whole.
      to("guard reads", { guard: { ...guard, pipe, state: readGuardLine(guard.state, line.trim()) } });
    }
    const hasEnded = guard.isBroken || (!world.isAlive && guard.pipe.length === 0);
    for (const [cookie, job] of jobs.entries()) {
      const isWatched = guard.state.jobs.has(String(cookie));
      const isTarget = isWatched && isKillable(job) && (hasEnded || job.isStruck);
      if (isTarget) to(`guard kills job ${cookie}`, { jobs: withJob(world, cookie, { process: "dead" }) });
    }
    if (hasEnded) this.#end(world, to);
  }

  #end(world: GuardWorld, to: To): void {
    const { guard, jobs } = world;
    const cleared = (cookie: string): boolean => {
      const job = jobs[Number(cookie)];
      if (job === undefined || this.#has("ends the session before the last process is gone")) return true;
      if (job.isUnseen) return this.#has("takes what it cannot see for gone");
      const isToldOf = guard.state.jobs.get(cookie)?.child !== null;
      const isForkSeen = !this.#has("takes a command that nobody told of for one that was not started");
      return job.process !== "runs" && (isToldOf || !isForkSeen || job.process !== "forked");
    };
    const ended = chooseGuardSessionToEnd(guard.state, {
      isGone: (pid) => pid === owner && (!world.isAlive || this.#has("ends the session of a baton that lives")),
      isCleared: cleared,
    });
    const isOver = { ...guard, isOver: true };
    if (ended !== null) {
      const open = world.open.filter((each) => String(each) !== ended.handle);
      const holder = String(world.holder) === ended.handle ? null : world.holder;
      return to("guard ends the session", { open, holder, guard: isOver });
    }
    if (world.isAlive) return to("guard ends, and another takes its place", this.#replaced(world));
    const mustKeep = jobs.some(isStuck);
    if (mustKeep && this.#has("gives up a process that it cannot stop")) to("guard gives up", { guard: isOver });
    if (mustKeep && !guard.isKeeping && !this.#has("lets the session expire while it cannot stop a process")) {
      to("guard keeps the session", { guard: { ...guard, isKeeping: true } });
    }
    const isHopeless = guard.state.session === null || jobs.some(({ isUnseen }) => isUnseen);
    if (isHopeless) to("guard gives up", { guard: isOver });
  }

  /** The server hears of no client, although the guard has had the time to keep the session. */
  #expiry(world: GuardWorld, to: To): void {
    const { guard, jobs, holder } = world;
    const isDone = guard.pipe.length === 0 && !jobs.some((job) => job.process === "forked" || isKillable(job));
    const isAboutToKeep = !this.#has("lets the session expire while it cannot stop a process");
    if (typeof holder !== "number" || !jobs.some(isStuck) || guard.isKeeping) return;
    if (!guard.isOver && (!isDone || isAboutToKeep)) return;
    to("the session expires", { open: world.open.filter((each) => each !== holder), holder: null });
  }

  /** In the order in which they are written, one by one. */
  #replaced(world: GuardWorld): Partial<GuardWorld> {
    const { jobs, session } = world;
    const watched = [...jobs.entries()].filter(([, { step }]) => step !== "over");
    const hasStruck = watched.some(([, { isStruck }]) => isStruck);
    const lines = watched.filter(([, { isStruck }]) => !isStruck).flatMap(([cookie, { isTold }]) => [
      guardWatchLine(String(cookie), 1),
      ...(isTold ? [toldOf(cookie)] : []),
    ]);
    const isLeftOut = session === 0 ||
      (hasStruck && !this.#has("is told of the session but not of a job that was killed when it is the next guard"));
    const told = isLeftOut || this.#has("is not told of the session when it is the next guard")
      ? []
      : [sessionText(session)];
    const isFirst = this.#has("is told of the session before the jobs when it is the next guard");
    const isExcused = world.isExcused || hasStruck;
    return { guard: newGuard, unwritten: isFirst ? [...told, ...lines] : [...lines, ...told], isExcused };
  }

  #faults(world: GuardWorld, to: To): void {
    const { guard, jobs, isAlive, session, holder } = world;
    const fault = (label: string, change: Partial<GuardWorld>) =>
      to(label, { faultsLeft: world.faultsLeft - 1, ...change }, "fault");
    if (isAlive && this.#may("baton killed")) {
      // Nothing was told yet of the session, or nobody is there to end it.
      const isTold = !world.unwritten.some((line) => line.startsWith("session"));
      const isExcused = world.isExcused || guard.isOver || guard.isBroken || !isTold;
      fault("baton is killed", { isAlive: false, unwritten: [], isExcused });
    }
    if (!guard.isOver && this.#may("guard killed")) {
      fault(
        "guard is killed",
        isAlive ? this.#replaced(world) : { guard: { ...guard, isOver: true }, isExcused: true },
      );
    }
    if (isAlive && !guard.isBroken && this.#may("pipe breaks")) {
      const mayEnd = this.#has("ends the session although its pipe broke") ||
        this.#has("ends the session of a baton that lives");
      const state = mayEnd ? guard.state : readGuardLine(guard.state, guardSessionLine(null).trim());
      fault("the pipe breaks", { guard: { ...guard, state, isBroken: true, pipe: [] } });
    }
    const isIdle = !jobs.some(isProcess);
    if (isAlive && session !== 0 && isIdle && this.#may("session expires")) {
      const over = jobs.map((job) => ({ ...job, step: "over" as const }));
      const open = world.open.filter((each) => each !== session);
      fault("the session expires", { jobs: over, session: 0, open, holder: holder === session ? null : holder });
    }
    for (const [cookie, job] of jobs.entries()) {
      if (
        job.process === "runs" && !job.isStruck && guard.state.jobs.has(String(cookie)) && this.#may("guard strikes")
      ) {
        fault(`the deadline of job ${cookie} passes`, { jobs: withJob(world, cookie, { isStruck: true }) });
      }
      if (job.process === "runs" && !job.isUnstoppable && this.#may("unstoppable")) {
        fault(`job ${cookie} cannot be stopped`, { jobs: withJob(world, cookie, { isUnstoppable: true }) });
      }
      if (isProcess(job) && !job.isUnseen && this.#may("unseen")) {
        fault(`job ${cookie} cannot be seen`, {
          jobs: withJob(world, cookie, { isUnseen: true }),
          isExcused: true,
        });
      }
    }
  }

  #may(fault: GuardFault): boolean {
    return this.#options.faults.includes(fault);
  }

  #has(mistake: GuardMistake): boolean {
    return this.#options.mistakes?.includes(mistake) ?? false;
  }
}

type To = (label: string, change: Partial<GuardWorld>, kind?: TransitionKind) => void;

function withJob({ jobs }: GuardWorld, cookie: number, change: Partial<Job>): readonly Job[] {
  return jobs.map((job, index) => (index === cookie ? { ...job, ...change } : job));
}
