/**
 * Finds the file descriptors that baton's parent has left open for the command (`9>file`, a jobserver, LISTEN_FDS), and
 * the standard streams that it has closed.
 */
import { fstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import process from "node:process";
import type { Libc } from "../libc.ts";

/**
 * Returns the descriptors from 3 up that were open when this process started. Must be called before any file is opened,
 * because it cannot tell a file that baton opened from an inherited one.
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
 * Closes the inherited descriptors in a helper process; Deno passes all of them to the helper. If they stayed open, the
 * reader of an inherited pipe would wait for the helper.
 */
export function closeInheritedDescriptors(libc: Libc, fds: readonly number[] = inheritedDescriptors()): void {
  for (const fd of fds) libc.close(fd);
}

function isInherited(fd: number): boolean {
  if (process.platform !== "linux") return isOpen(fd);
  try {
    // Bun marks inherited descriptors close-on-exec like its own. Bun itself has opened only an epoll and an eventfd.
    const target = readlinkSync(`/proc/self/fd/${fd}`);
    if ("Bun" in globalThis) return !/^anon_inode:\[?(eventpoll|eventfd|timerfd)/.test(target);
    return !isCloseOnExec(fd);
  } catch {
    return false; // the descriptor that listed the folder
  }
}

/**
 * Returns true if a descriptor is open and does not belong to the runtime: macOS shows the runtime's kqueue as a pipe
 * with a tiny block size.
 */
function isOpen(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    return !(stat.isFIFO() && stat.blksize <= 64);
  } catch {
    return false;
  }
}

const closedAtStart: boolean[] = [];

/**
 * Returns true if a standard stream was closed when this process started. A closed input (`<&-`) reads like an empty
 * file; everything written to a closed output (`>&-`) is lost. Bun opens /dev/null in place of a closed stream and
 * marks it close-on-exec, which no inherited stream is. Returns false under Deno and outside Linux, where a closed
 * stream is not visible.
 */
export function wasStreamClosedAtStart(fd: number): boolean {
  const known = closedAtStart[fd];
  if (known !== undefined) return known;
  if (!("Bun" in globalThis) || process.platform !== "linux") return false;
  try {
    return closedAtStart[fd] = isCloseOnExec(fd);
  } catch {
    return closedAtStart[fd] = !isOpen(fd); // the limit of open files also prevents reading /proc
  }
}

/** Returns true if the descriptor is close-on-exec. Linux only. Throws if the descriptor is not open. */
function isCloseOnExec(fd: number): boolean {
  const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"))?.[1];
  const closeOnExec = 0o2000000;
  return (Number(`0o${flags}`) & closeOnExec) !== 0;
}
