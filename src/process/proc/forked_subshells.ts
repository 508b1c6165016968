/**
 * Recognizes the subshells that a shell leaves behind when it ends, as copies of it. They carry no mark, because the shell's own
 * environment has none (the programs that they run carry it), and their parent has ended. Linux only.
 */
import { system } from "../../support/own_process.ts";
import { type ProcessRow, readProcess } from "./process_table.ts";

/** Recognizes the copies that a script makes of itself while it holds a lock. */
export interface CopiesOfScript {
  /** Copies that were made before are not under the lock. Clock ticks since boot. */
  readonly sinceTicks: number;
  readonly session: number;
  /** Digest of the script's fingerprint. */
  readonly digest: string;
}

/** Null if the script has ended, or is another user's. */
export function copiesOfScript(pid: number, sinceTicks: number): CopiesOfScript | null {
  const fingerprint = fingerprintOf(pid);
  const session = readProcess(pid)?.session;
  return fingerprint === null || session === undefined ? null : { sinceTicks, session, digest: digestOf(fingerprint) };
}

export class ForkedSubshells {
  readonly #script: CopiesOfScript;
  #orphanParents: ReadonlySet<number> = new Set();

  constructor(script: CopiesOfScript) {
    this.#script = script;
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
    const { session, sinceTicks, digest } = this.#script;
    if (!row.isCopy || row.dead || row.session !== session || row.startTicks < sinceTicks) return "other";
    const fingerprint = fingerprintOf(row.pid);
    if (fingerprint !== null && digestOf(fingerprint) !== digest) return "other";
    return fingerprint !== null && this.#orphanParents.has(row.parent) ? "orphaned" : "child";
  }
}

/** Two hashes of 32 bits. node:crypto takes longer to load than the guard to start. */
function digestOf(text: string): string {
  let [first, second] = [0x811c9dc5, 0x2545f491];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    first = Math.imul(first ^ code, 0x01000193); // FNV-1a
    second = Math.imul(second ^ code, 0x5bd1e995);
    second ^= second >>> 15;
  }
  return `${(first >>> 0).toString(16)}-${(second >>> 0).toString(16)}`;
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
