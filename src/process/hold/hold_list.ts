/**
 * BATON_HOLD: what a script holds, one word for each `baton hold`, the last one last. Pure.
 *
 *   NAME[+NAME…]=ID[.ID…]@PATH     names as in a URL; the holders' ids in the order of the names; the holder's release box
 */

export interface Held {
  readonly names: readonly string[];
  readonly ids: readonly [string, ...string[]];
  readonly path: string;
}

/** What cannot be read is left out: somebody else's variable of that name is nothing to release. */
export function parseHolds(text: string | undefined): Held[] {
  return (text ?? "").split(" ").flatMap((word) => {
    const [, names = "", ids = "", path = ""] = /^([^=@]+)=([0-9a-f.]+)@(\/\S+)$/.exec(word) ?? [];
    const [first, ...others] = ids.split(".").filter(Boolean);
    try {
      return first === undefined
        ? []
        : [{ names: names.split("+").map(decodeURIComponent), ids: [first, ...others], path }];
    } catch {
      return []; // no such encoding
    }
  });
}

export function formatHolds(holds: readonly Held[]): string {
  return holds.map(({ names, ids, path }) => `${names.map(encodeURIComponent).join("+")}=${ids.join(".")}@${path}`)
    .join(" ");
}

/** The cookies of `text` without those of holds that are over: a script that takes a lock again and again has a short list. */
export function withoutCookiesOf(over: readonly Held[], text: string | undefined): string {
  const gone = new Set(over.flatMap(({ ids }) => ids));
  return (text ?? "").split(":").filter((cookie) => cookie !== "" && !gone.has(cookie)).join(":");
}
