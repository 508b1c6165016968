/** Paths that only baton may write: other data there would look like a holder, a waiter or a state. */
import { defaultRoot } from "../lock/lock_path.ts";

/** Folders below the root. */
export const reservedFolders = ["locks", "elections", "barriers", "gates", "pools", "fences"] as const;

/** The reserved folder that contains `path`; null if there is none. */
export function reservedFolderOf(path: string, root: string = defaultRoot): string | null {
  const folders = reservedFolders.map((name) => `${root === "/" ? "" : root}/${name}`);
  return folders.find((folder) => path === folder || path.startsWith(`${folder}/`)) ?? null;
}
