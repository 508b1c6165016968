/**
 * The program with a defect put back: a copy of its source in which a few lines are others, run by Bun. The product
 * knows nothing of it. A line that is not there any more, or there twice, is a failure: the defect has to be written
 * anew.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

const project = join(import.meta.dirname, "../../../../..");

export interface Change {
  readonly file: string;
  /** What stands there once. */
  readonly from: string;
  readonly to: string;
}

export class DefectiveSource implements Disposable {
  /** Runs it, without its words. */
  readonly command: readonly string[];
  readonly #folder = mkdtempSync(join(tmpdir(), "baton-defect-"));

  constructor(changes: readonly Change[]) {
    for (const name of ["commands", "src", "package.json", "tsconfig.json"]) {
      cpSync(join(project, name), join(this.#folder, name), { recursive: true });
    }
    symlinkSync(join(project, "node_modules"), join(this.#folder, "node_modules"));
    for (const { file, from, to } of changes) {
      const path = join(this.#folder, file);
      const parts = readFileSync(path, "utf8").split(from);
      if (parts.length !== 2) {
        throw new Error(
          `${file} has ${parts.length - 1} times, and not once, what a defect is put in place of: ${from}`,
        );
      }
      writeFileSync(path, parts.join(to));
    }
    this.command = [process.execPath, join(this.#folder, "commands/main.ts")];
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
