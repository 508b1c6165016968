/** Builds the request to a backend from a received request or a stored message. Pure. */
import { METHODS } from "node:http";
import { BatonError } from "../../base/errors.ts";
import type { OutgoingHttpRequest } from "../../base/http/http_exchange.ts";
import { type HttpHeaders, httpHeaderValue } from "../../base/http/http_headers.ts";
import {
  type HttpRequestTarget,
  joinUrlPaths,
  splitRequestUrl,
  urlWithoutLogin,
} from "../../base/http/request_target.ts";
import type { MessageHead } from "../queue/stored_message.ts";

/** The header by which a backend recognizes a message that it has already processed. */
export const idempotencyHeader = "idempotency-key";

/** Headers of one connection, not of the message (RFC 9110, 7.6.1), and headers that are made for each request. */
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

/** Methods whose requests have no body, or whose body has no meaning (RFC 9110, 9.3). */
const bodiless: ReadonlySet<string> = new Set(["CONNECT", "GET", "HEAD", "TRACE"]);

/** Removes the headers of the connection, including those that `Connection` names. */
export function forwardedHeaders(headers: HttpHeaders): HttpHeaders {
  const named = headers.filter(([name]) => name.toLowerCase() === "connection").flatMap(([, value]) =>
    value.split(",")
  );
  const dropped = new Set([...hopByHop, ...named.map((name) => name.trim().toLowerCase())]);
  return headers.filter(([name]) => !dropped.has(name.toLowerCase()));
}

/** Throws USAGE for a URL that no message can be sent to. `isWhole`: the URL of one request, which may have a query. */
export function parseBackend(url: string, { isWhole = false }: { readonly isWhole?: boolean } = {}): HttpRequestTarget {
  const shown = urlWithoutLogin(url);
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new BatonError("USAGE", `"${shown}" is not a URL such as http://backend:9000/stock`);
  }
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") {
    throw new BatonError("USAGE", `"${shown}" is not supported: use http: or https:`);
  }
  // A parser of URLs guesses the host of http:host and http:///host.
  if (!/^\s*https?:[/\\]{2}[^/\\]/i.test(url) || parsed.port === "0") {
    throw new BatonError("USAGE", `"${shown}" has no host or no port that can be reached: use http://HOST:PORT/PATH`);
  }
  if (parsed.username !== "" || parsed.password !== "") {
    // The URL is not repeated, as the message may be in a log.
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

/** The request for a stored message. `backend` null: that of the message. Null: it cannot be sent there. */
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
 * Parses `Name: value`. Throws USAGE, also for headers that could not be sent: otherwise every message would fail.
 * Values may be secrets, so an error has none.
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
    // The same key for all messages would make a backend ignore all but the first.
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

/** Throws USAGE for methods that send no body. */
export function parseMethod(written: string): string {
  if (METHODS.includes(written) && !bodiless.has(written)) return written;
  const why = bodiless.has(written)
    ? "has no body, but a message is sent as the body"
    : "is not a known method in capitals";
  throw new BatonError("USAGE", `--method: ${written} ${why}: use POST, PUT, PATCH, DELETE or the like`);
}

/** Whether the method cannot carry this body. */
export function losesBody(method: string, body: Uint8Array): boolean {
  return body.byteLength > 0 && bodiless.has(method);
}

/** A longer Retry-After counts as this, 31 years: a larger number would overflow. */
const retryAfterSecondsMax = 1e9;

/**
 * Parses the header Retry-After (RFC 9110, 10.2.3), a number of seconds or a date, to milliseconds from `nowMs`. Null:
 * it is neither. A date in the past is 0.
 */
export function parseRetryAfter(written: string | null, nowMs: number): number | null {
  const text = written?.trim() ?? "";
  if (/^\d+$/.test(text)) return Math.min(Number(text), retryAfterSecondsMax) * 1000;
  // IMF-fixdate and the two obsolete forms; Date.parse accepts more, such as bare numbers.
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return null;
  const atMs = Date.parse(text.endsWith("GMT") ? text : `${text} GMT`);
  return Number.isFinite(atMs) ? Math.max(0, atMs - nowMs) : null;
}
