/**
 * Finds the models that a change concerns. The header of `lock_model.ts`, the model of `lock_model_test.ts`, ends with
 * the files that it models: "Models: docs/protocol/lock.md, src/…". Pure.
 */
import { posix } from "node:path";
import { listLoadedFiles } from "../tidy/start.ts";

/** The text of a file of the project, by its path from the root; null if there is none. */
export type ReadProjectFile = (path: string) => string | null;

/** Returns the files that the header of a model names. */
export function filesNamedByModel(model: string): string[] {
  const [header = ""] = /^\/\*\*[^]*?\*\//.exec(model) ?? [];
  const [, named = ""] = /^ \* Models: ([^]*?)(?:\n \*\n|\*\/)/m.exec(header) ?? [];
  return named.split(/[\s,*]+/).filter((word) => word !== "");
}

/** Returns whether a test file tests a model. */
export function isModelTest(path: string): boolean {
  return /\/model\/\w+_model_test\.ts$/.test(path);
}

/** Returns the model of a test: `lock_model.ts` for `lock_model_test.ts`. */
export function modelPath(test: string): string {
  return test.replace(/_test\.ts$/, ".ts");
}

/** Returns the files in the model's folder that a test loads, including itself. */
export function ownFilesOfModel(test: string, read: ReadProjectFile): string[] {
  const found = new Set([test]);
  for (const path of found) {
    for (const loaded of listLoadedFiles({ path, text: read(path) ?? "" })) {
      if (posix.dirname(loaded) === posix.dirname(test)) found.add(loaded);
    }
  }
  return [...found];
}

/** Returns the tests of models whose own files, or the files that they model, have changed. */
export function concernedModels(tests: readonly string[], changed: readonly string[], read: ReadProjectFile): string[] {
  return tests.filter((test) => {
    const files = new Set([...ownFilesOfModel(test, read), ...filesNamedByModel(read(modelPath(test)) ?? "")]);
    return changed.some((path) => files.has(path));
  });
}
