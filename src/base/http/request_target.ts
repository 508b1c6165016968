/**
 * Handles URLs and paths of requests without decoding or normalizing them, so that a server receives what the user
 * wrote. Pure.
 */

/** Where a request goes: `http://host:port` without a trailing slash, and the path after it. */
export interface HttpRequestTarget {
  readonly origin: string;
  /** The path and the query, without the fragment. Begins with a slash. */
  readonly path: string;
}

/** Returns the URL without user and password, for messages. */
export function removeLoginFromUrl(url: string): string {
  return url.replace(/^(\s*(?:[a-z][a-z\d+.-]*:)?[/\\]{2})?[^/?#]*@/i, "$1…@");
}

/**
 * Splits a URL into its origin and its path; `parsed` is the same URL, parsed. Keeps the path as written, because a URL
 * parser would change `\` to `/`. Escapes only characters that no request may contain.
 */
export function splitRequestUrl(written: string, parsed: URL): HttpRequestTarget {
  const [, rest = ""] = /^\s*[a-z]+:[/\\]{2}[^/\\?#]*([^#]*)/i.exec(written) ?? [];
  const path = rest.trimEnd().replaceAll(/[^\x21-\x7e]/gu, encodeURIComponent);
  return { origin: parsed.origin, path: path.startsWith("/") ? path : `/${path}` };
}

/**
 * Returns the path in the first line of a request. That line may have an absolute URL instead (RFC 9112, section
 * 3.2.2). Returns null if there is no path.
 */
export function requestTargetPath(target: string): string | null {
  if (target.startsWith("/")) return target;
  const [isAbsolute, rest = ""] = /^https?:\/\/[^/?#]+(.*)$/is.exec(target) ?? [];
  if (isAbsolute === undefined) return null;
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/**
 * Joins `/stock` and `/a?b=c` to `/stock/a?b=c`. Returns null if a server could take the result for a path outside
 * `base`, because of `..` (also as `%2e`, or after `\`) or a leading `//`. Also returns null for characters that no
 * request may contain.
 */
export function joinUrlPaths(base: string, path: string): string | null {
  if (!path.startsWith("/") || /^\/[/\\]/.test(path) || /[^\x21-\xff]/.test(path)) return null;
  const folder = base.replace(/\/$/, "");
  if (folder === "") return path;
  let depth = 0;
  const [folders = ""] = path.split(/[?#]/, 1);
  for (const segment of folders.slice(1).split(/[/\\]|%2f|%5c/i)) {
    const plain = segment.replaceAll(/%2e/gi, ".");
    if (plain === "..") depth--;
    else if (plain !== "." && plain !== "") depth++;
    if (depth < 0) return null;
  }
  return `${folder}${path === "/" ? "" : path.startsWith("/?") ? path.slice(1) : path}`;
}
