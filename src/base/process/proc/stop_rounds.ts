/**
 * Kills processes that start other processes while they are being killed. First suspends them (SIGSTOP) in rounds,
 * until rounds find no new process, and then kills all. A suspended process starts no other process and does not react
 * to deaths. If the rounds take too long, moves the processes into a cgroup, which their children inherit, and kills
 * the cgroup.
 */
import { processSystem } from "../../support/own_process.ts";
import { sendSignal } from "./process_table.ts";
import { mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

interface Stoppable {
  /**
   * Returns the living processes; may call `onFound` for each process as soon as it is found. If `isCertain` is true,
   * an empty `alive` proves that no process is alive.
   */
  find(onFound: (pid: number) => void): { readonly alive: readonly number[]; readonly isCertain: boolean };
  /**
   * Returns the job's process group; null if there is none. One signal to the group reaches all its members at the same
   * time.
   */
  group(): number | null;
}

/** How long the rounds of one call may take, in milliseconds. The caller calls again soon. */
const roundsMs = 20;

const roundsBeforeCgroup = 8;

/**
 * This many rounds in a row without a new process prove that there is none, because a forked child appears within two
 * rounds.
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

  /** Forgets which processes are suspended. The caller calls this after resuming them. */
  forgetStopped(): void {
    this.#stopped.clear();
    this.#busyRounds = 0;
  }

  /** Kills all processes. The caller must check whether they are dead. */
  kill(): void {
    const alive = this.freeze();
    // Moves them before it kills them, because the number of a dead process may belong to an unrelated one.
    if (this.#busyRounds > roundsBeforeCgroup) this.#cgroup.add(alive);
    const group = this.#job.group();
    if (group !== null) sendSignal(-group, "SIGKILL");
    for (const pid of alive) sendSignal(pid, "SIGKILL");
    this.#cgroup.kill();
  }

  /** Cleans up when no process of the job is left. */
  close(): void {
    this.#cgroup.close();
  }

  /** Suspends all processes. Returns the processes that the last round found. */
  freeze(): readonly number[] {
    const endMs = performance.now() + roundsMs;
    const first = this.#stopped.size === 0 ? this.#job.group() : null;
    if (first !== null) sendSignal(-first, "SIGSTOP"); // before the first round, which takes long on a busy machine
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

const addMsMax = 20;

/**
 * How long to wait until the cgroup is empty, in milliseconds. A process leaves the cgroup shortly after it has become
 * a zombie.
 */
const emptyMsMax = 20;

/**
 * The age, in milliseconds, at which an empty cgroup counts as abandoned: a baton that was killed together with its
 * guard has left it.
 */
const staleAfterMs = 60_000;

/**
 * A cgroup for processes that start other processes faster than baton finds them. New processes inherit the cgroup, and
 * the kernel kills all its members at the same time (cgroup.kill of cgroup v2, Linux 5.14). The cgroup is made only
 * when needed, because moving a process takes the kernel milliseconds. If no cgroup can be made (no cgroup v2, no
 * permission), all methods do nothing.
 */
export class KillCgroup {
  readonly #name: string;
  /** The folder of the cgroup; null if no cgroup can be made, undefined if none was needed yet. */
  #folder: string | null | undefined;

  /** `cookie` names the cgroup, so that all processes that kill this job use the same cgroup. */
  constructor(cookie: string) {
    this.#name = prefix + cookie.replaceAll(/[^\w-]/g, "_");
  }

  /**
   * Moves processes of the job into the cgroup, so that `kill()` kills these processes and all processes that they
   * start from now on.
   */
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

  kill(): void {
    if (typeof this.#folder === "string") write(join(this.#folder, "cgroup.kill"), "1");
  }

  /** Removes the cgroup. The caller calls this when no member is alive. */
  close(): void {
    const endMs = performance.now() + emptyMsMax;
    while (typeof this.#folder === "string" && !remove(this.#folder) && performance.now() < endMs);
    this.#folder = undefined;
  }
}

/** Makes the cgroup below the cgroup of this process, so that its members keep the same limits. */
function makeFolder(name: string): string | null {
  const own = ownCgroup();
  if (own === null) return null;
  removeStale(own);
  const folder = join(own, name);
  try {
    mkdirSync(folder, { recursive: true });
    readFileSync(join(folder, "cgroup.procs")); // fails below a cgroup of threads
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

/** Decodes the escapes of proc(5), which writes a space, tab, newline or backslash as three octal digits. */
function decodeEscapes(word: string): string {
  return word.replaceAll(/\\([0-7]{3})/g, (_all, digits: string) => String.fromCharCode(parseInt(digits, 8)));
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch {
    // The process has ended, or may not be moved. A signal kills it anyway.
  }
}

/** Removes the cgroup. Returns false if it still has members. */
function remove(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}
