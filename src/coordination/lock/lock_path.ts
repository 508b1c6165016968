/** Path of a lock: `<root>/locks/<name>`, with the contenders in `q` and the holders in `h`. */
import { encodeLockName } from "./lock_name.ts";

export const defaultRoot = "/baton";

export interface LockPath {
  /** Container whose data is the lock's state; its version guards every grant. */
  readonly lock: string;
  readonly queue: string;
  readonly holders: string;
  /** Nodes that must exist above it, outermost first. */
  readonly parents: readonly string[];
}

/** `root` is a ZooKeeper path without a slash at its end. Throws USAGE for an invalid name. */
export function lockPath(name: string, root: string = defaultRoot): LockPath {
  return lockPathAt(`${locksPath(root)}/${encodeLockName(name)}`);
}

/** Returns the node whose children are the locks. */
export function locksPath(root: string = defaultRoot): string {
  return root === "/" ? "/locks" : `${root}/locks`;
}

/** Returns the paths of a lock at any place. */
export function lockPathAt(lock: string): LockPath {
  const names = lock.split("/").slice(1, -1);
  const parents = names.map((_, index) => `/${names.slice(0, index + 1).join("/")}`);
  return { lock, queue: `${lock}/q`, holders: `${lock}/h`, parents };
}
