/**
 * The file descriptors that baton's parent has left open for the command (`9>file`, a jobserver, LISTEN_FDS), or has
 * closed.
 */
import { fstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import process from "node:process";
import type { Libc } from "../libc.ts";

/**
 * Descriptors from 3 up that were open when this process started. Call it before anything is opened: the descriptors of
 * the runtime are recognized, later ones are not.
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
 * Closes them in a helper process, to which Deno passes every descriptor: a pipe that stays open keeps its reader
 * waiting.
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
 * Recognizes a kqueue, which belongs to the runtime: macOS shows it as a pipe whose block size is that of one kevent.
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
 * Whether stdin was closed when this process started (`<&-`); it reads like an empty file then. Bun opens /dev/null in
 * the place of a closed standard stream, close-on-exec, which no inherited stream is. False where that cannot be seen:
 * under Deno, which marks none, and off Linux.
 */
export function wasStdinClosedAtStart(): boolean {
  return wasStreamClosedAtStart(0);
}

/** The same for any standard stream. Output is lost then (`>&-`). */
export function wasStreamClosedAtStart(fd: number): boolean {
  if (!("Bun" in globalThis) || process.platform !== "linux") return false;
  try {
    return isCloseOnExec(fd);
  } catch {
    return !isOpen(fd); // the file of /proc cannot be read when no further file can be opened
  }
}

/** Linux only. Throws when there is no such descriptor. */
function isCloseOnExec(fd: number): boolean {
  const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"))?.[1] ?? "0";
  const closeOnExec = 0o2000000;
  return (Number.parseInt(flags, 8) & closeOnExec) !== 0;
}
