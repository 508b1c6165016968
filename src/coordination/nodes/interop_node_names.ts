/**
 * Node names of the contenders of other libraries, as observed with Curator 5.4 (StandardLockInternalsDriver,
 * InterProcessReadWriteLock) and kazoo 2.8 (kazoo.recipe.lock).
 */
import { validateNodePath } from "../../protocols/zookeeper/node_path.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import type { LockPath } from "./node_paths.ts";

export const interopRecipes = ["curator", "curator-rw", "kazoo"] as const;
export type InteropRecipe = typeof interopRecipes[number];

export interface InteropContenderNode {
  readonly name: string;
  /** True for a reader: other readers may hold the lock at the same time. */
  readonly isShared: boolean;
  /** The sequence number that the server gave to the node. It determines the order of the queue. */
  readonly sequence: number;
  /** The ID in the name, as hexadecimal digits without dashes; empty if the name has no ID. */
  readonly guid: string;
}

interface NodeNaming {
  readonly title: string;
  /**
   * Returns the name of a node without the sequence that the server appends. `shared` is null if the recipe has no
   * shared mode.
   */
  readonly prefix: { readonly exclusive: (guid: string) => string; readonly shared: ((guid: string) => string) | null };
  /** Matches only the node names of this recipe. The last group is the sequence. */
  readonly pattern: RegExp;
  readonly sharedMark: string | null;
  /** True if the recipe creates the parent nodes as containers, which the server removes when they are empty. */
  readonly makesContainers: boolean;
}

const curatorGuid = (guid: string): string =>
  `_c_${[0, 8, 12, 16, 20].map((at, index, all) => guid.slice(at, all[index + 1])).join("-")}-`;

const namings = {
  curator: {
    title: "Curator's InterProcessMutex",
    prefix: { exclusive: (guid) => `${curatorGuid(guid)}lock-`, shared: null },
    pattern: /^(.*)lock-(-\d{9,10}|\d{10})$/,
    sharedMark: null,
    makesContainers: true,
  },
  "curator-rw": {
    title: "Curator's InterProcessReadWriteLock",
    prefix: {
      exclusive: (guid) => `${curatorGuid(guid)}__WRIT__`,
      shared: (guid) => `${curatorGuid(guid)}__READ__`,
    },
    pattern: /^(.*)__(?:READ|WRIT)__(-\d{9,10}|\d{10})$/,
    sharedMark: "__READ__",
    makesContainers: true,
  },
  kazoo: {
    title: "kazoo's Lock",
    prefix: { exclusive: (guid) => `${guid}__lock__`, shared: (guid) => `${guid}__rlock__` },
    pattern: /^(.*)__r?lock__(-\d{9,10}|\d{10})$/,
    sharedMark: "__rlock__",
    makesContainers: false,
  },
} as const satisfies Record<InteropRecipe, NodeNaming>;

export function interopNodeNaming(recipe: InteropRecipe): NodeNaming {
  return namings[recipe];
}

/** Parses the name of a contender's node. Returns null for a name that the recipe does not write. */
export function parseInteropNode(recipe: InteropRecipe, name: string): InteropContenderNode | null {
  const naming = interopNodeNaming(recipe);
  const [, front, sequence] = naming.pattern.exec(name) ?? [];
  if (front === undefined || sequence === undefined) return null;
  const isShared = naming.sharedMark !== null && name.slice(front.length).startsWith(naming.sharedMark);
  const [, guid = ""] = /^(?:_c_)?([0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12})-?$/.exec(front) ?? [];
  return { name, isShared, sequence: Number(sequence), guid: guid.replaceAll("-", "") };
}

/** Returns the ID in a contender's node name, for any recipe. Returns "" for other names. */
export function readInteropNodeGuid(name: string): string {
  const recipe = findInteropRecipe(name);
  return recipe === null ? "" : (parseInteropNode(recipe, name)?.guid ?? "");
}

/** Returns the recipe that writes such a node name; null if no recipe does. */
export function findInteropRecipe(name: string): InteropRecipe | null {
  return interopRecipes.find((recipe) => parseInteropNode(recipe, name) !== null) ?? null;
}

/** The data that Curator's Revoker writes into a holder's node to ask for the lock. */
export const curatorRevocation = "__REVOKE__";

export function isCuratorRevocation(data: Uint8Array): boolean {
  return new TextDecoder().decode(data) === curatorRevocation;
}

/**
 * Returns the paths of a lock whose contenders and holders are children of the lock's node. Throws USAGE if `name` is
 * not a path, or is the root.
 */
export function interopLockPath(name: string): LockPath {
  try {
    if (name === "/") throw new Error("the root is not allowed");
    validateNodePath(name);
  } catch (thrown) {
    throw new BatonError(
      "USAGE",
      "With --recipe, NAME is the path of the lock's node, as in /app/locks/nightly. " +
        `"${name}" is not a path: ${errorMessage(thrown)}`,
    );
  }
  return { lock: name, queue: name, holders: name };
}
