/** What a path may be, and the chroot that is put before it and taken off again. */
import { ZooKeeperError } from "./zookeeper_error.ts";

/**
 * Throws BADARGUMENTS, as the server would (PathUtils.validatePath), before anything is sent. The path of a sequential
 * node may end with a slash: its name is then the number alone.
 */
export function validatePath(path: string, sequential = false): void {
  const why = fault(sequential ? `${path}0` : path);
  if (why !== null) throw new ZooKeeperError("BADARGUMENTS", `"${path}" is not a ZooKeeper path: ${why}`, { path });
}

function fault(path: string): string | null {
  if (path === "/") return null;
  if (!path.startsWith("/")) return "it does not start with a slash";
  let nameStart = 1;
  for (let at = 1; at <= path.length; at++) {
    const unit = at === path.length ? slash : path.charCodeAt(at);
    if (unit === slash) {
      if (at === nameStart) return at === path.length ? "it ends with a slash" : "a name in it is empty";
      const name = at - nameStart <= 2 ? path.slice(nameStart, at) : "";
      if (name === "." || name === "..") return `"${name}" cannot be a name`;
      nameStart = at + 1;
    } else if (isForbidden(unit)) {
      return `the character U+${unit.toString(16).toUpperCase().padStart(4, "0")} at ${at} is not allowed`;
    }
  }
  return null;
}

const slash = 0x2f;

/** Control characters, surrogates (so no emoji), private use and specials. */
function isForbidden(unit: number): boolean {
  return unit <= 0x1f || (unit >= 0x7f && unit <= 0x9f) || (unit >= 0xd800 && unit <= 0xf8ff) || unit >= 0xfff0;
}

/** The part of the tree that a client sees as the whole. `prefix` is empty, or a valid path other than `/`. */
export class Chroot {
  readonly prefix: string;

  constructor(prefix: string) {
    this.prefix = prefix === "/" ? "" : prefix;
    if (this.prefix !== "") validatePath(this.prefix);
  }

  /** The server's path for a caller's. Throws BADARGUMENTS. */
  toServer(path: string, sequential = false): string {
    validatePath(path, sequential);
    if (this.prefix === "") return path;
    return path === "/" && !sequential ? this.prefix : this.prefix + path;
  }

  /** The caller's path for a server's. */
  toClient(path: string): string {
    if (this.prefix === "" || !path.startsWith(this.prefix)) return path;
    return path.slice(this.prefix.length) || "/";
  }
}
