/** Checks that the paths of nodes are valid. */
import { ZooKeeperError } from "./zookeeper_error.ts";

/**
 * Throws BADARGUMENTS for a path that the server would refuse (PathUtils.validatePath). The path of a sequential node
 * may end with a slash; the name of the node is then only the number.
 */
export function validateNodePath(path: string, sequential = false): void {
  const why = describePathFault(sequential ? `${path}0` : path);
  if (why !== null) throw new ZooKeeperError("BADARGUMENTS", `"${path}" is not a ZooKeeper path: ${why}`, { path });
}

/**
 * Returns what is wrong with a path, or null if it is valid. Uses regular expressions, because a loop is slower.
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

/** Matches control characters, surrogates (and so emoji), private-use characters and specials. */
const forbidden = /[^ -~\u00a0-\ud7ff\uf900-\uffef]/;
