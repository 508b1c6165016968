/**
 * Where a pool's locks and records live in the tree. The locks are ordinary ones, at places that templates name; by
 * default the component is the lock COMPONENT and an item the lock COMPONENT/ITEM, so that who, ls, break and lock know
 * them by these names.
 */
import { validatePath } from "../../zookeeper/node_path_names.ts";
import { BatonError } from "../../errors.ts";
import { encodeLockName } from "../lock/lock_name.ts";
import { defaultRoot, type LockPath, lockPathAt } from "../lock/lock_path.ts";

export interface PoolTemplates {
  /** Of `{root}` and `{component}`. */
  readonly component: string;
  /** Of these, `{item}`, and `{1}` to `{9}` for the words of an item. */
  readonly item: string;
}

export const defaultPoolTemplates: PoolTemplates = {
  component: "{root}/locks/{component}",
  item: "{root}/locks/{component}%2F{item}",
};

export interface PoolPath {
  readonly component: LockPath;
  /** How many of the pool run in the whole cluster: a semaphore. */
  readonly total: LockPath;
  /** What only this pool uses, besides locks: everything below. */
  readonly own: string;
  /** Below it every run shows its terms as long as it runs, and its list as long as it takes items from one. */
  readonly runs: string;
  /** Below it are the records of items that run, or have ended while others had a list. */
  readonly records: string;
  /** As they were given. */
  readonly templates: PoolTemplates;
  /** What they come to, up to the item: the same text for the same place, however it was written and whatever the root is. */
  readonly places: PoolTemplates;
  /** Below it is remembered which items ended well, */
  readonly ended: string;
  /** and which did not. */
  readonly failed: string;
  /** Throws BAD_DATA for an item that has not the words the template asks for. */
  item(item: string): LockPath;
  /** The node whose children are the items' locks, and the item behind such a child; null where the template leaves no way back. */
  readonly items: { readonly parent: string; itemOf(child: string): string | null } | null;
}

/** What messages and the child call an item's lock. */
export function itemLockName(component: string, item: string): string {
  return `${component}/${item}`;
}

/** Throws USAGE for a component that cannot be one, CONFIG for a template that cannot. */
export function poolPath(
  component: string,
  { root = defaultRoot, templates = defaultPoolTemplates }: {
    readonly root?: string | undefined;
    readonly templates?: PoolTemplates;
  } = {},
): PoolPath {
  const base = root === "/" ? "" : root;
  const name = encodeLockName(component, "a component");
  const own = `${base}/pools/${name}`;
  const fixed = new Map([["root", base], ["component", name]]);
  const itemTemplate = expand(
    "item",
    templates.item,
    (word) => fixed.get(word) ?? (isOfItem(word) ? `{${word}}` : null),
  );
  if (!/\{(item|[1-9])\}/.test(itemTemplate)) {
    throw unfit("item", templates.item, "it names no {item}, and all items would be one");
  }
  const componentPath = expand("component", templates.component, (word) => fixed.get(word) ?? null);
  const placeOf = (path: string) => path.startsWith(`${base}/`) ? `{root}${path.slice(base.length)}` : path;
  return {
    component: lockPathAt(checked("component", componentPath, templates.component)),
    total: lockPathAt(`${own}/total`),
    own,
    runs: `${own}/runs`,
    records: `${own}/records`,
    templates,
    places: { component: placeOf(componentPath), item: placeOf(itemTemplate) },
    ended: `${own}/ended`,
    failed: `${own}/failed`,
    item: (item) => {
      const path = expand("item", itemTemplate, (word) => wordOf(item, word, templates.item));
      return lockPathAt(checked("item", path, templates.item));
    },
    items: itemsAt(itemTemplate),
  };
}

/**
 * Throws BAD_DATA for an item that has not the words the template asks for, CONFIG for one whose lock would be the component's
 * or a part of it: the one would always be busy, the other in everybody's way.
 */
export function checkItems(path: PoolPath, items: readonly string[]): void {
  const { lock, queue, holders } = path.component;
  const own = [lock, queue, holders];
  const { items: place } = path;
  // Where the template leaves a way back, three names are looked at, and not a hundred thousand items.
  const named = place === null ? items : own.flatMap((node) => {
    const at = node.lastIndexOf("/");
    const item = (node.slice(0, at) || "/") === place.parent ? place.itemOf(node.slice(at + 1)) : null;
    return item !== null && items.includes(item) ? [item] : [];
  });
  for (const item of named) {
    const at = path.item(item).lock;
    if (!own.includes(at)) continue;
    const message = `The item "${item}" has its lock at "${at}", which is the component's own: pool.item_path and ` +
      "pool.component_path have to keep them apart";
    throw new BatonError("CONFIG", message);
  }
}

const isOfItem = (word: string): boolean => word === "item" || /^[1-9]$/.test(word);

type Which = keyof PoolTemplates;

/** What a template may name, for messages. */
const words: Readonly<Record<Which, string>> = {
  component: "{root} and {component}",
  item: "{root}, {component}, {item} and {1} to {9}",
};

function expand(which: Which, template: string, valueOf: (word: string) => string | null): string {
  return template.replaceAll(/\{([^{}]*)\}/g, (whole, word: string) => {
    const value = valueOf(word);
    if (value === null) throw unfit(which, template, `${whole} is none of ${words[which]}`);
    return value;
  });
}

function wordOf(item: string, word: string, template: string): string {
  const value = word === "item" ? item : item.trim().split(/\s+/)[Number(word) - 1];
  if (value !== undefined && value !== "") return encodeLockName(value, "an item");
  throw new BatonError("BAD_DATA", `The item "${item}" has no word ${word}, which its path ${template} is made of`);
}

function itemsAt(template: string): PoolPath["items"] {
  const [before, after, ...more] = template.split("{item}");
  if (
    before === undefined || after === undefined || more.length > 0 || after.includes("/") || /\{/.test(before + after)
  ) {
    return null;
  }
  const parent = before.slice(0, before.lastIndexOf("/"));
  const prefix = before.slice(before.lastIndexOf("/") + 1);
  return {
    parent: parent === "" ? "/" : parent,
    itemOf(child) {
      if (!child.startsWith(prefix) || !child.endsWith(after) || child.length <= prefix.length + after.length) {
        return null;
      }
      try {
        return decodeURIComponent(child.slice(prefix.length, child.length - after.length));
      } catch {
        return null; // nothing that a pool has written
      }
    },
  };
}

function checked(which: Which, path: string, template: string): string {
  try {
    validatePath(path);
  } catch (cause) {
    throw unfit(which, template, `"${path}", which it makes, is not a path of ZooKeeper's`, cause);
  }
  return path;
}

function unfit(which: Which, template: string, why: string, cause?: unknown): BatonError {
  const whose = which === "item" ? "an item's" : "a component's";
  return new BatonError("CONFIG", `"${template}" cannot be the template of ${whose} path: ${why}`, { cause });
}
