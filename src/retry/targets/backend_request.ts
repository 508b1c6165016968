/** Builds the request to a backend from a received request or a stored message. */
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

/** The header by which a backend recognizes a message that it has already processed. */
export const idempotencyHeader = "idempotency-key";

/**
 * Headers that concern one connection instead of the message (RFC 9110, 7.6.1), and headers that are set for each
 * request.
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

/** Methods for requests without a body, or with a body that has no meaning (RFC 9110, 9.3). */
const bodiless: ReadonlySet<string> = new Set(["CONNECT", "GET", "HEAD", "TRACE"]);

/** Removes the headers of the connection, including those that `Connection` lists. */
export function forwardedHeaders(headers: HttpHeaders): HttpHeaders {
  const named = headers.filter(([name]) => name.toLowerCase() === "connection").flatMap(([, value]) =>
    value.split(",")
  );
  const dropped = new Set([...hopByHop, ...named.map((name) => name.trim().toLowerCase())]);
  return headers.filter(([name]) => !dropped.has(name.toLowerCase()));
}

/**
 * Parses the URL of a backend. Throws USAGE if no message can be sent there. With `isWhole`, the URL is for a single
 * request and may have a query.
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
  // The URL parser guesses a host for http:host and http:///host.
  if (!/^\s*https?:[/\\]{2}[^/\\]/i.test(url) || parsed.port === "0") {
    throw new BatonError("USAGE", `"${shown}" has no host or no port that can be reached: use http://HOST:PORT/PATH`);
  }
  if (parsed.username !== "" || parsed.password !== "") {
    // The error does not repeat the URL, because the message may be written to a log.
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
 * Returns the request for a stored message. `backend` is null if the message names its backend. Returns null if the
 * message cannot be sent there.
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

/**
 * Parses `Name: value`. Throws USAGE also for headers that cannot be sent, because otherwise every message would fail.
 * The error contains no value, because it may be secret.
 */
export function parseHeaders(lines: readonly string[]): HttpHeaders {
  return lines.map((line, at) => {
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):\s*([^\r\n]*)$/.exec(line.trim()) ?? [];
    if (name === undefined || value === undefined) {
      const [begin = ""] = /^[a-z-]{1,40}(?=$|[\s:=])/i.exec(line) ?? [];
      const what = begin === "" ? `Header ${at + 1}` : begin === line ? `"${begin}"` : `"${begin}…"`;
      throw new BatonError("USAGE", `${what} is not a header: use Name:value`);
    }
    const lower = name.toLowerCase();
    // The same key for all messages would make a backend ignore all but the first message.
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

/** Returns the method. Throws USAGE for a method that sends no body. */
export function parseMethod(written: string): string {
  if (METHODS.includes(written) && !bodiless.has(written)) return written;
  const why = bodiless.has(written)
    ? "has no body, but a message is sent as the body"
    : "is not a known method in capitals";
  throw new BatonError("USAGE", `--method: ${written} ${why}: use POST, PUT, PATCH, DELETE or the like`);
}

/** Returns whether requests with this method cannot have this body. */
export function losesBody(method: string, body: Uint8Array): boolean {
  return body.byteLength > 0 && bodiless.has(method);
}

/** The longest Retry-After, 31 years, because a larger number could overflow. */
const retryAfterSecondsMax = 1e9;

/**
 * Parses the header Retry-After (RFC 9110, 10.2.3), which is a number of seconds or a date. Returns milliseconds from
 * `nowMs`, 0 for a date in the past, or null if it is neither.
 */
export function parseRetryAfter(written: string | null, nowMs: number): number | null {
  const text = written?.trim() ?? "";
  if (/^\d+$/.test(text)) return Math.min(Number(text), retryAfterSecondsMax) * 1000;
  // Allows IMF-fixdate and the two obsolete forms. Date.parse alone would accept more, such as plain numbers.
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return null;
  const atMs = Date.parse(text.endsWith("GMT") ? text : `${text} GMT`);
  return Number.isFinite(atMs) ? Math.max(0, atMs - nowMs) : null;
}
