/**
 * The calls of libc that no runtime offers, by FFI: under Bun and Deno, on Linux and macOS. None of them takes variable
 * arguments where that changes how they are passed, except prctl, which is called on Linux only (there the registers
 * are the same). Owns no policy.
 */
import { constants } from "node:os";
import process from "node:process";

export interface Libc {
  /** Makes orphaned descendants this process's children (PR_SET_CHILD_SUBREAPER). False where there is no such thing. */
  becomeSubreaper(): boolean;
  /** Names the process for ps and pkill; Linux cuts it to 15 bytes, elsewhere nothing happens. */
  setProcessName(name: string): void;
  /** Takes the status of this one ended child; true if there was one to take. Never waits. */
  reap(pid: number): boolean;
  ignoreSignal(number: number): void;
  /** Undoes that this process was started to ignore SIGCHLD: the kernel then keeps no exit status for it. */
  hearOfChildren(): void;
  /** Monotonic milliseconds since the machine started, suspended time included. */
  bootTimeMs(): number;
  /** Sleeps until `fd` can be read or has ended, or `timeoutMs` have passed. Blocks the whole thread. */
  waitReadable(fd: number, timeoutMs: number): boolean;
  /** Sleeps. Blocks the whole thread. */
  sleep(milliseconds: number): void;
  /** Bytes read into `into`; 0 at the end of the file, -1 for an error. Blocks. */
  read(fd: number, into: Uint8Array): number;
  write(fd: number, bytes: Uint8Array): void;
  close(fd: number): void;
  isTerminal(fd: number): boolean;
  /** flock(2), exclusive, without waiting. False when somebody else has it, or it cannot be had at all. */
  lockFile(fd: number): boolean;
  /** The process that started this one; another one takes its place in the moment in which it dies (getppid(2)). */
  parentPid(): number;
  /** dup(2): the same open file under another number, which children inherit. -1 for an error. */
  duplicate(fd: number): number;
}

/** Result and arguments, in the names Bun uses; Deno differs in `ptr` alone, which it calls `buffer`. */
const signatures = {
  prctl: ["i32", "i32", "u64", "u64", "u64", "u64"],
  waitpid: ["i32", "i32", "u64", "i32"],
  signal: ["u64", "i32", "u64"],
  sigaction: ["i32", "i32", "u64", "ptr"],
  clock_gettime: ["i32", "i32", "ptr"],
  poll: ["i32", "ptr", "u64", "i32"],
  read: ["i64", "i32", "ptr", "u64"],
  write: ["i64", "i32", "ptr", "u64"],
  close: ["i32", "i32"],
  isatty: ["i32", "i32"],
  flock: ["i32", "i32", "i32"],
  dup: ["i32", "i32"],
  getppid: ["i32"],
} as const;

type Argument = number | bigint | Uint8Array;
type Symbols = Record<keyof typeof signatures, (...args: Argument[]) => number | bigint>;
interface Library {
  readonly call: Symbols;
  readonly addressOf: (bytes: Uint8Array) => bigint;
}

interface DenoFfi {
  dlopen(path: string, symbols: Record<string, { result: string; parameters: string[] }>): { symbols: Symbols };
  UnsafePointer: { of(bytes: Uint8Array): unknown; value(pointer: unknown): bigint };
}

let loaded: Promise<Libc | null> | undefined;

/** libc, or null where it cannot be called: the caller then does with less. Loaded once, in about half a millisecond. */
export function loadLibc(): Promise<Libc | null> {
  loaded ??= open().then((library) => library && describe(library));
  return loaded;
}

async function open(): Promise<Library | null> {
  const names = process.platform === "darwin" ? ["/usr/lib/libSystem.B.dylib"] : ["libc.so.6", "libc.so"];
  for (const name of names) {
    try {
      return "Deno" in globalThis ? openInDeno(name) : await openInBun(name);
    } catch {
      continue; // another C library, or a place where no foreign code may be called
    }
  }
  return null;
}

async function openInBun(name: string): Promise<Library> {
  const { dlopen, ptr } = await import("bun:ffi");
  const entries = Object.entries(signatures).map(([symbol, [returns, ...args]]) => [symbol, { returns, args }]);
  const symbols: unknown = dlopen(name, Object.fromEntries(entries)).symbols;
  return { call: symbols as Symbols, addressOf: (bytes) => BigInt(ptr(bytes)) };
}

function openInDeno(name: string): Library {
  const ffi = (globalThis as unknown as { Deno: DenoFfi }).Deno;
  const inDeno = (type: string) => (type === "ptr" ? "buffer" : type);
  const entries = Object.entries(signatures).map(([symbol, [result, ...parameters]]) => {
    return [symbol, { result, parameters: parameters.map(inDeno) }] as const;
  });
  const { symbols } = ffi.dlopen(name, Object.fromEntries(entries));
  return { call: symbols, addressOf: (bytes) => ffi.UnsafePointer.value(ffi.UnsafePointer.of(bytes)) };
}

function describe({ call, addressOf }: Library): Libc {
  const linux = process.platform === "linux";
  const PR_SET_NAME = 15, PR_SET_CHILD_SUBREAPER = 36, WNOHANG = 1, SIG_IGN = 1n, POLLIN = 1;
  const LOCK_EX = 2, LOCK_NB = 4;
  // On macOS CLOCK_MONOTONIC itself goes on while the machine sleeps; Linux has CLOCK_BOOTTIME for that.
  const clockId = linux ? 7 : 6;
  const time = new BigInt64Array(2);
  const timeBytes = new Uint8Array(time.buffer);
  const none = new Uint8Array(8);
  let isSubreaper = false;
  let hears = false;
  return {
    becomeSubreaper: () => isSubreaper ||= linux && Number(call.prctl(PR_SET_CHILD_SUBREAPER, 1n, 0n, 0n, 0n)) === 0,
    setProcessName(name) {
      const bytes = new TextEncoder().encode(`${name}\0`);
      if (linux) call.prctl(PR_SET_NAME, addressOf(bytes), 0n, 0n, 0n);
    },
    reap: (pid) => Number(call.waitpid(pid, 0n, WNOHANG)) === pid,
    ignoreSignal: (number) => void call.signal(number, SIG_IGN),
    hearOfChildren() {
      if (hears) return;
      hears = true;
      const action = new BigUint64Array(32); // struct sigaction, which begins with the handler
      call.sigaction(constants.signals.SIGCHLD, 0n, new Uint8Array(action.buffer));
      if (action[0] === SIG_IGN) call.signal(constants.signals.SIGCHLD, 0n);
    },
    bootTimeMs() {
      call.clock_gettime(clockId, timeBytes);
      return Number(time[0]) * 1000 + Number(time[1]) / 1e6;
    },
    waitReadable(fd, timeoutMs) {
      const request = new DataView(new ArrayBuffer(8)); // struct pollfd { int fd; short events; short revents }
      request.setInt32(0, fd, true);
      request.setInt16(4, POLLIN, true);
      return Number(call.poll(new Uint8Array(request.buffer), 1n, wholeMs(timeoutMs))) > 0;
    },
    sleep: (milliseconds) => void call.poll(none, 0n, wholeMs(milliseconds)),
    read: (fd, into) => Number(call.read(fd, into, BigInt(into.length))),
    write: (fd, bytes) => void call.write(fd, bytes, BigInt(bytes.length)),
    close: (fd) => void call.close(fd),
    isTerminal: (fd) => Number(call.isatty(fd)) === 1,
    lockFile: (fd) => Number(call.flock(fd, LOCK_EX | LOCK_NB)) === 0,
    duplicate: (fd) => Number(call.dup(fd)),
    parentPid: () => Number(call.getppid()),
  };
}

/** poll(2) takes an int, and a fraction rounded down would make its caller spin. */
function wholeMs(milliseconds: number): number {
  return Math.min(Math.max(0, Math.ceil(milliseconds)), 0x7fffffff);
}
