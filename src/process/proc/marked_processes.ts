/**
 * Finds the processes of a job by its cookie, its process group and by being a copy of its shell, in a table that changes while it is read. Says whether
 * an empty result can be trusted: a process that forks and exits moves on to a number that was not there when /proc was
 * listed, so that a listed process that is gone when it is read may have a child that was not listed.
 *
 * The kernel lists /proc in ascending order and gives ascending numbers: of a family that runs, each member forked by the one
 * before it, at least one member is listed. The one exception is the moment at which the numbers begin again from the lowest.
 */
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import { carriesCookie } from "./process_marker.ts";
import { lookAtProcess } from "./process_table.ts";
import type { ForkedSubshells } from "./forked_subshells.ts";

export interface Marks {
  readonly cookie: string;
  /** A process group that is the job's. */
  readonly group: number | null;
  /** Where the command is a shell that was not started with the cookie. */
  readonly copies: ForkedSubshells | null;
}

export interface MarkedLook {
  /** They were alive, the newest first. */
  readonly found: readonly number[];
  /** Every listed process could be judged: where `found` is empty, no process with the marks was alive. */
  readonly isCertain: boolean;
  /** Another user's, or protected: whether they carry the cookie cannot be read. */
  readonly unreadable: readonly number[];
}

/** For how long what was seen of a number counts, at most: longer the number may be another process's. */
const seenMsMax = 1000;

/** A number is given again when all others were given: no machine starts more processes in a millisecond. */
const startsPerMsMax = 32;

type Kind = "marked" | "stranger" | "unreadable" | "blank" | "unknown";

export class MarkedProcesses {
  readonly #strangers = new Set<number>();
  #unreadable: number[] = [];
  /** Could not be judged in the look before: dead, or without an environment. A dead process has no child that came after it. */
  #blank: ReadonlySet<number> = new Set();
  #lookedAtMs = -Infinity;
  #forgottenAtMs = -Infinity;
  readonly #seenMs = Math.min(seenMsMax, numbersOfProcesses() / startsPerMsMax);
  readonly #isStarting: boolean;

  /** `isStarting`: the command may be on its way to execve, and shows no cookie before it. */
  constructor({ isStarting }: { readonly isStarting: boolean }) {
    this.#isStarting = isStarting;
  }

  /** One pass over /proc. `onFound` is called as soon as a process is found. */
  look(marks: Marks, onFound: (pid: number) => void = () => {}): MarkedLook {
    this.#forget();
    marks.copies?.beginLook();
    const found: number[] = [];
    const blank = new Set<number>();
    const pids = listProcesses();
    let isCertain = pids !== null;
    // The newest first: a family that replaces itself has moved on in a moment.
    for (const pid of pids?.reverse() ?? []) {
      if (pid === process.pid || this.#strangers.has(pid)) continue;
      const kind = kindOf(pid, marks);
      if (kind === "marked") {
        found.push(pid);
        onFound(pid);
      } else if (kind === "unknown") {
        isCertain = false;
      } else if (kind === "blank") {
        blank.add(pid);
        isCertain &&= this.#blank.has(pid);
      } else {
        this.#strangers.add(pid);
        if (kind === "unreadable") this.#unreadable.push(pid);
      }
    }
    this.#blank = blank;
    return { found, isCertain, unreadable: this.#unreadable };
  }

  #forget(): void {
    const nowMs = performance.now();
    if (nowMs >= this.#lookedAtMs + this.#seenMs) this.#blank = new Set();
    this.#lookedAtMs = nowMs;
    if (nowMs < this.#forgottenAtMs + this.#seenMs && !this.#isStarting) return;
    this.#forgottenAtMs = nowMs;
    this.#strangers.clear();
    this.#unreadable = [];
  }
}

function kindOf(pid: number, { cookie, group, copies }: Marks): Kind {
  const environ = readEnvironment(pid);
  if (environ !== null && carriesCookie(environ, cookie)) return "marked";
  if (environ !== "" && group === null && copies === null) return environ === null ? "unreadable" : "stranger";
  const row = lookAtProcess(pid);
  if (row === "unknown") return environ === null ? "unreadable" : "unknown";
  if (row === null || row.dead) return "blank";
  if (row.group === group) return "marked";
  if (row.isKernels) return "stranger";
  // It may be between two programs (execve), where the environment of the new one is not there yet.
  if (environ === "") return "blank";
  if (environ === null) return "unreadable";
  switch (copies?.look(row) ?? "other") {
    case "orphaned":
      return "marked";
    case "child":
      return "blank"; // of a process that may be gone in a moment
    case "other":
      return "stranger";
  }
}

/** Null where nothing can be opened. */
function listProcesses(): number[] | null {
  try {
    return readdirSync("/proc").map(Number).filter((pid) => pid > 0);
  } catch {
    return null;
  }
}

/** Empty for one that is gone or dead, or that says nothing now; null where it must not be read. */
function readEnvironment(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch (error) {
    return ["EACCES", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "") ? null : "";
  }
}

/** How many there are in this PID namespace; the kernel's old default where that cannot be read. */
function numbersOfProcesses(): number {
  try {
    return Number(readFileSync("/proc/sys/kernel/pid_max", "latin1"));
  } catch {
    return 32_768;
  }
}
