/**
 * The names by which other people's locks stand in line, as their libraries write and read them. Names only: what follows
 * from them is foreign_position.ts. Observed with Curator 5.4 (StandardLockInternalsDriver, InterProcessReadWriteLock) and
 * kazoo 2.8 (kazoo.recipe.lock).
 */

export const interopRecipes = ["curator", "curator-rw", "kazoo"] as const;
export type InteropRecipe = typeof interopRecipes[number];

export interface InteropNode {
  readonly name: string;
  /** Whether others of its kind may hold beside it. */
  readonly isShared: boolean;
  /** The number that the server gave it: its place in the line. */
  readonly sequence: number;
  /** What its maker put into the name to find it again, as hexadecimal digits without dashes; empty when nothing. */
  readonly guid: string;
}

interface NodeNaming {
  /** For sentences. */
  readonly title: string;
  /** The whole of a name up to the sequence that the server appends; null where the recipe knows no such mode. */
  readonly prefix: { readonly exclusive: (guid: string) => string; readonly shared: ((guid: string) => string) | null };
  /** Matches the names of this recipe only; the last group is the sequence. */
  readonly pattern: RegExp;
  readonly sharedMark: string | null;
  /** The recipe makes the nodes above as containers, which the server removes when they have become empty. */
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

export function namingOf(recipe: InteropRecipe): NodeNaming {
  return namings[recipe];
}

/** Null for a name that the recipe does not write. */
export function parseInteropNode(recipe: InteropRecipe, name: string): InteropNode | null {
  const naming = namingOf(recipe);
  const [, front, sequence] = naming.pattern.exec(name) ?? [];
  if (front === undefined || sequence === undefined) return null;
  const isShared = naming.sharedMark !== null && name.slice(front.length).startsWith(naming.sharedMark);
  const [, guid = ""] = /^(?:_c_)?([0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12})-?$/.exec(front) ?? [];
  return { name, isShared, sequence: Number(sequence), guid: guid.replaceAll("-", "") };
}

/** Of a contender of any of the recipes; empty when it is none. */
export function guidOfInteropNode(name: string): string {
  const recipe = recipeOf(name);
  return recipe === null ? "" : (parseInteropNode(recipe, name)?.guid ?? "");
}

/** The recipe that writes such a name, if it is one of those known here. */
export function recipeOf(name: string): InteropRecipe | null {
  return interopRecipes.find((recipe) => parseInteropNode(recipe, name) !== null) ?? null;
}

/** Curator's Revoker writes this over the data of a holder's node: its way to ask for the lock. */
export const curatorRevocation = "__REVOKE__";

export function isCuratorRevocation(data: Uint8Array): boolean {
  return new TextDecoder().decode(data) === curatorRevocation;
}
