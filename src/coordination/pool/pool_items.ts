/** A pool's items as text says them: one in each line. Pure. */
import { BatonError, messageOf } from "../../errors.ts";
import { encodeLockName } from "../lock/lock_name.ts";
import { itemLockName, type PoolPath } from "./pool_path.ts";

/** More is a mistake, or needs a query that names those that are next. */
export const itemsMax = 100_000;
/** So many bytes hold as many items of the longest kind. */
export const itemsBytesMax = 32 * 1024 * 1024;

export interface ParseItemsOptions {
  readonly component: string;
  /** Where their locks are, for what it asks of an item; null where nobody is going to ask for them. */
  readonly path: Pick<PoolPath, "item" | "items"> | null;
  /** What a message calls the text, */
  readonly source: string;
  /** and what it counts in it. */
  readonly unit?: "line" | "item";
}

/**
 * In their order, each once, without empty lines. Throws BAD_DATA for too many, and, with its place in the text, for a line
 * that cannot be an item: over 255 bytes with its component, with control characters, without a word its path is made of.
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
      if (path?.items === null) path.item(item); // where there is a way back, nothing but {item} is asked for
    } catch (thrown) {
      throw new BatonError("BAD_DATA", `${source}, ${unit} ${index + 1}: ${messageOf(thrown)}`, { cause: thrown });
    }
    items.add(item);
    if (items.size > itemsMax) {
      throw new BatonError("BAD_DATA", `${source} names more than ${itemsMax} items, which is the most a pool takes`);
    }
  });
  return [...items];
}

/** The words of `--items a,b,c`, one to a line. */
export function listedItems(list: string): string {
  return list.replaceAll(",", "\n");
}
