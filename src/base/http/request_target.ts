/** The targets of requests, as they are written on the wire: nothing in a path is decoded or normalized. Pure. */

/** Where a request goes: `http://host:port` without a trailing slash, and the path after it. */
export interface HttpRequestTarget {
  readonly origin: string;
  /** Begins with a slash; has the query, but no fragment. */
  readonly path: string;
}

/** Returns the URL without user and password, for messages. */
export function urlWithoutLogin(url: string): string {
  return url.replace(/^(\s*(?:[a-z][a-z\d+.-]*:)?[/\\]{2})?[^/?#]*@/i, "$1…@");
}

/**
 * Divides a URL, of which `parsed` is the parsed form. The path stays as it was written, except that characters which
 * no request may contain are escaped: a parser of URLs would change `\` to `/`.
 */
export function splitRequestUrl(written: string, parsed: URL): HttpRequestTarget {
  const [, rest = ""] = /^\s*[a-z]+:[/\\]{2}[^/\\?#]*([^#]*)/i.exec(written) ?? [];
  const path = rest.trimEnd().replaceAll(/[^\x21-\x7e]/gu, encodeURIComponent);
  return { origin: parsed.origin, path: path.startsWith("/") ? path : `/${path}` };
}

/**
 * Returns the path of a request line, even from the absolute form (RFC 9112, section 3.2.2). Returns null if it has
 * none.
 */
export function requestTargetPath(target: string): string | null {
  if (target.startsWith("/")) return target;
  const [isAbsolute, rest = ""] = /^https?:\/\/[^/?#]+(.*)$/is.exec(target) ?? [];
  if (isAbsolute === undefined) return null;
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/**
 * Joins `/stock` and `/a?b=c` to `/stock/a?b=c`. Null: the path leads out of the base for a server that removes dots,
 * decodes `%2e` or takes `\` for `/`, begins with the name of another server, or has characters that no request may
 * contain.
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
