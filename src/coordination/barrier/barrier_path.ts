/** Paths of barriers and gates: `<root>/barriers/<name>` and `<root>/gates/<name>`. */
import { encodeLockName } from "../lock/lock_name.ts";
import { folderOf, lockPathAt } from "../lock/lock_path.ts";

export interface BarrierPath {
  /** The container. Its data is the state, its version protects changes, and its children are the participants. */
  readonly barrier: string;
  /** The parent nodes, outermost first. */
  readonly parents: readonly string[];
}

/** The path of a barrier. Throws USAGE for an invalid name. */
export function barrierPath(name: string, root?: string): BarrierPath {
  return pathOf("barriers", name, root);
}

/** The path of a gate; the node exists while the gate is closed. Throws USAGE for an invalid name. */
export function gatePath(name: string, root?: string): { readonly gate: string; readonly parents: readonly string[] } {
  const { barrier, parents } = pathOf("gates", name, root);
  return { gate: barrier, parents };
}

function pathOf(folder: string, name: string, root: string | undefined): BarrierPath {
  const barrier = `${folderOf(folder, root)}/${encodeLockName(name, "a barrier")}`;
  return { barrier, parents: lockPathAt(barrier).parents };
}
