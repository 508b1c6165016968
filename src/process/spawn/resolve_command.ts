/** Finds a command the way execvp(3) does, and says why it cannot be run the way env(1) does. */
import { accessSync, constants, statSync } from "node:fs";
import { join } from "node:path";

export type ResolvedCommand =
  | { readonly kind: "found"; readonly path: string }
  | { readonly kind: "not_found" | "not_executable"; readonly message: string };

/** What execvp searches when PATH is not set. */
const defaultPath = "/bin:/usr/bin";

/** What was found the last time: who runs a command often does not have all folders of PATH looked through each time. */
let last: { readonly name: string; readonly path: string | undefined; readonly found: ResolvedCommand } | null = null;

export function resolveCommand(name: string, path: string | undefined): ResolvedCommand {
  if (name.includes("/")) return judge(name, look(name));
  if (last?.name === name && last.path === path && last.found.kind === "found" && look(last.found.path) === "ok") {
    return last.found;
  }
  const found = search(name, path);
  last = { name, path, found };
  return found;
}

function search(name: string, path: string | undefined): ResolvedCommand {
  let refused: string | null = null;
  for (const folder of name === "" ? [] : (path ?? defaultPath).split(":")) {
    const file = folder === "" ? `./${name}` : join(folder, name);
    const seen = look(file);
    if (seen === "ok") return { kind: "found", path: file };
    // Like execvp, go on past a file that may not be run: a later folder may have a better one.
    if (seen === "directory" || seen === "forbidden") refused ??= file;
  }
  if (refused !== null) return judge(refused, look(refused));
  return {
    kind: "not_found",
    message: `Cannot find the command "${name}" in any folder of PATH (${path ?? defaultPath})`,
  };
}

type Sight = "ok" | "absent" | "no_folder" | "directory" | "forbidden";

function look(file: string): Sight {
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

function judge(file: string, seen: Sight): ResolvedCommand {
  switch (seen) {
    case "ok":
      return { kind: "found", path: file };
    case "absent":
      return { kind: "not_found", message: `Cannot run "${file}": there is no such file` };
    case "no_folder":
      return { kind: "not_executable", message: `Cannot run "${file}": a part of its path is not a directory` };
    case "directory":
      return { kind: "not_executable", message: `Cannot run "${file}": it is a directory` };
    case "forbidden":
      return {
        kind: "not_executable",
        message: `Cannot run "${file}": this user may not execute it; see ls -l and chmod +x`,
      };
  }
}
