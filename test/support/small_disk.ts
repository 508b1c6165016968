/**
 * A file system of its own that is soon full: somebody else fills it to the last byte, and gives the room back. It
 * needs root.
 */
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class SmallDisk implements Disposable {
  readonly #folder: string;
  readonly #others: string;

  /** Throws where nothing can be mounted. */
  constructor(folder: string, mebibytes: number) {
    mkdirSync(folder, { recursive: true });
    const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${mebibytes}m`, "baton-test", folder]);
    if (status !== 0) throw new Error(`Cannot mount a small disk at ${folder}: ${stderr}`);
    this.#folder = folder;
    this.#others = join(folder, "others");
  }

  /** Leaves no byte. */
  fill(): void {
    const file = openSync(this.#others, "a");
    try {
      for (let length = 1 << 20; length >= 1;) {
        try {
          if (writeSync(file, new Uint8Array(length)) < length) length >>= 1;
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
          length >>= 1;
        }
      }
    } finally {
      closeSync(file);
    }
  }

  makeRoom(): void {
    rmSync(this.#others, { force: true });
  }

  [Symbol.dispose](): void {
    spawnSync("umount", ["-l", this.#folder]);
  }
}

let can: boolean | null = null;

/** Says aloud, once, what is left out where nothing can be mounted. */
export function canMountDisk(leftOut: string): boolean {
  if (can !== null) return can;
  const folder = mkdtempSync(join(tmpdir(), "baton-mount-"));
  try {
    new SmallDisk(folder, 1)[Symbol.dispose]();
    can = true;
  } catch (error) {
    console.error(`MISSING: ${(error as Error).message.trim()} (root can); ${leftOut}`);
    can = false;
  }
  rmSync(folder, { recursive: true });
  return can;
}
