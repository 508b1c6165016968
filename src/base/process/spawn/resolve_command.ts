/** Finds the file of a command as execvp(3) does, and describes a failure to find it as env(1) does. */
import { accessSync, constants, statSync } from "node:fs";
import { join } from "node:path";

export type ResolvedCommand =
  | { readonly kind: "found"; readonly path: string }
  | { readonly kind: "not_found" | "not_executable"; readonly message: string };

/** The folders that execvp searches when PATH is not set. */
const defaultPath = "/bin:/usr/bin";

/** The last search and its result, so that a command that runs often need not be searched for each time. */
let lastResult:
  | { readonly name: string; readonly path: string | undefined; readonly found: ResolvedCommand }
  | undefined;

export function resolveCommand(name: string, path: string | undefined): ResolvedCommand {
  if (name.includes("/")) return resolvedCommandOf(name, checkExecutable(name));
  if (
    lastResult?.name === name && lastResult.path === path && lastResult.found.kind === "found" &&
    checkExecutable(lastResult.found.path) === "ok"
  ) {
    return lastResult.found;
  }
  const found = searchFolders(name, path);
  lastResult = { name, path, found };
  return found;
}

function searchFolders(name: string, path: string | undefined): ResolvedCommand {
  let refused: string | null = null;
  for (const folder of name === "" ? [] : (path ?? defaultPath).split(":")) {
    const file = folder === "" ? `./${name}` : join(folder, name);
    const state = checkExecutable(file);
    if (state === "ok") return { kind: "found", path: file };
    // execvp continues after a file that it may not execute, because a later folder may have another file.
    if (state === "directory" || state === "forbidden") refused ??= file;
  }
  if (refused !== null) return resolvedCommandOf(refused, checkExecutable(refused));
  return {
    kind: "not_found",
    message: `Cannot find the command "${name}" in any folder of PATH (${path ?? defaultPath})${adviceFor(name)}`,
  };
}

/**
 * Returns advice for two common mistakes: a file of the working directory without "./", and a shell command as one
 * word.
 */
function adviceFor(name: string): string {
  if (name !== "" && checkExecutable(`./${name}`) === "ok") return `; to run the file of this folder: ./${name}`;
  return /\s/.test(name) ? "; to run a shell command: sh -c 'LINE'" : "";
}

type FileState = "ok" | "absent" | "no_folder" | "directory" | "forbidden";

function checkExecutable(file: string): FileState {
  try {
    const stat = statSync(file, { throwIfNoEntry: false });
    if (stat === undefined) return "absent";
    if (stat.isDirectory()) return "directory";
    accessSync(file, constants.X_OK);
    return "ok";
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? "absent" : code === "ENOTDIR" ? "no_folder" : "forbidden";
  }
}

const refusalReasons = {
  no_folder: "a part of its path is not a directory",
  directory: "it is a directory",
  forbidden: "this user may not execute it; see ls -l and chmod +x",
} satisfies Partial<Record<FileState, string>>;

function resolvedCommandOf(file: string, state: FileState): ResolvedCommand {
  if (state === "ok") return { kind: "found", path: file };
  if (state === "absent") return { kind: "not_found", message: `Cannot run "${file}": no such file` };
  return { kind: "not_executable", message: `Cannot run "${file}": ${refusalReasons[state]}` };
}
