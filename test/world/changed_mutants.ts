/** Which known defects stand in a function that has changed. Pure. */
import { listFunctions } from "../../scripts/tidy/functions.ts";
import type { Mutant, MutantChange } from "./mutant.ts";

/** What a file is and was; null where it is not there. */
export interface FileVersions {
  readonly path: string;
  readonly now: string | null;
  readonly before: string | null;
}

/**
 * The mutants one of whose changes is in a function that differs, or in a file that does where it names no function.
 * `versions`: the file of a module, null if there is no such module. What cannot be found has changed.
 */
export function changedMutants(
  mutants: readonly Mutant[],
  versions: (module: string) => FileVersions | null,
): Mutant[] {
  const differs = (change: MutantChange): boolean => {
    const [module = "", name] = change.in.split(":");
    const file = versions(module);
    if (file === null || file.now === null || file.before === null) return true;
    if (file.now === file.before) return false;
    if (name === undefined) return true;
    const now = functionText({ path: file.path, text: file.now }, name);
    return now === null || now !== functionText({ path: file.path, text: file.before }, name);
  };
  return mutants.filter(({ changes }) => changes.some(differs));
}

/** The text of a function; null if there is not exactly one of this name. */
function functionText(file: { readonly path: string; readonly text: string }, name: string): string | null {
  const [found, second] = listFunctions(file).filter((other) => other.name === name);
  if (found === undefined || second !== undefined) return null;
  return file.text.split("\n").slice(found.start, found.end + 1).join("\n");
}
