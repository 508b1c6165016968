/**
 * The guard's blow: kills everything of a job until two looks in a row find nothing alive. The guard is no parent of
 * the job: it goes by the process group, by the cookie in the environment, and by descent from the command while the
 * command lives. What has left all three (a daemon with a cleared environment whose parents are gone) escapes it; a keeper
 * that a baton inside the job started is let live, since it serves others too.
 */
import process from "node:process";
import { isKeeperProcess } from "../../keeper/keeper_process.ts";
import type { Libc } from "../child/libc.ts";
import {
  descendantsOf,
  groupMembers,
  hasProcessTable,
  processesWithCookie,
  readProcess,
} from "../child/process_table.ts";
import type { GuardedJob } from "./guard_state.ts";

/** baton may have been killed between starting the command and saying so: the command shows its cookie only once it runs. */
const unknownChildMs = 1000;

/** A process that cannot be killed (in the kernel, or another user's) is looked after this long. */
const strikeMsMax = 10_000;

/** The blow at one job, look by look. */
export class Strike {
  readonly #cookie: string;
  readonly #job: GuardedJob;
  readonly #libc: Libc;
  readonly #startMs: number;
  /** Once found below the command, a process stays one of them, whoever is its parent later; the ticks tell it from a namesake. */
  readonly #known = new Map<number, number>();
  #emptyLooks = 0;
  #clearedAtMs: number;

  constructor(cookie: string, job: GuardedJob, libc: Libc) {
    this.#cookie = cookie;
    this.#job = job;
    this.#libc = libc;
    this.#startMs = libc.bootTimeMs();
    this.#clearedAtMs = this.#startMs;
    if (job.child !== null) this.#known.set(job.child.pid, job.child.startTicks);
  }

  /**
   * Kills what is there. Null as long as another look is wanted, some milliseconds later; else the boot time at which
   * nothing was left, Infinity if it had to give up.
   */
  look(): number | null {
    const alive = this.#killAll();
    const nowMs = this.#libc.bootTimeMs();
    if (alive) this.#emptyLooks = 0;
    else if (this.#emptyLooks++ === 0) this.#clearedAtMs = nowMs;
    const settledMs = this.#job.child === null ? this.#startMs + unknownChildMs : this.#startMs;
    if (this.#emptyLooks >= 2 && nowMs >= settledMs) return this.#clearedAtMs;
    return nowMs >= this.#startMs + strikeMsMax ? Infinity : null;
  }

  /** True if anything was alive. */
  #killAll(): boolean {
    const { child } = this.#job;
    if (!hasProcessTable()) return child !== null && kill(child.ownGroup ? -child.pid : child.pid);
    const found = this.#find(child, this.#cookie);
    if (child?.ownGroup && groupMembers(child.pid).length > 0) kill(-child.pid);
    for (const pid of found) kill(pid);
    return found.length > 0;
  }

  #find(child: GuardedJob["child"], cookie: string): number[] {
    const pids = new Set(processesWithCookie(cookie));
    if (child?.ownGroup) { for (const pid of groupMembers(child.pid)) pids.add(pid); }
    for (const root of [...pids, ...this.#known.keys()]) {
      if (!pids.has(root) && !this.#isKnown(root)) continue;
      for (const pid of [root, ...descendantsOf(root, isKeeperProcess)]) this.#remember(pid);
    }
    for (const pid of this.#known.keys()) if (this.#isKnown(pid)) pids.add(pid);
    return [...pids].filter((pid) => readProcess(pid)?.dead === false);
  }

  #isKnown(pid: number): boolean {
    return readProcess(pid)?.startTicks === this.#known.get(pid);
  }

  #remember(pid: number): void {
    const row = readProcess(pid);
    if (row !== null) this.#known.set(pid, row.startTicks);
  }
}

function kill(pid: number): boolean {
  try {
    process.kill(pid, "SIGKILL");
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
