/** Which file descriptors whoever started baton has left open for the command: `9>file`, a jobserver, LISTEN_FDS. */
import { fstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import process from "node:process";
import type { Libc } from "../libc.ts";

/**
 * Descriptors from 3 up that were open when this process started. Call it before anything is opened: what the runtime
 * itself holds by then is known, what comes later is not.
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

/** Deno hands on every descriptor it was given; what a helper keeps open keeps a reader of it waiting. */
export function closeInherited(libc: Libc, fds: readonly number[] = inheritedDescriptors()): void {
  for (const fd of fds) libc.close(fd);
}

function isInherited(fd: number): boolean {
  if (process.platform !== "linux") return isOpen(fd);
  try {
    // Bun holds an epoll and an eventfd by now, and has marked the inherited ones close-on-exec like its own.
    const target = readlinkSync(`/proc/self/fd/${fd}`);
    if ("Bun" in globalThis) return !/^anon_inode:\[?(eventpoll|eventfd|timerfd)/.test(target);
    const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"))?.[1] ?? "0";
    const closeOnExec = 0o2000000;
    return (Number.parseInt(flags, 8) & closeOnExec) === 0;
  } catch {
    return false; // the descriptor that listed the folder
  }
}

/** macOS shows a kqueue, which is the runtime's own and cannot be inherited, as a pipe with one kevent for a block. */
function isOpen(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    return !(stat.isFIFO() && stat.blksize <= 64);
  } catch {
    return false;
  }
}
