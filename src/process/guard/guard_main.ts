/**
 * The guard: a second process that acts when baton is dead or stopped. It waits on a pipe from baton. When the pipe ends without a
 * "done", it kills all jobs; when the deadline of a job passes without a renewal, it kills that job. It never asks a job to stop first,
 * because it acts only when baton cannot. When baton is dead and all processes of all jobs are dead, it ends baton's session, so that the
 * lock is free before the session expires.
 *
 * It blocks in poll(2) and runs no event loop: it has one thread, needs little memory, and nothing delays it. All code that it
 * needs is loaded before it reports "ready", because the disk may hang later.
 */
import { writeSync } from "node:fs";
import { type Libc, loadLibc } from "../libc.ts";
import { GroupWatch, JobKill, type JobKillResult } from "./kill_job.ts";
import {
  type GuardedChild,
  type GuardedSession,
  type GuardState,
  idleGuard,
  overdueJobs,
  readGuardLine,
  sessionToEnd,
} from "./guard_state.ts";

/** Name of the process, at most 15 bytes. It differs from baton's, so that `pkill baton` does not kill both. */
export const guardName = "lock-guard";

const input = 0;
const output = 1;

/** Milliseconds between checks of the clock, at most: poll(2) does not notice that the machine was suspended. */
const checkEveryMs = 1000;

/** Milliseconds between two kill passes. */
const killPauseMs = 10;

/** A read can fail temporarily. After this many failures in a row the pipe counts as ended. */
const failedReadsMax = 3;

/** Milliseconds that baton's last thread may take to die after its pipe has ended. */
const dyingMs = 1000;

/** Runs until there is nothing left to guard. It then calls `endSession` once, with the session's handle, if the session may be ended. */
export async function runGuard(endSession: (handle: string) => Promise<unknown>): Promise<void> {
  const libc = await loadLibc();
  if (libc === null) return void writeSync(output, "failed it cannot call libc, which needs compiled code\n");
  for (const signal of [1, 2, 3, 15]) libc.ignoreSignal(signal); // HUP INT QUIT TERM
  libc.setProcessName(guardName);
  if ("Deno" in globalThis) (await import("../spawn/inherited_descriptors.ts")).closeInherited(libc);
  const loop = new GuardLoop(libc);
  for (let isReadable = false;;) {
    const next = loop.step(isReadable);
    if (next.kind === "end") {
      if (next.session !== null) await endSession(next.session.handle);
      return;
    }
    if (next.kind === "wait") isReadable = libc.waitReadable(input, next.forMs);
    else libc.sleep(next.forMs);
  }
}

/** A job whose deadline has passed. Later renewals of the deadline are ignored. */
interface StartedKill {
  readonly deadlineMs: number;
  /** Null until the first pass. */
  kill: JobKill | null;
  isOver: boolean;
}

/** The next action of the guard. `wait`: for the pipe, for this time at most; `sleep`: the pipe has ended. `session`: the one to end; null for none. */
export type GuardStep =
  | { readonly kind: "wait" | "sleep"; readonly forMs: number }
  | { readonly kind: "end"; readonly session: GuardedSession | null };

/** The guard between two waits. */
export class GuardLoop {
  readonly #libc: Libc;
  readonly #pipe: PipeLines;
  readonly #kills = new Map<string, StartedKill>();
  /** Process groups by command: a job that runs a second command, with the same cookie, has another group. */
  readonly #groups = new WeakMap<GuardedChild, GroupWatch>();
  #groupsAtMs = 0;
  #state: GuardState = idleGuard;
  #clearing: Clearing | null = null;

  constructor(libc: Libc) {
    this.#libc = libc;
    this.#pipe = new PipeLines(libc);
    report(libc, "ready");
  }

  /** `isReadable`: there is something to read, or the pipe has ended. */
  step(isReadable: boolean): GuardStep {
    if (this.#clearing !== null) return this.#clearing.step();
    if (isReadable) {
      const lines = this.#pipe.read();
      if (lines === null) {
        // The lines that could not be read may have named another job.
        if (!this.#pipe.isAtEnd) this.#state = readGuardLine(this.#state, "session");
        return this.#clearAll();
      }
      // The deadline counts after a pause, not a renewal that was in the pipe when it passed.
      this.#recordOverdue();
      for (const line of lines) this.#state = readGuardLine(this.#state, line);
      if (lines.includes("ask")) report(this.#libc, "runs");
      if (this.#state.done) return { kind: "end", session: null };
      for (const cookie of this.#kills.keys()) if (!this.#state.jobs.has(cookie)) this.#kills.delete(cookie);
    }
    this.#checkGroups();
    this.#recordOverdue();
    const needsPass = this.#killOverdue();
    return { kind: "wait", forMs: this.#nextWakeMs(needsPass) };
  }

  #nextWakeMs(needsPass: boolean): number {
    if (needsPass) return killPauseMs;
    const deadlines = [...this.#state.jobs].filter(([cookie]) => !this.#kills.has(cookie)).map(([, job]) =>
      job.deadlineMs
    );
    return Math.min(checkEveryMs, ...deadlines.map((deadlineMs) => Math.max(0, deadlineMs - this.#libc.bootTimeMs())));
  }

  #recordOverdue(): void {
    for (const cookie of overdueJobs(this.#state, this.#libc.bootTimeMs())) {
      if (this.#kills.has(cookie)) continue;
      const deadlineMs = this.#state.jobs.get(cookie)?.deadlineMs ?? 0;
      this.#kills.set(cookie, { deadlineMs, kill: null, isOver: false });
    }
  }

  /** One kill pass over each overdue job; true if another pass is needed. */
  #killOverdue(): boolean {
    let needsPass = false;
    for (const [cookie, started] of this.#kills) {
      if (started.isOver) continue;
      if (started.kill === null) {
        started.kill = this.#killOf(cookie);
        report(this.#libc, `killing ${cookie}`);
      }
      const end = started.kill.killOnce();
      started.isOver = end !== null;
      needsPass ||= !started.isOver;
      if (end === null) continue;
      report(this.#libc, `cleared ${cookie} ${Math.max(0, Math.round(end.clearedAtMs - started.deadlineMs))}`);
    }
    return needsPass;
  }

  /** Kills all jobs after the pipe has ended. There is no deadline and no reader left. */
  #clearAll(): GuardStep {
    const kills = new Map([...this.#state.jobs.keys()].map((cookie) => [cookie, this.#killOf(cookie)]));
    this.#clearing = new Clearing(this.#state, kills, this.#libc);
    return this.#clearing.step();
  }

  #killOf(cookie: string): JobKill {
    const job = this.#state.jobs.get(cookie) ?? { child: null, deadlineMs: 0 };
    const group = job.child === null ? null : this.#groupOf(job.child);
    return new JobKill(cookie, job, { libc: this.#libc, group });
  }

  /** Checks the process groups once a second; jobs that end earlier need no check. */
  #checkGroups(): void {
    const nowMs = this.#libc.bootTimeMs();
    if (nowMs < this.#groupsAtMs + checkEveryMs) return;
    this.#groupsAtMs = nowMs;
    for (const { child } of this.#state.jobs.values()) if (child !== null) this.#groupOf(child).isOurs();
  }

  #groupOf(child: GuardedChild): GroupWatch {
    const known = this.#groups.get(child) ?? new GroupWatch(child);
    this.#groups.set(child, known);
    return known;
  }
}

/** The end of a guard whose pipe has ended: all jobs are killed, then baton's last thread has to die. */
class Clearing {
  readonly #state: GuardState;
  readonly #kills: ReadonlyMap<string, JobKill>;
  readonly #libc: Libc;
  readonly #ends = new Map<string, JobKillResult>();
  /** When the wait for baton's death is given up; null while a job has to be killed. */
  #lastMs: number | null = null;

  constructor(state: GuardState, kills: ReadonlyMap<string, JobKill>, libc: Libc) {
    this.#state = state;
    this.#kills = kills;
    this.#libc = libc;
  }

  step(): GuardStep {
    for (const [cookie, kill] of this.#kills) {
      const end = this.#ends.get(cookie) ?? kill.killOnce();
      if (end !== null) this.#ends.set(cookie, end);
    }
    if (this.#ends.size < this.#kills.size) return { kind: "sleep", forMs: killPauseMs };
    this.#lastMs ??= this.#libc.bootTimeMs() + dyingMs;
    const session = sessionToEnd(this.#state, {
      isGone: (pid) => this.#libc.parentPid() !== pid,
      isCleared: (cookie) => this.#ends.get(cookie)?.isCertain ?? false,
    });
    const isOver = session !== null || this.#state.session === null || this.#libc.bootTimeMs() >= this.#lastMs;
    return isOver ? { kind: "end", session } : { kind: "sleep", forMs: killPauseMs };
  }
}

/** Lines that baton writes into the pipe. */
class PipeLines {
  readonly #libc: Libc;
  readonly #decoder = new TextDecoder();
  /** One read takes all that a pipe holds: a "forget" behind many renewals is read before a deadline is judged. */
  readonly #chunk = new Uint8Array(64 << 10);
  #text = "";
  #failedReads = 0;
  /** True when everything that was written has been read. */
  isAtEnd = false;

  constructor(libc: Libc) {
    this.#libc = libc;
  }

  /** Complete lines; null when no further line will come. */
  read(): string[] | null {
    const length = this.#libc.read(input, this.#chunk);
    this.isAtEnd = length === 0;
    this.#failedReads = length < 0 ? this.#failedReads + 1 : 0;
    if (length === 0 || this.#failedReads === failedReadsMax) return null;
    this.#text += this.#decoder.decode(this.#chunk.subarray(0, Math.max(0, length)), { stream: true });
    const lines = this.#text.split("\n");
    this.#text = lines.pop() ?? "";
    return lines;
  }
}

function report(libc: Libc, word: string): void {
  libc.write(output, new TextEncoder().encode(`${word}\n`));
}
