/** Whether files that are open are still those with their names: what is written to removed ones is lost. */
import { statSync } from "node:fs";
import { join } from "node:path";

export class OpenFilesCheck {
  readonly #folder: string;
  readonly #lookMs: number;
  readonly #inodes: ReadonlyMap<string, bigint | null>;
  #lookedMs = -Infinity;

  /** To be made when they are open. `lookMs`: how old a look may be, in milliseconds. */
  constructor(folder: string, names: readonly string[], { lookMs }: { readonly lookMs: number }) {
    this.#folder = folder;
    this.#lookMs = lookMs;
    this.#inodes = new Map(names.map((name) => [name, inodeOf(folder, name)]));
  }

  /** Looks, unless it just did. Throws when one of them is gone, or another file has its name. */
  check(): void {
    const nowMs = performance.now();
    if (nowMs - this.#lookedMs < this.#lookMs) return;
    this.#lookedMs = nowMs;
    for (const [name, inode] of this.#inodes) {
      if (inodeOf(this.#folder, name) === inode) continue;
      throw new Error(`${name} was removed or replaced while it was in use`);
    }
  }

  /** The next check looks, however new the last look is. */
  invalidate(): void {
    this.#lookedMs = -Infinity;
  }
}

/** The file's number; null when there is none that can be seen. */
function inodeOf(folder: string, name: string): bigint | null {
  return statSync(join(folder, name), { bigint: true, throwIfNoEntry: false })?.ino ?? null;
}
