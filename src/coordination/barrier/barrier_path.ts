/** Where barriers and gates live in the tree: `<root>/barriers/<name>` and `<root>/gates/<name>`. */
import { encodeLockName } from "../lock/lock_name.ts";
import { defaultRoot, lockPathAt } from "../lock/lock_path.ts";

export interface BarrierPath {
  /** The container whose data is the state, whose version is the guard, and whose children are the parties. */
  readonly barrier: string;
  /** Ordinary nodes that must exist above it, outermost first. */
  readonly parents: readonly string[];
}

/** Throws USAGE for an impossible name. */
export function barrierPath(name: string, root: string = defaultRoot): BarrierPath {
  return pathOf("barriers", name, root);
}

/** The gate's node: there while the gate is closed. Throws USAGE for an impossible name. */
export function gatePath(
  name: string,
  root: string = defaultRoot,
): { readonly gate: string; readonly parents: readonly string[] } {
  const { barrier, parents } = pathOf("gates", name, root);
  return { gate: barrier, parents };
}

function pathOf(folder: string, name: string, root: string): BarrierPath {
  const barrier = `${root === "/" ? "" : root}/${folder}/${encodeLockName(name, "a barrier")}`;
  return { barrier, parents: lockPathAt(barrier).parents };
}
