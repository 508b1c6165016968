/**
 * Finds the file descriptors that baton's parent has left open for the command (`9>file`, a jobserver, LISTEN_FDS), or
 * has closed.
 */
import { fstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import process from "node:process";
import type { Libc } from "../libc.ts";

/**
 * Returns the descriptors from 3 up that were open when this process started. Call it before opening anything: it
 * recognizes the descriptors of the runtime, but not later ones.
 */
export function inheritedDescriptors(): number[] {
  const folder = process.platform === "linux" ? "/proc/self/fd" : "/dev/fd";
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  return names.map(Number).filter((fd) => fd >= 3 && isInherited(fd)).sort((a, b) => a - b);
}

/**
 * Closes the inherited descriptors in a helper process, to which Deno passes them all: a pipe that stays open keeps its
 * reader waiting.
 */
export function closeInheritedDescriptors(libc: Libc, fds: readonly number[] = inheritedDescriptors()): void {
  for (const fd of fds) libc.close(fd);
}

function isInherited(fd: number): boolean {
  if (process.platform !== "linux") return isOpen(fd);
  try {
    // Bun has opened an epoll and an eventfd, and has marked the inherited descriptors close-on-exec like its own.
    const target = readlinkSync(`/proc/self/fd/${fd}`);
    if ("Bun" in globalThis) return !/^anon_inode:\[?(eventpoll|eventfd|timerfd)/.test(target);
    return !isCloseOnExec(fd);
  } catch {
    return false; // the descriptor that listed the folder
  }
}

/**
 * Returns whether a descriptor is open and not a kqueue of the runtime, which macOS shows as a pipe with a tiny block
 * size.
 */
function isOpen(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    return !(stat.isFIFO() && stat.blksize <= 64);
  } catch {
    return false;
  }
}

/**
 * Returns whether stdin was closed when this process started (`<&-`); it then reads like an empty file. Bun opens
 * /dev/null in place of a closed standard stream, close-on-exec, which no inherited stream is. False if that is not
 * visible: under Deno, which marks none, and outside Linux.
 */
export function wasStdinClosedAtStart(): boolean {
  return wasStreamClosedAtStart(0);
}

/**
 * Returns whether a standard stream was closed when this process started, like `wasStdinClosedAtStart`. A closed output
 * loses everything (`>&-`).
 */
export function wasStreamClosedAtStart(fd: number): boolean {
  if (!("Bun" in globalThis) || process.platform !== "linux") return false;
  try {
    return isCloseOnExec(fd);
  } catch {
    return !isOpen(fd); // the file of /proc cannot be read when no further file can be opened
  }
}

/** Linux only. Throws if there is no such descriptor. */
function isCloseOnExec(fd: number): boolean {
  const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"))?.[1] ?? "0";
  const closeOnExec = 0o2000000;
  return (Number.parseInt(flags, 8) & closeOnExec) !== 0;
}
