/**
 * Recognizes the subshells that a shell leaves behind when it ends, as copies of it. They carry no mark, because the shell's own
 * environment has none (the programs that they run carry it), and their parent has ended. Linux only.
 */
import { system } from "../../support/own_process.ts";
import { type ProcessRow, readProcess } from "./process_table.ts";

export class ForkedSubshells {
  readonly #fingerprint: string | null;
  readonly #session: number | undefined;
  readonly #sinceTicks: number;
  #orphanParents: ReadonlySet<number> = new Set();

  /** Remembers the fingerprint of a living shell. Copies made before `sinceTicks` (from boot) are left out. */
  constructor(pid: number, sinceTicks: number) {
    this.#fingerprint = fingerprintOf(pid);
    this.#session = readProcess(pid)?.session;
    this.#sinceTicks = sinceTicks;
  }

  /** Call it before a scan: reads the processes that adopt orphans. */
  beginScan(): void {
    this.#orphanParents = ancestors();
  }

  /**
   * Classifies a process: a copy whose parent has ended ("orphaned"), a copy whose parent is alive or that is just ending ("child"), or
   * no copy. An adopter of orphans is an ancestor of this process, too, because this process was started below the shell.
   */
  classify(row: ProcessRow): "orphaned" | "child" | "other" {
    if (this.#fingerprint === null || !row.isCopy || row.dead) return "other";
    if (row.session !== this.#session || row.startTicks < this.#sinceTicks) return "other";
    const fingerprint = fingerprintOf(row.pid);
    if (fingerprint !== null && fingerprint !== this.#fingerprint) return "other";
    return fingerprint !== null && this.#orphanParents.has(row.parent) ? "orphaned" : "child";
  }
}

/**
 * Program, arguments and environment as one text, which a copy of a process shares with it. A second run of a program usually differs
 * in its arguments or its environment. Null for a process that has ended, or is another user's.
 */
export function fingerprintOf(pid: number): string | null {
  try {
    const [args, variables] = ["cmdline", "environ"].map((file) => system.readText(`/proc/${pid}/${file}`));
    return `${system.readLink(`/proc/${pid}/exe`)}\n${args}\n${variables}`;
  } catch {
    return null;
  }
}

/** The number of processes between this one and process 1 that are read. */
const ancestorsMax = 64;

/** The ancestors of this process, one of which adopts orphans. */
export function ancestors(): Set<number> {
  const found = new Set([1]);
  let row = readProcess(system.pid);
  while (row !== null && row.parent > 1 && found.size < ancestorsMax) {
    found.add(row.parent);
    row = readProcess(row.parent);
  }
  return found;
}
