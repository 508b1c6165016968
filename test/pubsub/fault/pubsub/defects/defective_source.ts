/** The program with a defect put back: a changed copy of its source, run by Bun. The product knows nothing of it. */
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { MutantChange } from "../../../../world/mutant.ts";
import { replaceOnce } from "../../../../world/mutant_change.ts";

const project = join(import.meta.dirname, "../../../../..");

export class DefectiveSource implements Disposable {
  /** Runs it, without its words. */
  readonly command: readonly string[];
  readonly #folder = mkdtempSync(join(tmpdir(), "baton-defect-"));

  constructor(changes: readonly MutantChange[]) {
    for (const name of ["commands", "src", "package.json", "tsconfig.json"]) {
      cpSync(join(project, name), join(this.#folder, name), { recursive: true });
    }
    symlinkSync(join(project, "node_modules"), join(this.#folder, "node_modules"));
    for (const change of changes) replaceOnce(this.#folder, change);
    this.command = [process.execPath, join(this.#folder, "commands/main.ts")];
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
