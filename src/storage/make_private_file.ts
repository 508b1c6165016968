/** A file for its owner only, in whatever folder it is. */
import { closeSync, openSync } from "node:fs";

/** Makes an empty one where none is; lets be what is there. SQLite gives its log the same mode. Throws the system's error. */
export function makePrivateFile(path: string): void {
  closeSync(openSync(path, "a", 0o600));
}
