/** Builds the request to a backend from a received request or from a stored message. */
import { METHODS } from "node:http";
import { BatonError } from "../../base/errors.ts";
import type { OutgoingHttpRequest } from "../../base/http/http_exchange.ts";
import { type HttpHeaders, httpHeaderValue } from "../../base/http/http_headers.ts";
import {
  type HttpRequestTarget,
  joinUrlPaths,
  removeLoginFromUrl,
  splitRequestUrl,
} from "../../base/http/request_target.ts";
import type { MessageHead } from "../queue/stored_message.ts";

/** The header by which a backend can recognize a message that it has already processed. */
export const idempotencyHeader = "idempotency-key";

/**
 * Headers that belong to one connection and not to the message (RFC 9110, 7.6.1), and headers that baton itself sets
 * for each request.
 */
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

/** Methods whose requests have no body, or a body that has no meaning (RFC 9110, 9.3). */
const bodiless: ReadonlySet<string> = new Set(["CONNECT", "GET", "HEAD", "TRACE"]);

/**
 * Returns the headers that are passed on. The headers of the connection, including those that `Connection` lists, are
 * left out.
 */
export function forwardedHeaders(headers: HttpHeaders): HttpHeaders {
  const named = headers.filter(([name]) => name.toLowerCase() === "connection").flatMap(([, value]) =>
    value.split(",")
  );
  const dropped = new Set([...hopByHop, ...named.map((name) => name.trim().toLowerCase())]);
  return headers.filter(([name]) => !dropped.has(name.toLowerCase()));
}

/**
 * Parses the URL of a backend. Throws USAGE if no message can be sent there. If `isWhole` is true, the URL is for a
 * single request and may have a query.
 */
export function parseBackend(url: string, { isWhole = false }: { readonly isWhole?: boolean } = {}): HttpRequestTarget {
  const shown = removeLoginFromUrl(url);
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new BatonError("USAGE", `"${shown}" is not a URL such as http://backend:9000/stock`);
  }
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") {
    throw new BatonError("USAGE", `"${shown}" is not supported: use http: or https:`);
  }
  // The URL parser would guess a host for http:host and http:///host.
  if (!/^\s*https?:[/\\]{2}[^/\\]/i.test(url) || parsed.port === "0") {
    throw new BatonError("USAGE", `"${shown}" has no host or no port that can be reached: use http://HOST:PORT/PATH`);
  }
  if (parsed.username !== "" || parsed.password !== "") {
    // The error does not show the URL, because the message may be written to a log, and the URL has a password.
    const why = "clients send their own Authorization, and run and call have --header Authorization:…";
    throw new BatonError(
      "USAGE",
      `The URL of ${parsed.host} must not have a user or a password, which would not be sent: ${why}`,
    );
  }
  if (parsed.hash !== "" || (parsed.search !== "" && !isWhole)) {
    const what = isWhole ? "a fragment, which is never sent" : "a query or a fragment: queries come from the messages";
    throw new BatonError("USAGE", `"${url}" must not have ${what}`);
  }
  return splitRequestUrl(url, parsed);
}

/**
 * Returns the request for a stored message. `backend` is null if the message names its own backend. Returns null if the
 * message cannot be sent to a backend.
 */
export function buildBackendRequest(
  head: MessageHead,
  id: string,
  { backend, method, headers }: {
    readonly backend: HttpRequestTarget | null;
    readonly method: string;
    readonly headers: HttpHeaders;
  },
): Omit<OutgoingHttpRequest, "body"> | null {
  const own = head.kind === "http" ? head.headers : [];
  const has = (name: string) => own.some(([one]) => one.toLowerCase() === name.toLowerCase());
  const all = [...own, ...headers.filter(([name]) => !has(name))];
  const isKeyed = httpHeaderValue(all, idempotencyHeader) !== null;
  const place = placeFor(head, backend);
  if (place === null) return null;
  return {
    ...place,
    method: head.kind === "http" ? head.method : method,
    headers: isKeyed ? all : [...all, [idempotencyHeader, id]],
  };
}

function placeFor(head: MessageHead, backend: HttpRequestTarget | null): HttpRequestTarget | null {
  if (head.kind !== "http") return backend;
  const base = backend ?? (head.origin === undefined ? null : { origin: head.origin, path: "/" });
  const path = base && joinUrlPaths(base.path, head.path);
  return base === null || path === null ? null : { origin: base.origin, path };
}

/** Returns the name of the first character that ends a line; null if there is none. */
function lineEndName(text: string): string | null {
  const [end] = /[\r\n]/.exec(text) ?? [];
  return end === undefined ? null : end === "\n" ? "newline" : "carriage return";
}

/**
 * Parses headers that are written as `Name: value`. Throws USAGE for a wrong header and for one that cannot be sent,
 * because every message would fail. The error does not show the value, which may be secret.
 */
export function parseHeaders(lines: readonly string[]): HttpHeaders {
  return lines.map((line, at) => {
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):\s*([^\r\n]*)$/.exec(line.trim()) ?? [];
    if (name === undefined || value === undefined) {
      const [begin = ""] = /^[a-z-]{1,40}(?=$|[\s:=])/i.exec(line) ?? [];
      const what = begin === "" ? `Header ${at + 1}` : begin === line ? `"${begin}"` : `"${begin}…"`;
      const bad = lineEndName(line.trim());
      const why = bad === null ? "is not a header: use Name:value" : `cannot be sent: a header must not have a ${bad}`;
      throw new BatonError("USAGE", `${what} ${why}`);
    }
    const lower = name.toLowerCase();
    // If all messages had the same key, a backend would ignore all but the first one.
    if (hopByHop.has(lower) || lower === idempotencyHeader) {
      throw new BatonError("USAGE", `The header ${name} is not allowed: ${name} is set for each message`);
    }
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      throw new BatonError(
        "USAGE",
        `The header ${name} cannot be sent: its value may only have printable Latin-1 characters`,
      );
    }
    return [name, value] as const;
  });
}

/** Checks an HTTP method and returns it. Throws USAGE for a method that sends no body. */
export function parseMethod(written: string): string {
  if (METHODS.includes(written) && !bodiless.has(written)) return written;
  const why = bodiless.has(written)
    ? "has no body, but a message is sent as the body"
    : "is not a known method in capitals";
  throw new BatonError("USAGE", `--method: ${written} ${why}: use POST, PUT, PATCH, DELETE or the like`);
}

/** Returns true if the body cannot be sent, because requests with this method have no body. */
export function losesBody(method: string, body: Uint8Array): boolean {
  return body.byteLength > 0 && bodiless.has(method);
}

/** The longest accepted Retry-After, in seconds: 31 years. A larger number could overflow. */
const retryAfterSecondsMax = 1e9;

/**
 * Parses the header Retry-After (RFC 9110, 10.2.3), which is a number of seconds or a date. Returns the milliseconds
 * from `nowMs` to that time, 0 for a date in the past, or null if the header cannot be read.
 */
export function parseRetryAfter(written: string | null, nowMs: number): number | null {
  const text = written?.trim() ?? "";
  if (/^\d+$/.test(text)) return Math.min(Number(text), retryAfterSecondsMax) * 1000;
  // Only IMF-fixdate and the two obsolete forms are allowed. Date.parse alone would accept more, such as plain numbers.
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return null;
  const atMs = Date.parse(text.endsWith("GMT") ? text : `${text} GMT`);
  return Number.isFinite(atMs) ? Math.max(0, atMs - nowMs) : null;
}
