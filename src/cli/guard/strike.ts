/**
 * The guard's blow: kills everything of a job until two looks in a row find nothing alive. The guard is no parent of
 * the job: what belongs to it is for known_processes.ts to say.
 */
import process from "node:process";
import { KnownProcesses } from "../child/known_processes.ts";
import type { Libc } from "../child/libc.ts";
import { groupMembers, hasProcessTable } from "../child/process_table.ts";
import type { ShellCopies } from "../child/shell_copies.ts";
import type { GroupWatch } from "./group_watch.ts";
import type { GuardedJob } from "./guard_state.ts";

/** baton may have been killed between starting the command and saying so: the command shows its cookie only once it runs. */
const unknownChildMs = 1000;

/** A process that cannot be killed (in the kernel, or another user's) is looked after this long. */
const strikeMsMax = 10_000;

/** The blow at one job, look by look. */
export class Strike {
  readonly #job: GuardedJob;
  readonly #libc: Libc;
  readonly #startMs: number;
  readonly #known: KnownProcesses;
  readonly #copies: ShellCopies | undefined;
  readonly #group: GroupWatch | null;
  #emptyLooks = 0;
  #clearedAtMs: number;

  /** `copies`: of a command that may leave some. `group`: null when no command was told of. */
  constructor(
    cookie: string,
    job: GuardedJob,
    { libc, copies, group }: { libc: Libc; copies: ShellCopies | undefined; group: GroupWatch | null },
  ) {
    this.#job = job;
    this.#copies = copies;
    this.#group = group;
    this.#libc = libc;
    this.#startMs = libc.bootTimeMs();
    this.#clearedAtMs = this.#startMs;
    this.#known = new KnownProcesses(cookie, job.child);
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
    const group = child !== null && this.#group?.isOurs() ? child.pid : null;
    if (!hasProcessTable()) {
      if (group !== null) return kill(-group);
      return child !== null && !child.ownGroup && kill(child.pid);
    }
    for (const pid of this.#copies?.orphaned() ?? []) this.#known.add(pid);
    const found = child === null || child.ownGroup ? this.#known.find(group) : this.#known.findStopped();
    if (group !== null && groupMembers(group).length > 0) kill(-group);
    for (const pid of found) kill(pid);
    return found.length > 0;
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
