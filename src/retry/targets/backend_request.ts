/** From a request that came, or a stored message, to the one that the backend gets. Pure. */
import { METHODS } from "node:http";
import { BatonError } from "../../errors.ts";
import type { MessageHead } from "../queue/stored_message.ts";

export type HttpHeaders = readonly (readonly [name: string, value: string])[];

/** By it a backend knows a message that it has dealt with already. */
export const idempotencyHeader = "idempotency-key";

/** Of one connection and not of the message (RFC 9110, 7.6.1), or made anew for each. */
const hopByHop: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** What `fetch` sends without a body, or not at all. */
const bodiless: ReadonlySet<string> = new Set(["CONNECT", "GET", "HEAD", "TRACE"]);

/** Of an answer that was unpacked on its way. */
const encodingHeaders: ReadonlySet<string> = new Set(["content-encoding"]);

/** Without what belongs to the connection they came by, those included that `Connection` names. */
export function forwardedHeaders(
  headers: HttpHeaders,
  { isUnpacked = false }: { isUnpacked?: boolean } = {},
): HttpHeaders {
  const named = headers.filter(([name]) => name.toLowerCase() === "connection").flatMap(([, value]) =>
    value.split(",")
  );
  const dropped = new Set([...hopByHop, ...named.map((name) => name.trim().toLowerCase())]);
  return headers.filter(([name]) => {
    const lower = name.toLowerCase();
    return !dropped.has(lower) && !(isUnpacked && encodingHeaders.has(lower));
  });
}

export function headerOf(headers: HttpHeaders, wanted: string): string | null {
  return headers.find(([name]) => name.toLowerCase() === wanted)?.[1] ?? null;
}

/** Throws USAGE for what no message can be sent to. */
export function parseBackend(url: string): URL {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new BatonError("USAGE", `"${url}" is not a URL such as http://backend:9000/stock`);
  }
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") {
    throw new BatonError("USAGE", `"${url}" cannot be sent to: only http: and https: can`);
  }
  if (parsed.username !== "" || parsed.password !== "") {
    // Not repeated: it would be in a log. Nor is it sent: what stands behind the path of a message's own would lose it.
    const why = "whoever sends brings an Authorization of their own, and for run there is --header Authorization:…";
    throw new BatonError(
      "USAGE",
      `The URL of ${parsed.host} has a user or a password in it, which is not sent: ${why}`,
    );
  }
  if (parsed.hash !== "" || parsed.search !== "") {
    throw new BatonError(
      "USAGE",
      `"${url}" has a query or a fragment: the path is where messages go, a query is their own`,
    );
  }
  return parsed;
}

/** `http://backend/stock` and `/a?b=c` are `http://backend/stock/a?b=c`; null for a path that would lead elsewhere. */
export function backendUrl(backend: URL, path: string): string | null {
  if (!path.startsWith("/") || path.startsWith("//")) return null;
  const base = backend.pathname.replace(/\/$/, "");
  const rest = path === "/" ? "" : path.startsWith("/?") ? path.slice(1) : path;
  const joined = `${backend.origin}${base}${rest}`;
  try {
    const url = new URL(joined);
    return url.origin === backend.origin && url.pathname.startsWith(base) ? url.href : null;
  } catch {
    return null;
  }
}

export interface BackendRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: HttpHeaders;
}

/** Of a stored message. `defaults`: for one that brings no method and headers of its own. Null: it cannot be sent there. */
export function requestOf(
  head: MessageHead,
  id: string,
  { backend, method, headers }: { readonly backend: URL; readonly method: string; readonly headers: HttpHeaders },
): BackendRequest | null {
  const own = head.kind === "http" ? head.headers : [];
  const has = (name: string) => own.some(([one]) => one.toLowerCase() === name.toLowerCase());
  const all = [...own, ...headers.filter(([name]) => !has(name))];
  const isKeyed = headerOf(all, idempotencyHeader) !== null;
  const url = head.kind === "http" ? backendUrl(backend, head.path) : backend.href;
  if (url === null) return null;
  return {
    url,
    method: head.kind === "http" ? head.method : method,
    headers: isKeyed ? all : [...all, [idempotencyHeader, id]],
  };
}

/** `Name: value`. Throws USAGE, also for what could not be sent or would be left out: it would cost each message its tries. */
export function parseHeaders(written: readonly string[]): HttpHeaders {
  return written.map((line) => {
    const match = /^([!#$%&'*+.^_`|~\w-]+):\s*([^\r\n]*)$/.exec(line);
    if (match?.[1] === undefined || match[2] === undefined) {
      throw new BatonError("USAGE", `"${line}" is not a header: write Name:value`);
    }
    const lower = match[1].toLowerCase();
    // One key for all messages would make a backend take the second for the first.
    if (hopByHop.has(lower) || lower === idempotencyHeader) {
      throw new BatonError("USAGE", `"${line}" cannot be given: ${match[1]} is made anew for each message`);
    }
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(match[2])) {
      throw new BatonError(
        "USAGE",
        `"${line}" cannot be sent: a header has letters of Latin-1 only, and nothing unprintable`,
      );
    }
    return [match[1], match[2]] as const;
  });
}

/** Throws USAGE for what `fetch` would make a GET of, or send without the body, which would be lost then. */
export function parseMethod(written: string): string {
  if (METHODS.includes(written) && !bodiless.has(written)) return written;
  const why = bodiless.has(written)
    ? "carries no body, and a message is its body"
    : "is no method that can be sent, in capitals";
  throw new BatonError("USAGE", `--method: ${written} ${why}: write POST, PUT, PATCH, DELETE or the like`);
}

/** Whether the body would be left behind on the way. */
export function losesBody(method: string, body: Uint8Array): boolean {
  return body.byteLength > 0 && bodiless.has(method);
}

/** A longer Retry-After counts as this, 31 years: a larger number would overflow. */
const retryAfterSecondsMax = 1e9;

/**
 * Parses the header Retry-After (RFC 9110, 10.2.3), a number of seconds or a date, to milliseconds from `nowMs`. Null: it is neither. A
 * date in the past is 0.
 */
export function parseRetryAfter(written: string | null, nowMs: number): number | null {
  const text = written?.trim() ?? "";
  if (/^\d+$/.test(text)) return Math.min(Number(text), retryAfterSecondsMax) * 1000;
  // IMF-fixdate and the two obsolete forms; Date.parse accepts more, such as bare numbers.
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return null;
  const atMs = Date.parse(text.endsWith("GMT") ? text : `${text} GMT`);
  return Number.isFinite(atMs) ? Math.max(0, atMs - nowMs) : null;
}
