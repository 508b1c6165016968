/** Path of an election: `<root>/elections/<name>`, with the same nodes as a lock. */
import { encodeLockName } from "../lock/lock_name.ts";
import { defaultRoot, type LockPath, lockPathAt } from "../lock/lock_path.ts";

/** Throws USAGE for an invalid name. */
export function electionPath(name: string, root: string = defaultRoot): LockPath {
  return lockPathAt(`${root === "/" ? "" : root}/elections/${encodeLockName(name, "an election")}`);
}
