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
