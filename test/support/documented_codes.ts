/**
 * Returns the exit codes of a page's list: those of the items below a line that ends in `heading` and a colon. Empty if
 * there is no such list.
 */
export function documentedExitCodes(page: string, heading: RegExp): number[] {
  const list = new RegExp(`${heading.source}:\\n\\n((?:- .*\\n(?: {2}.*\\n)*)+)`, "m").exec(page)?.[1] ?? "";
  const codes = [...list.matchAll(/^- ([\d, ]+):/gm)].flatMap(([, some = ""]) => some.split(", ").map(Number));
  return [...new Set(codes)].sort((a, b) => a - b);
}
