/** Programs that are made of a source file, once for all who ask, each in a folder of its own. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

const every: MadeOnce<unknown>[] = [];

export class MadeOnce<T> {
  readonly #kind: string;
  readonly #make: (entry: string, folder: string) => T;
  readonly #made = new Map<string, { readonly folder: string; readonly result: T }>();

  constructor(kind: string, make: (entry: string, folder: string) => T) {
    this.#kind = kind;
    this.#make = make;
    every.push(this);
  }

  of(entry: string): T {
    const known = this.#made.get(entry);
    if (known !== undefined) return known.result;
    const folder = mkdtempSync(join(tmpdir(), `baton-${this.#kind}-`));
    const result = this.#make(entry, folder);
    this.#made.set(entry, { folder, result });
    return result;
  }

  remove(): void {
    for (const { folder } of this.#made.values()) rmSync(folder, { recursive: true, force: true });
    this.#made.clear();
  }
}

/** Is made again for whoever asks later. */
export function removeAllMade(): void {
  for (const made of every) made.remove();
}

// Of a process's end `bun test` says nothing: a test removes what it had made by itself.
process.once("exit", removeAllMade);
