/**
 * BATON_HOLD: the locks that a script holds, one word for each `baton hold`, the latest one last. Pure.
 *
 *   NAME[+NAME…]=ID[.ID…]@PATH
 *
 * The names are as in a URL, the holder ids in the order of the names; the path is that of the release socket.
 */

/** The locks that one `baton hold` has acquired. */
export interface HeldLocks {
  readonly names: readonly string[];
  readonly ids: readonly [string, ...string[]];
  readonly path: string;
}

/** Words of another form are left out: another program's variable of that name holds no lock. */
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

/** Removes the marks of `ended` from the list in `text`: a script that takes a lock repeatedly keeps a short list. */
export function removeEndedHoldMarks(ended: readonly HeldLocks[], text: string | undefined): string {
  const removed = new Set(ended.flatMap(({ ids }) => ids));
  return (text ?? "").split(":").filter((cookie) => cookie !== "" && !removed.has(cookie)).join(":");
}
