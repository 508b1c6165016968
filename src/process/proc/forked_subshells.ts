/**
 * The subshells that a shell leaves behind when it is gone: copies of it. They carry no cookie, since the shell's own
 * environment has none, while what they run does; and nobody who could tell is their parent any more. Linux only.
 */
import { readFileSync, readlinkSync } from "node:fs";
import process from "node:process";
import { type ProcessRow, readProcess } from "./process_table.ts";

export class ForkedSubshells {
  readonly #likeness: string | null;
  readonly #session: number | undefined;
  readonly #sinceTicks: number;
  #above: ReadonlySet<number> = new Set();

  /** Of a shell that lives: how it looks is remembered. `sinceTicks`, from boot: copies made before are not meant. */
  constructor(pid: number, sinceTicks: number) {
    this.#likeness = likenessOf(pid);
    this.#session = readProcess(pid)?.session;
    this.#sinceTicks = sinceTicks;
  }

  /** Of the processes that `look` is asked about from now on: what takes in orphans. */
  beginLook(): void {
    this.#above = ancestors();
  }

  /**
   * Whether a process is a copy, and if so whether its parent is gone; "child" too where it is just ending. What took it in is above this process too, for that
   * was once started below the shell, or it is process 1.
   */
  look(row: ProcessRow): "orphaned" | "child" | "other" {
    if (this.#likeness === null || !row.isCopy || row.dead) return "other";
    if (row.session !== this.#session || row.startTicks < this.#sinceTicks) return "other";
    const likeness = likenessOf(row.pid);
    if (likeness !== null && likeness !== this.#likeness) return "other";
    return likeness !== null && this.#above.has(row.parent) ? "orphaned" : "child";
  }
}

/**
 * Program, arguments and environment, as one text: what a copy of a process has in common with it. A program that is run
 * again differs in its environment or its arguments as a rule. Null for one that is gone, or another user's.
 */
export function likenessOf(pid: number): string | null {
  try {
    const [words, variables] = ["cmdline", "environ"].map((file) => readFileSync(`/proc/${pid}/${file}`, "latin1"));
    return `${readlinkSync(`/proc/${pid}/exe`)}\n${words}\n${variables}`;
  } catch {
    return null;
  }
}

/** How many processes may stand between this one and process 1. */
const ancestorsMax = 64;

/** The processes above this one, as far as orphans may be given to them. */
export function ancestors(): Set<number> {
  const found = new Set([1]);
  let row = readProcess(process.pid);
  while (row !== null && row.parent > 1 && found.size < ancestorsMax) {
    found.add(row.parent);
    row = readProcess(row.parent);
  }
  return found;
}
