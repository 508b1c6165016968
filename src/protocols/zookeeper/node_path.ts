/** The rules for paths of nodes. */
import { ZooKeeperError } from "./zookeeper_error.ts";

/**
 * Throws BADARGUMENTS before anything is sent, by the same rules as the server (PathUtils.validatePath). The path of a
 * sequential node may end with a slash: its name is then the number.
 */
export function validateNodePath(path: string, sequential = false): void {
  const why = describePathFault(sequential ? `${path}0` : path);
  if (why !== null) throw new ZooKeeperError("BADARGUMENTS", `"${path}" is not a ZooKeeper path: ${why}`, { path });
}

/**
 * Describes what is wrong with a path, or returns null if it is valid. It uses patterns because a loop would be
 * compiled at every start and be slower.
 */
function describePathFault(path: string): string | null {
  if (path === "/") return null;
  if (!path.startsWith("/")) return "it does not start with a slash";
  const found = forbidden.exec(path);
  if (found !== null) {
    const unit = path.charCodeAt(found.index).toString(16).toUpperCase().padStart(4, "0");
    return `the character U+${unit} at ${found.index} is not allowed`;
  }
  if (path.includes("//")) return "a name in it is empty";
  if (path.endsWith("/")) return "it ends with a slash";
  const dots = /\/(\.\.?)(?:\/|$)/.exec(path);
  return dots === null ? null : `"${dots[1]}" cannot be a name`;
}

/** All characters except control characters, surrogates (so no emoji), private use and specials. */
const forbidden = /[^ -~\u00a0-\ud7ff\uf900-\uffef]/;
