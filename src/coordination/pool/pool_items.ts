/** Parses items: one per line. Pure. */
import { BatonError, messageOf } from "../../errors.ts";
import { encodeLockName } from "../lock/lock_name.ts";
import { itemLockName, type PoolPath } from "./pool_path.ts";

/** The maximum number of items in a list. For more, use a query that prints the next items only. */
export const itemsMax = 100_000;
/** The maximum size of a list: enough for the maximum number of the longest items. */
export const itemsBytesMax = 32 * 1024 * 1024;

export interface ParseItemsOptions {
  readonly component: string;
  /** The lock paths, to check that each item fits the template; null if no lock is used. */
  readonly path: Pick<PoolPath, "item" | "items"> | null;
  /** The name of the text in messages. */
  readonly source: string;
  /** The unit that messages count. */
  readonly unit?: "line" | "item";
}

/**
 * Returns the items in their order, without duplicates and empty lines. Throws BAD_DATA for too many items, and, with the line number,
 * for an invalid item: longer than 255 bytes with its component, control characters, or without a word that the template needs.
 */
export function parseItems(
  text: string,
  { component, path, source, unit = "line" }: ParseItemsOptions,
): string[] {
  const items = new Set<string>();
  text.split("\n").forEach((line, index) => {
    const item = line.endsWith("\r") ? line.slice(0, -1) : line;
    if (item.trim() === "" || items.has(item)) return;
    try {
      encodeLockName(itemLockName(component, item), "an item's lock");
      if (path?.items === null) path.item(item); // a template with a parent path needs only {item}
    } catch (thrown) {
      throw new BatonError("BAD_DATA", `${source}, ${unit} ${index + 1}: ${messageOf(thrown)}`, { cause: thrown });
    }
    items.add(item);
    if (items.size > itemsMax) {
      throw new BatonError("BAD_DATA", `${source} has more than ${itemsMax} items, the maximum of a pool`);
    }
  });
  return [...items];
}
