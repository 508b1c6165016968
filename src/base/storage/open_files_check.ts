/** Checks that open files still have their names: writes to removed files are lost. */
import { statSync } from "node:fs";
import { join } from "node:path";

export class OpenFilesCheck {
  readonly #folder: string;
  readonly #checkMs: number;
  readonly #inodes: ReadonlyMap<string, bigint | null>;
  #checkedMs = -Infinity;

  /** Create it when the files are open. `checkMs`: the maximum age of a check, in milliseconds. */
  constructor(folder: string, names: readonly string[], { checkMs }: { readonly checkMs: number }) {
    this.#folder = folder;
    this.#checkMs = checkMs;
    this.#inodes = new Map(names.map((name) => [name, inodeOf(folder, name)]));
  }

  /** Checks the files, unless the last check is recent. Throws when a file is gone or was replaced. */
  check(): void {
    const nowMs = performance.now();
    if (nowMs - this.#checkedMs < this.#checkMs) return;
    this.#checkedMs = nowMs;
    for (const [name, inode] of this.#inodes) {
      if (inodeOf(this.#folder, name) === inode) continue;
      throw new Error(`${name} was removed or replaced while it was in use`);
    }
  }

  /** Makes the next call of `check` check the files. */
  invalidate(): void {
    this.#checkedMs = -Infinity;
  }
}

/** The file's inode; null when the file cannot be seen. */
function inodeOf(folder: string, name: string): bigint | null {
  return statSync(join(folder, name), { bigint: true, throwIfNoEntry: false })?.ino ?? null;
}
