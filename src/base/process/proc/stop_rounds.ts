/**
 * Kills processes that start others while they are being killed. First suspends them (SIGSTOP), round by round, until
 * rounds find no new process; then kills all. A suspended process starts no other process and reacts to no death. If
 * the rounds do not end soon, moves the processes into a cgroup, which their children inherit, and kills the cgroup.
 */
import { processSystem } from "../../support/own_process.ts";
import { sendSignal } from "./process_table.ts";
import { mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Finds the processes to suspend or kill. */
interface Stoppable {
  /**
   * The living processes; `onFound` may be called for each when it is found. `isCertain`: if none was found, none is
   * alive.
   */
  find(onFound: (pid: number) => void): { readonly alive: readonly number[]; readonly isCertain: boolean };
  /** The job's process group, whose members a signal reaches at the same time; null for none. */
  group(): number | null;
}

/** Milliseconds that the rounds of one call may take; the caller calls again soon. */
const roundsMs = 20;

/** The number of rounds with new processes after which a cgroup is used. */
const roundsBeforeCgroup = 8;

/**
 * The number of rounds without a new process that prove there is none: the child of a forking process appears within
 * two.
 */
const quietRounds = 2;

export class ProcessKillRounds {
  readonly #job: Stoppable;
  readonly #cgroup: KillCgroup;
  readonly #stopped = new Set<number>();
  #busyRounds = 0;

  constructor(job: Stoppable, cookie: string) {
    this.#job = job;
    this.#cgroup = new KillCgroup(cookie);
  }

  /** Forgets which processes are suspended: they were resumed. */
  forgetStopped(): void {
    this.#stopped.clear();
    this.#busyRounds = 0;
  }

  /** Kills all processes. The caller finds out whether they are dead. */
  kill(): void {
    const alive = this.freeze();
    const group = this.#job.group();
    if (group !== null) sendSignal(-group, "SIGKILL");
    for (const pid of alive) sendSignal(pid, "SIGKILL");
    if (this.#busyRounds > roundsBeforeCgroup) this.#cgroup.kill(alive);
  }

  /** Cleans up when no process of the job is left. */
  close(): void {
    this.#cgroup.close();
  }

  /** Suspends all processes. Returns those that were found last. */
  freeze(): readonly number[] {
    const endMs = performance.now() + roundsMs;
    for (let quietCount = 0;;) {
      const news: number[] = [];
      const stop = (pid: number) => {
        if (this.#stopped.has(pid)) return;
        this.#stopped.add(pid);
        sendSignal(pid, "SIGSTOP");
        news.push(pid);
      };
      const { alive, isCertain } = this.#job.find(stop);
      alive.forEach(stop);
      quietCount = news.length === 0 ? quietCount + 1 : 0;
      if (isCertain && (alive.length === 0 || quietCount >= quietRounds)) return alive;
      const group = this.#job.group();
      if (group !== null && news.length > 0) sendSignal(-group, "SIGSTOP");
      if (news.length > 0 && ++this.#busyRounds > roundsBeforeCgroup) this.#cgroup.add(news);
      if (performance.now() >= endMs) return alive;
    }
  }
}

const prefix = "baton-kill-";

/** Milliseconds that one call may spend on moving processes. */
const addMsMax = 20;

/** Milliseconds to wait for the cgroup to become empty: a process leaves it shortly after it has become a zombie. */
const emptyMsMax = 20;

/**
 * The age in milliseconds of an empty cgroup that was left behind by a baton that was killed together with its guard.
 */
const staleAfterMs = 60_000;

/**
 * A cgroup for processes that start others faster than these are found: new processes inherit it, and the kernel kills
 * all its members at the same time (cgroup.kill of cgroup v2, Linux 5.14). It is made only when needed: moving a
 * process into a cgroup takes the kernel milliseconds. Where none can be made (no cgroup v2, no permission) nothing
 * happens.
 */
export class KillCgroup {
  readonly #name: string;
  /** Null if none can be made; undefined if none was needed yet. */
  #folder: string | null | undefined;

  /** All processes that kill this job use the same cgroup. */
  constructor(cookie: string) {
    this.#name = prefix + cookie.replaceAll(/[^\w-]/g, "_");
  }

  /** Moves processes of the job into the cgroup: `kill()` kills them and all that they start from now on. */
  add(pids: readonly number[]): void {
    if (pids.length === 0) return;
    if (this.#folder === undefined) this.#folder = makeFolder(this.#name);
    if (this.#folder === null) return;
    const endMs = performance.now() + addMsMax;
    for (const pid of pids) {
      if (performance.now() >= endMs) break;
      write(join(this.#folder, "cgroup.procs"), String(pid));
    }
  }

  /** Adds `pids`, and kills all members. */
  kill(pids: readonly number[]): void {
    this.add(pids);
    if (typeof this.#folder === "string") write(join(this.#folder, "cgroup.kill"), "1");
  }

  /** Removes the cgroup. Call it when no member is alive. */
  close(): void {
    const endMs = performance.now() + emptyMsMax;
    while (typeof this.#folder === "string" && !remove(this.#folder) && performance.now() < endMs);
    this.#folder = undefined;
  }
}

/** Makes the cgroup below this process's own, so that its members keep the same limits. */
function makeFolder(name: string): string | null {
  const own = ownCgroup();
  if (own === null) return null;
  removeStale(own);
  const folder = join(own, name);
  try {
    mkdirSync(folder, { recursive: true });
    readFileSync(join(folder, "cgroup.procs")); // refused below a cgroup of threads
    return folder;
  } catch {
    remove(folder);
    return null;
  }
}

function removeStale(own: string): void {
  try {
    for (const name of readdirSync(own)) {
      const folder = join(own, name);
      if (name.startsWith(prefix) && Date.now() - statSync(folder).ctimeMs > staleAfterMs) remove(folder);
    }
  } catch {
    // another process removed it first
  }
}

/** Returns the folder of this process's cgroup of version 2; null if there is none. cgroups(7), proc(5). */
function ownCgroup(): string | null {
  try {
    const path = /^0::(\/.*)$/m.exec(processSystem.readText("/proc/self/cgroup", "utf8"))?.[1];
    const mount = processSystem.readText("/proc/self/mountinfo", "utf8").split("\n").find((line) =>
      / - cgroup2 /.test(line)
    );
    const [, , , root, point] = (mount ?? "").split(" ").map(decodeEscapes);
    if (path === undefined || root === undefined || point === undefined || path.split("/").includes("..")) return null;
    if (root === "/") return join(point, path);
    return `${path}/`.startsWith(`${root}/`) ? join(point, path.slice(root.length)) : null;
  } catch {
    return null;
  }
}

/** Decodes the escapes of proc(5): space, tab, newline and backslash are three octal digits. */
function decodeEscapes(word: string): string {
  return word.replaceAll(/\\([0-7]{3})/g, (_all, digits: string) => String.fromCharCode(parseInt(digits, 8)));
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch {
    // The process has ended, or may not be moved: it is killed by a signal.
  }
}

/** Returns false if it still has members. */
function remove(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}
