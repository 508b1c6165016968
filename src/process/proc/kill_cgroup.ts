/**
 * A cgroup into which processes of a job are put when they are to be killed and start others faster than these are found:
 * what they start is born inside, and the kernel kills all of it at the same moment (cgroup.kill of cgroup v2, Linux 5.14).
 * It is made only then: to put a process into a cgroup takes the kernel milliseconds. Where none can be made (no cgroup v2,
 * not this user's to write) nothing happens.
 */
import { mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const prefix = "baton-kill-";

/** How long the kernel may be kept busy with putting processes into it, at a time. */
const addMsMax = 20;

/** A dead process leaves its cgroup some moments after it has become a zombie. */
const emptyMsMax = 20;

/** One that is older was left behind, as far as it is empty: by a baton that was killed together with its guard. */
const leftAfterMs = 60_000;

export class KillCgroup {
  readonly #name: string;
  /** Null: none can be made; undefined: none was asked for yet. */
  #folder: string | null | undefined;

  /** The same for all who end the processes of this job. */
  constructor(cookie: string) {
    this.#name = prefix + cookie.replaceAll(/[^\w-]/g, "_");
  }

  /** They, and what they start from now on, are killed by `kill()`. Only processes of the job. */
  add(pids: readonly number[]): void {
    if (pids.length === 0) return;
    if (this.#folder === undefined) this.#folder = makeFolder(this.#name);
    if (this.#folder === null) return;
    const endMs = performance.now() + addMsMax;
    for (const pid of pids) {
      if (performance.now() >= endMs) break;
      write(join(this.#folder, "cgroup.procs"), String(pid));
    }
  }

  /** Adds `pids`, and kills everything that is inside. */
  kill(pids: readonly number[]): void {
    this.add(pids);
    if (typeof this.#folder === "string") write(join(this.#folder, "cgroup.kill"), "1");
  }

  /** When nothing is alive in it. */
  close(): void {
    const endMs = performance.now() + emptyMsMax;
    while (typeof this.#folder === "string" && !remove(this.#folder) && performance.now() < endMs);
    this.#folder = undefined;
  }
}

/** Below this process's own, so that what is put into it stays under the same limits. */
function makeFolder(name: string): string | null {
  const own = ownCgroup();
  if (own === null) return null;
  removeLeft(own);
  const folder = join(own, name);
  try {
    mkdirSync(folder, { recursive: true });
    readFileSync(join(folder, "cgroup.procs")); // refused below a cgroup of threads
    return folder;
  } catch {
    remove(folder);
    return null;
  }
}

function removeLeft(own: string): void {
  try {
    for (const name of readdirSync(own)) {
      const folder = join(own, name);
      if (name.startsWith(prefix) && Date.now() - statSync(folder).ctimeMs > leftAfterMs) remove(folder);
    }
  } catch {
    // another one was faster
  }
}

/** The folder of this process's own cgroup of version 2, null where there is none. cgroups(7), proc(5). */
function ownCgroup(): string | null {
  try {
    const path = /^0::(\/.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
    const mount = readFileSync("/proc/self/mountinfo", "utf8").split("\n").find((line) => / - cgroup2 /.test(line));
    const [, , , root, point] = (mount ?? "").split(" ").map(unescaped);
    if (path === undefined || root === undefined || point === undefined || path.split("/").includes("..")) return null;
    if (root === "/") return join(point, path);
    return `${path}/`.startsWith(`${root}/`) ? join(point, path.slice(root.length)) : null;
  } catch {
    return null;
  }
}

/** proc(5): space, tab, newline and backslash stand as three octal digits. */
function unescaped(word: string): string {
  return word.replaceAll(/\\([0-7]{3})/g, (_all, digits: string) => String.fromCharCode(parseInt(digits, 8)));
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch {
    // The process is gone, or may not be moved: it is killed by itself.
  }
}

/** False where something in it is still there. */
function remove(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}
