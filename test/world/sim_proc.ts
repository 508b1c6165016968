/**
 * The system calls of a simulated process: /proc, signals, and the calls of libc, on the model of its machine's
 * processes.
 */
import type { Libc } from "../../src/base/process/libc.ts";
import { ChildProcessRegistry, type ProcessSystem } from "../../src/base/support/own_process.ts";
import type { OsProcess, PipeWriters, SimOs } from "./sim_os.ts";
import { systemError } from "./sim_socket.ts";

/** The time of one system call, in milliseconds. */
const callMs = { low: 0.003, high: 0.012 };

const forkedWithoutExec = 0x40;
const kernelThread = 0x200000;

/** Bytes that a pipe takes without a reader. */
const pipeBytesMax = 65_536;

/** A pipe. What was written stays when the writer dies; it ends when no process has its writing end open. */
export class SimPipe implements PipeWriters {
  readonly #writers = new Set<OsProcess>();
  #bytes: number[] = [];
  #waiting: { readonly by: OsProcess; readonly bytes: Uint8Array; readonly written: () => void }[] = [];
  /** Called when there is something to read, or the end. */
  onReadable: () => void = () => {};

  openFor(process: OsProcess): void {
    this.#writers.add(process);
    process.pipes.add(this);
  }

  closedBy(process: OsProcess): void {
    this.#writers.delete(process);
    this.#waiting = this.#waiting.filter(({ by }) => by !== process);
    if (this.#isEnded) this.onReadable();
  }

  get #isEnded(): boolean {
    return [...this.#writers].every((one) => !one.pipes.has(this));
  }

  get isReadable(): boolean {
    return this.#bytes.length > 0 || this.#isEnded;
  }

  /** Undefined when all is in the pipe; a full pipe takes it later. */
  write(by: OsProcess, bytes: Uint8Array): Promise<void> | undefined {
    if (this.#waiting.length > 0 || this.#bytes.length + bytes.length > pipeBytesMax) {
      return new Promise((resolve) => this.#waiting.push({ by, bytes, written: resolve }));
    }
    this.#bytes.push(...bytes);
    this.onReadable();
    return undefined;
  }

  /** As read(2): 0 at the end, -1 when there is nothing. */
  read(into: Uint8Array): number {
    if (this.#bytes.length === 0) return this.#isEnded ? 0 : -1;
    const taken = this.#bytes.splice(0, into.length);
    into.set(taken);
    for (let [next] = this.#waiting; next !== undefined; [next] = this.#waiting) {
      if (this.#bytes.length + next.bytes.length > pipeBytesMax) break;
      this.#waiting.shift();
      this.#bytes.push(...next.bytes);
      next.written();
    }
    return taken.length;
  }

  /** A copy of a writer has the writing end, too. */
  inherit(process: OsProcess): void {
    if (process.pipes.has(this)) this.#writers.add(process);
  }
}

export class SimSystem implements ProcessSystem {
  readonly process: OsProcess;
  readonly own = new ChildProcessRegistry();

  constructor(process: OsProcess) {
    this.process = process;
  }

  get pid(): number {
    return this.process.pid;
  }

  get #os(): SimOs {
    return this.process.os;
  }

  readText(path: string): string {
    this.#spend();
    const [, , name = "", file = "", thread, last] = path.split("/");
    if (file === "kernel" && thread === "pid_max") return `${this.#os.pidMax}\n`;
    if (file === "kernel" && thread === "ns_last_pid") return `${this.#os.lastPid}\n`;
    const found = this.#find(name, path);
    if (file === "environ" && found.isOthers && found.isAlive) throw systemError("EACCES", `not permitted: ${path}`);
    if (file === "task" && last === "children" && found.isAlive) {
      return found.children.map(({ pid }) => `${pid} `).join("");
    }
    return textOf(found, file, path);
  }

  list(path: string): string[] {
    this.#spend();
    if (path !== "/proc") {
      const [, , name = "", file] = path.split("/");
      if (file === "task") return [String(this.#find(name, path).pid)];
      throw systemError("ENOENT", `no such folder: ${path}`);
    }
    // In ascending order; processes start and end meanwhile.
    const names: string[] = ["self", "stat", "meminfo"];
    for (let last = 0;;) {
      let next = Infinity;
      for (const pid of this.#os.processes.keys()) if (pid > last && pid < next) next = pid;
      if (next === Infinity) return names;
      names.push(String(next));
      last = next;
      this.#spend();
    }
  }

  readLink(path: string): string {
    this.#spend();
    if (path === "/proc/self") return String(this.pid);
    const [, , name = "", file] = path.split("/");
    const found = this.#find(name, path);
    if (file !== "exe" || !found.isAlive || found.program.exe === "") throw systemError("ENOENT", `no link: ${path}`);
    return found.program.exe;
  }

  keepOpen(path: string): () => string {
    return () => this.readText(path);
  }

  kill(pid: number, signal: NodeJS.Signals | 0): void {
    this.#spend();
    this.#os.kill(this.process, pid, signal);
  }

  #find(name: string, path: string): OsProcess {
    const found = name === "self" ? this.process : this.#os.processes.get(Number(name));
    if (found === undefined) throw systemError("ENOENT", `no such file: ${path}`);
    return found;
  }

  #spend(): void {
    this.#os.spend(this.process, this.#os.chance.between(callMs.low, callMs.high));
  }
}

function textOf(process: OsProcess, file: string, path: string): string {
  const { program: { args, environ }, isAlive } = process;
  switch (file) {
    case "stat":
      return statOf(process);
    case "comm":
      return `${nameOf(process)}\n`;
    case "cmdline":
      return isAlive ? args.map((word) => `${word}\0`).join("") : "";
    case "environ":
      return isAlive ? environ : "";
    case "mountinfo":
      return "22 27 0:21 / /proc rw,relatime - proc proc rw\n";
    case "status":
      return `Tgid:\t${process.pid}\nSigIgn:\t0000000000000000\nCapEff:\t0000000000000000\n`;
    default:
      throw systemError("ENOENT", `no such file: ${path}`);
  }
}

const nameOf = ({ program: { args } }: OsProcess): string => (args[0] ?? "kthreadd").slice(-15);

/** proc(5), /proc/pid/stat */
function statOf(process: OsProcess): string {
  const { pid, letter, parent, group, session, isCopy, isKernelThread, startTicks, isAlive } = process;
  const flags = (isCopy ? forkedWithoutExec : 0) | (isKernelThread ? kernelThread : 0);
  const ids = `${pid} (${nameOf(process)}) ${letter} ${parent?.pid ?? 0} ${group} ${session}`;
  const memory = `${"0 ".repeat(28)}${isAlive ? 1 : 0}`; // fields 23 to 51
  return `${ids} 0 -1 ${flags} 0 0 0 0 1 1 0 0 20 0 1 0 ${startTicks} ${memory} 0\n`;
}

function refuse(name: string): () => never {
  return () => {
    throw new Error(`${name} was called: a simulated process has none`);
  };
}

/** `input` and `output` are the standard streams of a guard. */
export function simLibc(
  system: SimSystem,
  { input, output }: { readonly input?: SimPipe; readonly output?: (bytes: Uint8Array) => void } = {},
): Libc {
  const { process } = system;
  const { os } = process;
  const spent = () => (process.sim?.spentMs ?? 0) * os.machine.clockRate;
  return {
    becomeSubreaper: () => process.isSubreaper = true,
    setProcessName: () => {},
    reap(pid) {
      const child = os.processes.get(pid);
      if (child?.parent !== process || child.state !== "zombie") return false;
      os.reap(child);
      return true;
    },
    ignoreSignal: (number) => void process.ignored.add(signalNames[number] ?? "SIGHUP"),
    restoreChildSignal: () => {},
    bootTimeMs: () => os.machine.bootMs() + spent(),
    read: (_fd, into) => input?.read(into) ?? -1,
    write: (fd, bytes) => void (fd === 1 && output?.(bytes)),
    parentPid: () => process.parent?.pid ?? 0,
    close: () => {},
    isTerminal: () => false,
    waitReadable: (_fd, forMs) => forMs === 0 ? input?.isReadable ?? false : refuse("poll")(),
    waitWritable: () => true,
    sendNow: refuse("send"),
    sleep: refuse("sleep"),
    openPipe: () => false,
    lockFile: refuse("flock"),
    duplicate: () => -1,
  };
}

const signalNames: Readonly<Record<number, NodeJS.Signals>> = { 1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 15: "SIGTERM" };
