/**
 * Computes the paths of a pool's nodes, and parses items. A pool's locks are ordinary locks with paths from templates.
 * By default, the component is the lock COMPONENT and an item is the lock COMPONENT/ITEM, so that who, ls, break and
 * lock accept these names.
 */
import { validateNodePath } from "../../protocols/zookeeper/node_path.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import {
  coordinationFolderPath,
  defaultRootNode,
  encodeLockName,
  type LockPath,
  lockPathAt,
} from "../nodes/node_paths.ts";

export interface PoolPathTemplates {
  /** The template of the component's path, with `{root}` and `{component}`. */
  readonly component: string;
  /** The template of an item's path. It may also contain `{item}`, and `{1}` to `{9}` for the words of the item. */
  readonly item: string;
}

export const defaultPoolPathTemplates: PoolPathTemplates = {
  component: "{root}/locks/{component}",
  item: "{root}/locks/{component}%2F{item}",
};

export interface PoolPath {
  readonly component: LockPath;
  /** The semaphore of --total. */
  readonly total: LockPath;
  /** The parent of all nodes of this pool except the locks. */
  readonly own: string;
  /** The parent of the nodes with which runs announce their settings and lists. */
  readonly runs: string;
  /** The container of the runs that share a list. */
  readonly shared: string;
  /** The tree of records of items that run, or that ended while a list was in use. */
  readonly records: string;
  readonly templates: PoolPathTemplates;
  /** The templates after replacing everything except the item and the root. Equal paths give equal texts. */
  readonly places: PoolPathTemplates;
  /** The tree of results of completed items. */
  readonly ended: string;
  /** The tree of results of failed items. */
  readonly failed: string;
  /** Returns the path of an item's lock. Throws BAD_DATA if the item lacks a word that the template needs. */
  item(item: string): LockPath;
  /**
   * The parent of all item locks, and the item of each child. Null if the template is too complex to derive items from
   * paths.
   */
  readonly items: { readonly parent: string; itemOf(child: string): string | null } | null;
}

/** Returns the name of an item's lock, for messages and for the command. */
export function itemLockName(component: string, item: string): string {
  return `${component}/${item}`;
}

/** Returns the paths of a pool. Throws USAGE for an invalid component, or CONFIG for an invalid template. */
export function poolPath(
  component: string,
  { root = defaultRootNode, templates = defaultPoolPathTemplates }: {
    readonly root?: string | undefined;
    readonly templates?: PoolPathTemplates;
  } = {},
): PoolPath {
  const base = root === "/" ? "" : root;
  const name = encodeLockName(component, "a component");
  const own = `${coordinationFolderPath("pools", root)}/${name}`;
  const fixed = new Map([["root", base], ["component", name]]);
  const itemTemplate = expand(
    "item",
    templates.item,
    (word) => fixed.get(word) ?? (isOfItem(word) ? `{${word}}` : null),
  );
  if (!/\{(item|[1-9])\}/.test(itemTemplate)) {
    throw templateError("item", templates.item, "it has no {item}, so all items would have the same lock");
  }
  const componentPath = expand("component", templates.component, (word) => fixed.get(word) ?? null);
  const placeOf = (path: string) => path.startsWith(`${base}/`) ? `{root}${path.slice(base.length)}` : path;
  return {
    component: lockPathAt(requireValidPath("component", componentPath, templates.component)),
    total: lockPathAt(`${own}/total`),
    own,
    runs: `${own}/runs`,
    shared: `${own}/shared`,
    records: `${own}/records`,
    templates,
    places: { component: placeOf(componentPath), item: placeOf(itemTemplate) },
    ended: `${own}/ended`,
    failed: `${own}/failed`,
    item: (item) => {
      const path = expand("item", itemTemplate, (word) => wordOf(item, word, templates.item));
      return lockPathAt(requireValidPath("item", path, templates.item));
    },
    items: itemsAt(itemTemplate),
  };
}

/**
 * Throws BAD_DATA if an item lacks a word that the template needs. Throws CONFIG if an item's lock would be the
 * component's lock or a node of that lock.
 */
export function checkPoolItems(path: PoolPath, items: readonly string[]): void {
  const { lock, queue, holders } = path.component;
  const own = [lock, queue, holders];
  const { items: place } = path;
  // If items can be derived from paths, it is enough to check three paths instead of all items.
  const named = place === null ? items : own.flatMap((node) => {
    const at = node.lastIndexOf("/");
    const item = (node.slice(0, at) || "/") === place.parent ? place.itemOf(node.slice(at + 1)) : null;
    return item !== null && items.includes(item) ? [item] : [];
  });
  for (const item of named) {
    const at = path.item(item).lock;
    if (!own.includes(at)) continue;
    const message = `Item "${item}" would have its lock at "${at}", which belongs to the lock of the component: ` +
      "change pool.item_path or pool.component_path";
    throw new BatonError("CONFIG", message);
  }
}

const isOfItem = (word: string): boolean => word === "item" || /^[1-9]$/.test(word);

type TemplateKind = keyof PoolPathTemplates;

/** The placeholders of a template, for messages. */
const words: Readonly<Record<TemplateKind, string>> = {
  component: "{root} and {component}",
  item: "{root}, {component}, {item} and {1} to {9}",
};

function expand(which: TemplateKind, template: string, valueOf: (word: string) => string | null): string {
  return template.replaceAll(/\{([^{}]*)\}/g, (whole, word: string) => {
    const value = valueOf(word);
    if (value === null) throw templateError(which, template, `${whole} is not one of ${words[which]}`);
    return value;
  });
}

function wordOf(item: string, word: string, template: string): string {
  const value = word === "item" ? item : item.trim().split(/\s+/)[Number(word) - 1];
  if (value !== undefined && value !== "") return encodeLockName(value, "an item");
  throw new BatonError("BAD_DATA", `Item "${item}" has no word ${word}, which the template ${template} needs`);
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
        return null; // no pool has created this node
      }
    },
  };
}

function requireValidPath(which: TemplateKind, path: string, template: string): string {
  try {
    validateNodePath(path);
  } catch (cause) {
    throw templateError(which, template, `it gives "${path}", which is not a ZooKeeper path`, cause);
  }
  return path;
}

function templateError(which: TemplateKind, template: string, why: string, cause?: unknown): BatonError {
  const whose = which === "item" ? "an item's" : "a component's";
  return new BatonError("CONFIG", `Invalid template "${template}" for ${whose} path: ${why}`, { cause });
}

/** A longer list needs a query that prints only the next items. */
export const poolItemsMax = 100_000;
/** The maximum size of a list in bytes, enough for the maximum number of the longest items. */
export const poolItemsBytesMax = 32 * 1024 * 1024;

interface ParsePoolItemsOptions {
  readonly component: string;
  /** The lock paths, to check that items fit the template; null to skip this check. */
  readonly path: Pick<PoolPath, "item" | "items"> | null;
  /** The name of the text in messages. */
  readonly source: string;
  /** The unit that messages count. */
  readonly unit?: "line" | "item";
}

/** The part of a list that has been parsed. */
export class ParsedPoolItems {
  readonly items = new Set<string>();
  lines = 0;
}

/**
 * Returns the items in order, without empty lines and items of the earlier part. Throws BAD_DATA for too many items, or
 * for an invalid item, with its line number. An invalid item has over 255 bytes with its component, has control
 * characters, or lacks a word that the template needs.
 */
export function parsePoolItems(
  text: string,
  { component, path, source, unit = "line" }: ParsePoolItemsOptions,
  earlier = new ParsedPoolItems(),
): string[] {
  const items: string[] = [];
  const lines = text.split("\n");
  lines.forEach((line, index) => {
    const item = line.endsWith("\r") ? line.slice(0, -1) : line;
    if (item.trim() === "" || earlier.items.has(item)) return;
    try {
      encodeLockName(itemLockName(component, item), "an item's lock");
      if (path?.items === null) path.item(item); // a template with a parent path needs only {item}
    } catch (thrown) {
      const where = `${source}, ${unit} ${earlier.lines + index + 1}`;
      throw new BatonError("BAD_DATA", `${where}: ${errorMessage(thrown)}`, { cause: thrown });
    }
    earlier.items.add(item);
    items.push(item);
    if (earlier.items.size > poolItemsMax) {
      throw new BatonError("BAD_DATA", `${source} has more than ${poolItemsMax} items, the maximum of a pool`);
    }
  });
  earlier.lines += lines.length - 1;
  return items;
}
