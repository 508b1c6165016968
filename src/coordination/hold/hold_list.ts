/**
 * Parses and formats BATON_HOLD, which lists the locks that a script holds. It has one word for each `baton hold`, the
 * latest word last. Pure.
 *
 *   NAME[+NAME…]=ID[.ID…]@PATH
 *
 * Names are URL-encoded. The holder IDs have the order of the names. PATH is the path of the release socket.
 */

/** The locks that one `baton hold` has acquired. */
export interface HeldLocks {
  readonly names: readonly string[];
  readonly ids: readonly [string, ...string[]];
  readonly path: string;
}

/** Parses BATON_HOLD. Ignores words of another form, because another program may use a variable of this name. */
export function parseHeldLocks(text: string | undefined): HeldLocks[] {
  return (text ?? "").split(" ").flatMap((word) => {
    const [, names = "", ids = "", path = ""] = /^([^=@]+)=([0-9a-f.]+)@(\/\S+)$/.exec(word) ?? [];
    const [first, ...others] = ids.split(".").filter(Boolean);
    try {
      return first === undefined
        ? []
        : [{ names: names.split("+").map(decodeURIComponent), ids: [first, ...others], path }];
    } catch {
      return []; // invalid URL encoding
    }
  });
}

export function formatHeldLocks(holds: readonly HeldLocks[]): string {
  return holds.map(({ names, ids, path }) => `${names.map(encodeURIComponent).join("+")}=${ids.join(".")}@${path}`)
    .join(" ");
}

/**
 * Removes the holder IDs of `ended` holds from `text` (BATON_LOCK_COOKIE). The list then stays short in a script that
 * acquires a lock repeatedly.
 */
export function removeEndedHolderIds(ended: readonly HeldLocks[], text: string | undefined): string {
  const removed = new Set(ended.flatMap(({ ids }) => ids));
  return (text ?? "").split(":").filter((cookie) => cookie !== "" && !removed.has(cookie)).join(":");
}
