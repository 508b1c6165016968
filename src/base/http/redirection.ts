/** Decides whether to follow a response that redirects (RFC 9110, section 15.4). Pure. */
import { printable } from "../support/text.ts";
import { type HttpHeaders, httpHeaderValue } from "./http_headers.ts";
import type { OutgoingHttpRequest } from "./http_exchange.ts";
import { removeLoginFromUrl, splitRequestUrl } from "./request_target.ts";

/** The most redirections that baton follows for one request. */
export const httpRedirectionsMax = 5;

/** Statuses that ask the client to repeat the request, with the same method and body, at another URL. */
export const sameMethodRedirectStatuses: ReadonlySet<number> = new Set([307, 308]);
/**
 * Statuses that baton follows only with --follow. A 303 is followed with GET; 301 and 302 keep method and body.
 */
export const optInRedirectStatuses: ReadonlySet<number> = new Set([301, 302, 303]);

/** Matches names of headers that may contain credentials, which another host must not get. */
const credentials = /auth|cookie|token|secret|passw|credential|api-?key|signature/i;

export type RedirectionDecision =
  /**
   * The redirection is not followed. `why` says what prevents that; null if the caller did not ask to follow
   * redirections.
   */
  | { readonly kind: "stays"; readonly why: string | null }
  | { readonly kind: "followed"; readonly request: OutgoingHttpRequest; readonly isSameHost: boolean };

/**
 * Decides whether to follow one response. `count` is the number of redirections so far. `mayFollow` is null if the user
 * has listed this status in --retry-on or --no-retry-on.
 */
export function decideRedirection(
  { status, headers }: { readonly status: number; readonly headers: HttpHeaders },
  request: OutgoingHttpRequest,
  { count, mayFollow }: { readonly count: number; readonly mayFollow: boolean | null },
): RedirectionDecision {
  const written = httpHeaderValue(headers, "location");
  if (mayFollow === null) return { kind: "stays", why: "--retry-on or --no-retry-on names it" };
  if (!mayFollow) return { kind: "stays", why: optInRedirectStatuses.has(status) ? "that needs --follow" : null };
  // node:http reads header bytes as Latin-1, so this restores the original bytes.
  const location = written?.replaceAll(/[\x80-\xff]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`) ??
    null;
  if (location === null) return { kind: "stays", why: "it has no Location" };
  if (count >= httpRedirectionsMax) return { kind: "stays", why: `it is redirection number ${count + 1}` };
  const from = new URL(request.origin);
  const to = URL.parse(location, request.origin + request.path);
  if (to === null || (to.protocol !== "http:" && to.protocol !== "https:")) {
    return { kind: "stays", why: "that is not the URL of a request" };
  }
  if (from.protocol === "https:" && to.protocol === "http:") {
    return { kind: "stays", why: "it leads from https to http" };
  }
  const isSameHost = to.hostname === from.hostname && to.port === from.port;
  const isRead = status === 303;
  const dropped = (name: string) => (!isSameHost && credentials.test(name)) || (isRead && /^content-/i.test(name));
  return {
    kind: "followed",
    isSameHost,
    request: {
      ...splitRequestUrl(wholeUrl(location, request.origin) ?? to.href, to),
      method: isRead && request.method !== "HEAD" ? "GET" : request.method,
      headers: request.headers.filter(([name]) => !dropped(name)),
      body: isRead ? new Uint8Array() : request.body,
    },
  };
}

/** Describes a status for a message: "got status 301 with Location: https://…". */
export function describeHttpStatus(
  { status, headers, why }: { readonly status: number; readonly headers: HttpHeaders; readonly why?: string | null },
): string {
  const location = status >= 300 && status < 400 ? httpHeaderValue(headers, "location") : null;
  const where = location === null ? "" : ` with Location: ${printable(removeLoginFromUrl(location).slice(0, 500))}`;
  return `got status ${status}${where}${why ? `, which is not followed: ${why}` : ""}`;
}

/**
 * Returns the URL of a Location header without changing its spelling. If the header has a path that begins with "/",
 * adds the origin. Returns null for a relative path.
 */
function wholeUrl(location: string, origin: string): string | null {
  if (/^https?:\/\/[^/\\]/i.test(location)) return location;
  return /^\/(?![/\\])/.test(location) ? origin + location : null;
}
