/**
 * The interface to the operating system for the supervision of commands: files of /proc, signals, and the children of
 * this process. A simulation runs many simulated processes inside one real process, and gives each its own
 * `ProcessSystem`.
 */
import { openSync, readdirSync, readFileSync, readlinkSync, readSync } from "node:fs";
import process from "node:process";

export interface ProcessSystem {
  readonly pid: number;
  /** Reads a whole file. Throws system errors, like all functions of this interface. */
  readText(path: string, encoding?: "latin1" | "utf8"): string;
  list(path: string): string[];
  readLink(path: string): string;
  /**
   * Opens a file for repeated reading, even when the process can open no other file. Returns the function that reads
   * the file.
   */
  keepOpen(path: string): () => string;
  kill(pid: number, signal: NodeJS.Signals | 0): void;
  readonly own: ChildProcessRegistry;
}

interface OwnChild {
  readonly kind: "helper" | "command";
}

/**
 * The children of this process. There are three kinds: baton's helpers, such as the guard; commands, which the runtime
 * reaps; adopted orphans, which baton reaps itself.
 */
export class ChildProcessRegistry {
  readonly children = new Map<number, OwnChild>();
  /**
   * True if all children belong to the first thread of this process, which adopts orphans (find_new_reaper of the
   * kernel's exit.c). Null until a child was started. The runtimes have many threads, so reading only one of them takes
   * less time.
   */
  firstThreadHasAll: boolean | null = null;
  /**
   * Reads the list of children. The file stays open, because baton must find the processes that outlive a command even
   * when it can open no other file.
   */
  readChildren: (() => string) | null = null;
}

/** The operating system of the process whose code runs now. */
export let processSystem: ProcessSystem = {
  pid: process.pid,
  readText: (path, encoding = "latin1") => readFileSync(path, encoding),
  list: (path) => readdirSync(path),
  readLink: (path) => readlinkSync(path),
  keepOpen,
  kill: (pid, signal) => void process.kill(pid, signal),
  own: new ChildProcessRegistry(),
};

/** Replaces `processSystem`, for a simulation. Returns the previous value. */
export function useProcessSystem(next: ProcessSystem): ProcessSystem {
  const before = processSystem;
  processSystem = next;
  return before;
}

/** Registers a child. Returns the function to call when the child has ended and the runtime has reaped it. */
export function registerChildProcess(pid: number, kind: OwnChild["kind"]): () => void {
  const { children } = processSystem.own;
  const child: OwnChild = { kind };
  children.set(pid, child);
  return () => {
    if (children.get(pid) === child) children.delete(pid); // the pid may belong to a later child
  };
}

/** Returns true if the process is one of baton's helpers, and therefore does not belong to a command. */
export function isOwnHelperProcess(pid: number): boolean {
  return processSystem.own.children.get(pid)?.kind === "helper";
}

/**
 * The variable that marks a keeper that was started on demand. Such a keeper also serves other clients, so it must
 * survive when baton kills all descendants of a command. A keeper starts no process that could inherit the variable.
 */
export const keeperProcessVariable = "BATON_KEEPER_PROCESS";

/** Returns true if this child is an adopted orphan, which this process must reap. */
export function isAdoptedOrphan(pid: number): boolean {
  return !processSystem.own.children.has(pid);
}

/**
 * Opens a file for repeated reading. Each read continues until it returns nothing, because the kernel may return a file
 * of /proc in several pieces.
 */
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
