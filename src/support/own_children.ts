/**
 * The processes baton started for itself, such as the guard. What ends a job's leftovers must tell them from the
 * job's own, since a process that takes in orphans has both kinds among its children.
 */

const pids = new Set<number>();

/** Keeps `pid` out of every sweep. Returns what takes it off the list again; call it once the process has ended. */
export function registerOwnChild(pid: number): () => void {
  pids.add(pid);
  return () => pids.delete(pid);
}

export function isOwnChild(pid: number): boolean {
  return pids.has(pid);
}

const awaited = new Set<number>();

/** The runtime takes the status of `pid`, which it started; to be reaped by nobody else. Returns what is to be called when it has. */
export function awaitStatus(pid: number): () => void {
  awaited.add(pid);
  return () => awaited.delete(pid);
}

/** Whether the status of this child, once dead, is this process's to take: it was adopted, and the runtime knows nothing of it. */
export function isAdopted(pid: number): boolean {
  return !awaited.has(pid) && !pids.has(pid);
}
