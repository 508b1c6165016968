/** A pool's items as text says them: one in each line. Pure. */
import { BatonError, messageOf } from "../../errors.ts";
import { encodeLockName } from "../lock/lock_name.ts";
import { itemLockName } from "./pool_path.ts";

/** More is a mistake, or needs a query that names those that are next. */
export const itemsMax = 100_000;
/** So many bytes hold as many items of the longest kind. */
export const itemsBytesMax = 32 * 1024 * 1024;

/**
 * In their order, each once, without empty lines. `source` is what a message calls the text. Throws BAD_DATA for too many,
 * and for a line that cannot be an item: over 255 bytes with its component, with control characters.
 */
export function parseItems(
  text: string,
  { component, source }: { readonly component: string; readonly source: string },
): string[] {
  const items = new Set<string>();
  text.split("\n").forEach((line, index) => {
    const item = line.endsWith("\r") ? line.slice(0, -1) : line;
    if (item.trim() === "" || items.has(item)) return;
    try {
      encodeLockName(itemLockName(component, item), "an item's lock");
    } catch (thrown) {
      throw new BatonError("BAD_DATA", `${source}, line ${index + 1}: ${messageOf(thrown)}`, { cause: thrown });
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
