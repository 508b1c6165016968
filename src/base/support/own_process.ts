/**
 * The operating system as the supervision of commands sees it, as one object: files of /proc, signals, and the children
 * of this process. A simulation has many processes in one, each with an object of its own.
 */
import { openSync, readdirSync, readFileSync, readlinkSync, readSync } from "node:fs";
import process from "node:process";

export interface ProcessSystem {
  readonly pid: number;
  /** Throws errors of the system, as all functions here do. */
  readText(path: string, encoding?: "latin1" | "utf8"): string;
  list(path: string): string[];
  readLink(path: string): string;
  /**
   * Opens a file that is read again and again, also when no further file can be opened. Returns the function that reads
   * it.
   */
  keepOpen(path: string): () => string;
  kill(pid: number, signal: NodeJS.Signals | 0): void;
  readonly own: OwnProcess;
}

interface OwnChild {
  readonly kind: "helper" | "command";
}

/**
 * The children of this process. A process that adopts orphans has to distinguish three kinds of them: baton's helpers,
 * such as the guard; commands, which the runtime reaps; and adopted orphans, which it reaps itself.
 */
export class OwnProcess {
  readonly children = new Map<number, OwnChild>();
  /**
   * Whether all children of this process belong to its first thread, which adopts orphans (find_new_reaper of the
   * kernel's exit.c); null until a child was started. Reading one thread instead of all is cheaper: the runtimes have
   * many, and commands end often.
   */
  firstThreadHasAll: boolean | null = null;
  /**
   * Reads the list of children, which stays open: a command's survivors have to be found even when no further file can
   * be opened.
   */
  readChildren: (() => string) | null = null;
}

/** The system of the process whose code runs. */
export let processSystem: ProcessSystem = {
  pid: process.pid,
  readText: (path, encoding = "latin1") => readFileSync(path, encoding),
  list: (path) => readdirSync(path),
  readLink: (path) => readlinkSync(path),
  keepOpen,
  kill: (pid, signal) => void process.kill(pid, signal),
  own: new OwnProcess(),
};

/** Replaces the system, for a simulation. Returns the one that was in use. */
export function useProcessSystem(next: ProcessSystem): ProcessSystem {
  const before = processSystem;
  processSystem = next;
  return before;
}

/** Registers a child. Returns the function to call when it has ended and the runtime has reaped it. */
export function registerChildProcess(pid: number, kind: OwnChild["kind"]): () => void {
  const { children } = processSystem.own;
  const child: OwnChild = { kind };
  children.set(pid, child);
  return () => {
    if (children.get(pid) === child) children.delete(pid); // the number may be a later child's
  };
}

/** Whether the process is a helper of baton, and so none of a command's processes. */
export function isOwnHelperProcess(pid: number): boolean {
  return processSystem.own.children.get(pid)?.kind === "helper";
}

/**
 * The environment variable of a keeper that was started on demand. It serves other clients too, and must survive a
 * supervisor that kills all descendants of a command. It starts no processes that could inherit the variable.
 */
export const keeperProcessVariable = "BATON_KEEPER_PROCESS";

/** Whether this child is an adopted orphan, which this process has to reap. */
export function isAdoptedOrphan(pid: number): boolean {
  return !processSystem.own.children.has(pid);
}

/** The kernel returns less than a page of a file of /proc per read: only an empty read is the end. */
function keepOpen(path: string): () => string {
  const fd = openSync(path, "r");
  let text = Buffer.alloc(8192);
  return () => {
    for (let length = 0;;) {
      const read = readSync(fd, text, length, text.length - length, length);
      if (read === 0) return text.toString("latin1", 0, length);
      length += read;
      if (length < text.length) continue;
      const larger = Buffer.alloc(2 * length);
      larger.set(text);
      text = larger;
    }
  };
}
