/** The one path that --recipe takes where several locks are looked at. */
import { BatonError } from "../../src/errors.ts";
import type { ForeignRecipe } from "../../src/coordination/interop/interop_node_names.ts";
import { foreignPath } from "../../src/coordination/interop/interop_path.ts";

/** Throws USAGE for none, for several, and for what is no path. */
export function foreignFolder(command: string, [path, ...more]: readonly string[], recipe: ForeignRecipe): string {
  if (path === undefined || more.length > 0) {
    const example = `as in: baton ${command} --recipe ${recipe} /app/locks`;
    const what = `baton ${command} --recipe needs one path, of the node below which the locks are`;
    throw new BatonError("USAGE", `${what}, ${example}`);
  }
  if (path !== "/") foreignPath(path);
  return path;
}
