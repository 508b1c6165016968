/** Where an election lives in the tree: `<root>/elections/<name>`, in the shape of a lock. */
import { encodeLockName } from "../lock/lock_name.ts";
import { defaultRoot, type LockPath, lockPathAt } from "../lock/lock_path.ts";

/** Throws USAGE for an impossible name. */
export function electionPath(name: string, root: string = defaultRoot): LockPath {
  return lockPathAt(`${root === "/" ? "" : root}/elections/${encodeLockName(name, "an election")}`);
}
