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
  return lockPathAt(`${folderOf("locks", root)}/${encodeLockName(name)}`);
}

/** Returns the node whose children are the objects of a kind: "locks", "elections", "barriers", "gates", "pools", "fences". */
export function folderOf(kind: string, root: string = defaultRoot): string {
  return `${root === "/" ? "" : root}/${kind}`;
}

/** Returns the paths of a lock at any place. */
export function lockPathAt(lock: string): LockPath {
  return { lock, queue: `${lock}/q`, holders: `${lock}/h`, parents: ancestorsOf(lock) };
}

/** Returns the nodes above a path, outermost first, without the root. */
export function ancestorsOf(path: string): string[] {
  const names = path.split("/").slice(1, -1);
  return names.map((_, index) => `/${names.slice(0, index + 1).join("/")}`);
}
