/** Which part of the tree is baton's own: what a script writes there would be taken for a holder, a contender, a state. */
import { defaultRoot } from "../lock/lock_path.ts";

/** Below the root, one for each recipe. */
export const reservedFolders = ["locks", "elections", "barriers", "gates", "pools", "fences"] as const;

/** The folder of baton's that `path` is or lies in; null for what belongs to others. */
export function reservedFolderOf(path: string, root: string = defaultRoot): string | null {
  const folders = reservedFolders.map((name) => `${root === "/" ? "" : root}/${name}`);
  return folders.find((folder) => path === folder || path.startsWith(`${folder}/`)) ?? null;
}
