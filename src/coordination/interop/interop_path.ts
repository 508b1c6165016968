/** A foreign lock is named by its node: the path that the other programs were given. */
import { validatePath } from "../../zookeeper/node_path_names.ts";
import { BatonError, messageOf } from "../../errors.ts";
import type { LockPath } from "../lock/lock_path.ts";

/** Contenders and holders are the node's own children. Throws USAGE for what is no path, and for the root. */
export function interopPath(name: string): LockPath {
  try {
    if (name === "/") throw new Error("the root cannot be a lock");
    validatePath(name);
  } catch (thrown) {
    throw new BatonError(
      "USAGE",
      `With --recipe a lock is named by the path of its node, as in /app/locks/nightly, and "${name}" is none: ${
        messageOf(thrown)
      }`,
    );
  }
  const names = name.split("/").slice(1, -1);
  const parents = names.map((_, index) => `/${names.slice(0, index + 1).join("/")}`);
  return { lock: name, queue: name, holders: name, parents };
}
