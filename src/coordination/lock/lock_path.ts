/** Where a lock lives in the tree: `<root>/locks/<name>`, with the contenders in `q` and the holders in `h`. */
import { encodeLockName } from "./lock_name.ts";

export const defaultRoot = "/baton";

export interface LockPath {
  /** The container whose data is the state and whose version is the guard. */
  readonly lock: string;
  readonly queue: string;
  readonly holders: string;
  /** Ordinary nodes that must exist above it, outermost first. */
  readonly parents: readonly string[];
}

/** `root` is a path of ZooKeeper's, without a slash at its end. Throws USAGE for an impossible name. */
export function lockPath(name: string, root: string = defaultRoot): LockPath {
  return lockPathAt(`${locksPath(root)}/${encodeLockName(name)}`);
}

/** The node whose children are the locks. */
export function locksPath(root: string = defaultRoot): string {
  return root === "/" ? "/locks" : `${root}/locks`;
}

/** A lock at any path. */
export function lockPathAt(lock: string): LockPath {
  const names = lock.split("/").slice(1, -1);
  const parents = names.map((_, index) => `/${names.slice(0, index + 1).join("/")}`);
  return { lock, queue: `${lock}/q`, holders: `${lock}/h`, parents };
}
