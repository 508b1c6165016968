/**
 * Calls functions of libc that no runtime offers, through FFI under Bun and Deno, on Linux and macOS. Avoids variadic
 * functions, because some platforms pass their arguments differently; prctl is an exception that works on Linux.
 */
import { constants } from "node:os";
import process from "node:process";
import { type ProcessSystem, processSystem } from "../support/own_process.ts";

export type Libc = ReturnType<typeof describe>;

/** The types of the result and of the arguments, with Bun's names. Deno calls `ptr` `buffer`. */
const signatures = {
  prctl: ["i32", "i32", "u64", "u64", "u64", "u64"],
  waitpid: ["i32", "i32", "u64", "i32"],
  signal: ["u64", "i32", "u64"],
  sigaction: ["i32", "i32", "u64", "ptr"],
  clock_gettime: ["i32", "i32", "ptr"],
  poll: ["i32", "ptr", "u64", "i32"],
  pipe: ["i32", "ptr"],
  read: ["i64", "i32", "ptr", "u64"],
  write: ["i64", "i32", "ptr", "u64"],
  send: ["i64", "i32", "ptr", "u64", "i32"],
  close: ["i32", "i32"],
  isatty: ["i32", "i32"],
  flock: ["i32", "i32", "i32"],
  dup: ["i32", "i32"],
  getppid: ["i32"],
} as const;

type Argument = number | bigint | Uint8Array;
type Signatures = Readonly<Record<string, readonly string[]>>;
type Symbols<S extends Signatures> = Record<keyof S, (...args: Argument[]) => number | bigint>;
interface Library<S extends Signatures> {
  readonly call: Symbols<S>;
  readonly addressOf: (bytes: Uint8Array) => bigint;
}

interface DenoFfi {
  dlopen(
    path: string,
    symbols: Record<string, { result: string; parameters: string[] }>,
  ): { symbols: Symbols<Signatures> };
  UnsafePointer: { of(bytes: Uint8Array): unknown; value(pointer: unknown): bigint };
}

/**
 * The libc of each process system. A simulation has several process systems, because some calls change the state of one
 * process.
 */
const loaded = new WeakMap<ProcessSystem, Promise<Libc | null>>();

/** Returns libc, which loads once in about 0.5 ms; null if it cannot be called here. Callers must work without libc. */
export function loadLibc(): Promise<Libc | null> {
  const known = loaded.get(processSystem);
  if (known !== undefined) return known;
  const loading = openLibcFunctions(signatures).then((library) => library && describe(library));
  loaded.set(processSystem, loading);
  return loading;
}

export function provideSimulatedLibc(of: ProcessSystem, libc: Libc): void {
  loaded.set(of, Promise.resolve(libc));
}

/** Opens libc and makes `functions` callable. Returns null if libc cannot be called here. */
export async function openLibcFunctions<S extends Signatures>(functions: S): Promise<Library<S> | null> {
  const names = process.platform === "darwin" ? ["/usr/lib/libSystem.B.dylib"] : ["libc.so.6", "libc.so"];
  for (const name of names) {
    try {
      return "Deno" in globalThis ? openInDeno(name, functions) : await openInBun(name, functions);
    } catch {
      continue; // not this C library, or FFI is not permitted
    }
  }
  return null;
}

async function openInBun<S extends Signatures>(name: string, functions: S): Promise<Library<S>> {
  const { dlopen, ptr } = await import("bun:ffi");
  const entries = Object.entries(functions).map(([symbol, [returns, ...args]]) => [symbol, { returns, args }]);
  const symbols: unknown = dlopen(name, Object.fromEntries(entries)).symbols;
  return { call: symbols as Symbols<S>, addressOf: (bytes) => BigInt(ptr(bytes)) };
}

function openInDeno<S extends Signatures>(name: string, functions: S): Library<S> {
  const ffi = (globalThis as unknown as { Deno: DenoFfi }).Deno;
  const inDeno = (type: string) => (type === "ptr" ? "buffer" : type);
  const entries = Object.entries(functions).map(([symbol, [result = "", ...parameters]]) => {
    return [symbol, { result, parameters: parameters.map(inDeno) }] as const;
  });
  const { symbols } = ffi.dlopen(name, Object.fromEntries(entries));
  return { call: symbols as Symbols<S>, addressOf: (bytes) => ffi.UnsafePointer.value(ffi.UnsafePointer.of(bytes)) };
}

function describe({ call, addressOf }: Library<typeof signatures>) {
  const linux = process.platform === "linux";
  const PR_SET_NAME = 15, PR_SET_CHILD_SUBREAPER = 36, WNOHANG = 1, SIG_IGN = 1n, POLLIN = 1, POLLOUT = 4;
  const LOCK_EX = 2, LOCK_NB = 4, MSG_DONTWAIT = linux ? 0x40 : 0x80;
  // macOS counts suspended time in CLOCK_MONOTONIC; Linux counts it in CLOCK_BOOTTIME.
  const clockId = linux ? 7 : 6;
  const time = new BigInt64Array(2);
  const timeBytes = new Uint8Array(time.buffer);
  const none = new Uint8Array(8);
  const waitFor = (fd: number, events: number, timeoutMs: number): boolean => {
    const request = new DataView(new ArrayBuffer(8)); // struct pollfd { int fd; short events; short revents }
    request.setInt32(0, fd, true);
    request.setInt16(4, events, true);
    return Number(call.poll(new Uint8Array(request.buffer), 1n, wholeMs(timeoutMs))) > 0;
  };
  let isSubreaper = false;
  let isRestored = false;
  return {
    /** Lets this process adopt orphaned descendants (PR_SET_CHILD_SUBREAPER); false if the system cannot do that. */
    becomeSubreaper: (): boolean =>
      isSubreaper ||= linux && Number(call.prctl(PR_SET_CHILD_SUBREAPER, 1n, 0n, 0n, 0n)) === 0,
    /** Sets the process name for ps and pkill, at most 15 bytes, on Linux only. */
    setProcessName(name: string): void {
      const bytes = new TextEncoder().encode(`${name}\0`);
      if (linux) call.prctl(PR_SET_NAME, addressOf(bytes), 0n, 0n, 0n);
    },
    /** Reaps the child if it has ended, without waiting. Returns true if the child was reaped. */
    reap: (pid: number): boolean => Number(call.waitpid(pid, 0n, WNOHANG)) === pid,
    ignoreSignal: (number: number): void => void call.signal(number, SIG_IGN),
    /** Stops ignoring SIGCHLD, because the kernel keeps no exit status of children while SIGCHLD is ignored. */
    restoreChildSignal(): void {
      if (isRestored) return;
      isRestored = true;
      const action = new BigUint64Array(32); // struct sigaction, which begins with the handler
      call.sigaction(constants.signals.SIGCHLD, 0n, new Uint8Array(action.buffer));
      if (action[0] === SIG_IGN) call.signal(constants.signals.SIGCHLD, 0n);
    },
    /** Returns the monotonic time since boot, including suspended time. */
    bootTimeMs(): number {
      call.clock_gettime(clockId, timeBytes);
      return Number(time[0]) * 1000 + Number(time[1]) / 1e6;
    },
    /** Waits until `fd` is readable or at its end, but at most `timeoutMs`. Blocks the whole thread. */
    waitReadable: (fd: number, timeoutMs: number): boolean => waitFor(fd, POLLIN, timeoutMs),
    /** Waits until `fd` accepts PIPE_BUF bytes or has no reader, but at most `timeoutMs`. Blocks the whole thread. */
    waitWritable: (fd: number, timeoutMs: number): boolean => waitFor(fd, POLLOUT, timeoutMs),
    /** Makes a pipe, and writes its read end and its write end into `ends`. False after an error. pipe(2). */
    openPipe: (ends: Uint8Array): boolean => Number(call.pipe(ends)) === 0,
    /** Sleeps. Blocks the whole thread. */
    sleep: (milliseconds: number): void => void call.poll(none, 0n, wholeMs(milliseconds)),
    /** Reads bytes into `into`. Returns their number: 0 at the end of the file, -1 after an error. Blocks. */
    read: (fd: number, into: Uint8Array): number => Number(call.read(fd, into, BigInt(into.length))),
    write: (fd: number, bytes: Uint8Array): void => void call.write(fd, bytes, BigInt(bytes.length)),
    /** Sends to a socket without waiting. Returns the number of bytes that it took; -1 if it is full or failed. */
    sendNow: (fd: number, bytes: Uint8Array): number =>
      Number(call.send(fd, bytes, BigInt(bytes.length), MSG_DONTWAIT)),
    close: (fd: number): void => void call.close(fd),
    isTerminal: (fd: number): boolean => Number(call.isatty(fd)) === 1,
    /** Locks a file exclusively, without waiting. Returns false if another process holds the lock. flock(2). */
    lockFile: (fd: number): boolean => Number(call.flock(fd, LOCK_EX | LOCK_NB)) === 0,
    /** Returns another descriptor of the same open file, for children; -1 after an error. dup(2). */
    duplicate: (fd: number): number => Number(call.dup(fd)),
    /** Returns the parent's pid; after its death, the pid of the process that adopted this one. getppid(2). */
    parentPid: (): number => Number(call.getppid()),
  };
}

/** Rounds up to whole milliseconds, which poll(2) takes. Rounding down would make callers repeat a wait of 0 ms. */
function wholeMs(milliseconds: number): number {
  return Math.min(Math.max(0, Math.ceil(milliseconds)), 0x7fffffff);
}
