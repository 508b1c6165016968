/**
 * The guard: a second process that outlives baton's death and pauses. It sleeps on a pipe from baton; when the pipe ends
 * without a "done", or the deadline of a job passes without a renewal, it kills what it watches, or that job. It never
 * stops a job in an orderly way: it is for the moments in which baton itself cannot act. Once, at its end, it has baton's session
 * ended by others' code: when baton is dead and nothing is left of any job, so that nobody need wait until the session expires.
 *
 * It blocks in poll(2) rather than run an event loop: one thread, little memory, nothing that could be late. What it strikes
 * with is loaded before it says that it is ready: a disk that stands still is one of the moments it is there for.
 */
import { compileLate } from "../spawn/lower_jit_priority.ts";
import { type Libc, loadLibc } from "../libc.ts";
import { GroupWatch } from "./group_watch.ts";
import {
  type GuardedChild,
  type GuardedSession,
  type GuardState,
  idleGuard,
  overdueJobs,
  readGuardLine,
  sessionToEnd,
} from "./guard_state.ts";
import { ShellCopies } from "../proc/forked_subshells.ts";
import { Strike, type StrikeEnd } from "./kill_job.ts";

/** Not baton's, so that `pkill baton` does not take both; 15 bytes at most. */
export const guardName = "lock-guard";

const input = 0;
const output = 1;

/** A look at the clock at least this often: poll(2) sleeps through a suspend of the machine without noticing it. */
const lookEveryMs = 1000;

/** Between two looks at what is to die. */
const betweenLooksMs = 10;

/** Reads can fail for a passing reason; a pipe that cannot be read this often in a row is as good as ended. */
const failedReadsMax = 3;

/** How long baton's last thread may take to die after its pipe has ended. */
const dyingMs = 1000;

/**
 * Runs until there is nothing (left) to guard; then `endSession` may be called once, with a session's handle. The exit code
 * says nothing to anybody.
 */
export async function runGuard(endSession: (handle: string) => Promise<unknown>): Promise<void> {
  compileLate();
  const libc = await loadLibc();
  if (libc === null) return;
  for (const signal of [1, 2, 3, 15]) libc.ignoreSignal(signal); // HUP INT QUIT TERM
  libc.setProcessName(guardName);
  if ("Deno" in globalThis) (await import("../spawn/inherited_descriptors.ts")).closeInherited(libc);
  const session = new Post(libc).keep();
  if (session !== null) await endSession(session.handle);
}

/** A job whose deadline has passed. What is said of that deadline later changes nothing. */
interface Blow {
  readonly deadlineMs: number;
  /** Null until the first look, which is at once. */
  strike: Strike | null;
  isOver: boolean;
}

class Post {
  readonly #libc: Libc;
  readonly #pipe: PipeLines;
  readonly #blows = new Map<string, Blow>();
  readonly #copies = new Map<string, ShellCopies>();
  /** By the command that was told of: a job that runs again, under the same cookie, has another group. */
  readonly #groups = new WeakMap<GuardedChild, GroupWatch>();
  #groupsAtMs = 0;
  #state: GuardState = idleGuard;

  constructor(libc: Libc) {
    this.#libc = libc;
    this.#pipe = new PipeLines(libc);
  }

  /** Ends with the session that is to be ended; null for none. */
  keep(): GuardedSession | null {
    say(this.#libc, "ready");
    for (;;) {
      this.#lookAtGroups();
      this.#noticeOverdue();
      const isStriking = this.#strike();
      if (!this.#libc.waitReadable(input, this.#restMs(isStriking))) continue;
      const lines = this.#pipe.read();
      if (lines === null) {
        // What could not be read may have been another job.
        if (!this.#pipe.isAtEnd) this.#state = readGuardLine(this.#state, "session");
        return this.#clearAll();
      }
      // After a pause the deadline counts, not a renewal that had been lying in the pipe when it passed.
      this.#noticeOverdue();
      for (const line of lines) this.#state = readGuardLine(this.#state, line);
      this.#noticeShells();
      if (this.#state.done) return null;
      for (const cookie of this.#blows.keys()) if (!this.#state.jobs.has(cookie)) this.#blows.delete(cookie);
    }
  }

  #restMs(isStriking: boolean): number {
    if (isStriking) return betweenLooksMs;
    const deadlines = [...this.#state.jobs].filter(([cookie]) => !this.#blows.has(cookie)).map(([, job]) =>
      job.deadlineMs
    );
    return Math.min(lookEveryMs, ...deadlines.map((deadlineMs) => Math.max(0, deadlineMs - this.#libc.bootTimeMs())));
  }

  #noticeOverdue(): void {
    for (const cookie of overdueJobs(this.#state, this.#libc.bootTimeMs())) {
      if (this.#blows.has(cookie)) continue;
      const deadlineMs = this.#state.jobs.get(cookie)?.deadlineMs ?? 0;
      this.#blows.set(cookie, { deadlineMs, strike: null, isOver: false });
    }
  }

  /** One look at each job that is being struck; true as long as one more is wanted. */
  #strike(): boolean {
    let isStriking = false;
    for (const [cookie, blow] of this.#blows) {
      if (blow.isOver) continue;
      if (blow.strike === null) {
        blow.strike = this.#strikeAt(cookie);
        say(this.#libc, `struck ${cookie}`);
      }
      const end = blow.strike.look();
      blow.isOver = end !== null;
      isStriking ||= !blow.isOver;
      if (end === null) continue;
      say(this.#libc, `cleared ${cookie} ${Math.max(0, Math.round(end.clearedAtMs - blow.deadlineMs))}`);
    }
    return isStriking;
  }

  /** The pipe has ended: there is no deadline to keep any more, and nobody who reads. */
  #clearAll(): GuardedSession | null {
    const strikes = new Map([...this.#state.jobs.keys()].map((cookie) => [cookie, this.#strikeAt(cookie)]));
    const ends = new Map<string, StrikeEnd>();
    for (;;) {
      for (const [cookie, strike] of strikes) {
        const end = ends.get(cookie) ?? strike.look();
        if (end !== null) ends.set(cookie, end);
      }
      if (ends.size === strikes.size) break;
      this.#libc.sleep(betweenLooksMs);
    }
    const lastMs = this.#libc.bootTimeMs() + dyingMs;
    for (;;) {
      const session = sessionToEnd(this.#state, {
        isGone: (pid) => this.#libc.parentPid() !== pid,
        isCleared: (cookie) => ends.get(cookie)?.isCertain ?? false,
      });
      if (session !== null || this.#state.session === null || this.#libc.bootTimeMs() >= lastMs) return session;
      this.#libc.sleep(betweenLooksMs);
    }
  }

  #strikeAt(cookie: string): Strike {
    const job = this.#state.jobs.get(cookie) ?? { child: null, deadlineMs: 0 };
    const group = job.child === null ? null : this.#groupOf(job.child);
    return new Strike(cookie, job, { libc: this.#libc, copies: this.#copies.get(cookie), group });
  }

  /** Once a second; a job that is over within that is not worth a look. */
  #lookAtGroups(): void {
    const nowMs = this.#libc.bootTimeMs();
    if (nowMs < this.#groupsAtMs + lookEveryMs) return;
    this.#groupsAtMs = nowMs;
    for (const { child } of this.#state.jobs.values()) if (child !== null) this.#groupOf(child).isOurs();
  }

  #groupOf(child: GuardedChild): GroupWatch {
    const known = this.#groups.get(child) ?? new GroupWatch(child);
    this.#groups.set(child, known);
    return known;
  }

  /** A command in no group of its own may be a script, whose subshells show no cookie: how it looks is noted while it lives. */
  #noticeShells(): void {
    for (const [cookie, { child }] of this.#state.jobs) {
      if (child === null || child.ownGroup || this.#copies.has(cookie)) continue;
      this.#copies.set(cookie, new ShellCopies(child.pid, Math.floor(this.#libc.bootTimeMs() / 10)));
    }
    for (const cookie of this.#copies.keys()) if (!this.#state.jobs.has(cookie)) this.#copies.delete(cookie);
  }
}

/** The lines that baton has written. */
class PipeLines {
  readonly #libc: Libc;
  readonly #decoder = new TextDecoder();
  readonly #chunk = new Uint8Array(4096);
  #text = "";
  #failedReads = 0;
  #isAtEnd = false;

  constructor(libc: Libc) {
    this.#libc = libc;
  }

  /** All that was ever written has been read. */
  get isAtEnd(): boolean {
    return this.#isAtEnd;
  }

  /** Those that are whole by now; null when there will be no more. */
  read(): string[] | null {
    const length = this.#libc.read(input, this.#chunk);
    this.#isAtEnd = length === 0;
    this.#failedReads = length < 0 ? this.#failedReads + 1 : 0;
    if (length === 0 || this.#failedReads === failedReadsMax) return null;
    this.#text += this.#decoder.decode(this.#chunk.subarray(0, Math.max(0, length)), { stream: true });
    const lines = this.#text.split("\n");
    this.#text = lines.pop() ?? "";
    return lines;
  }
}

function say(libc: Libc, word: string): void {
  libc.write(output, new TextEncoder().encode(`${word}\n`));
}
