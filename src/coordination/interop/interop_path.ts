/** Path of an interop lock: its name is the path of the node that the other programs use. */
import { validatePath } from "../../zookeeper/node_path_names.ts";
import { BatonError, messageOf } from "../../errors.ts";
import { ancestorsOf, type LockPath } from "../lock/lock_path.ts";

/** Returns paths where contenders and holders are children of the lock's node. Throws USAGE for an invalid path or the root. */
export function interopPath(name: string): LockPath {
  try {
    if (name === "/") throw new Error("the root is not allowed");
    validatePath(name);
  } catch (thrown) {
    throw new BatonError(
      "USAGE",
      `With --recipe, NAME is the path of the lock's node, as in /app/locks/nightly. "${name}" is not a path: ${
        messageOf(thrown)
      }`,
    );
  }
  return { lock: name, queue: name, holders: name, parents: ancestorsOf(name) };
}
