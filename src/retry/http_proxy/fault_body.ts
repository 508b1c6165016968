/** Formats the proxy's response to a failed request: JSON, or a SOAP 1.1 fault for SOAP clients. */
import { type HttpHeaders, httpHeaderValue } from "../../base/http/http_headers.ts";

export type ProxyFaultKind =
  | "unreachable"
  | "timed_out"
  | "backend_failed"
  | "store_full"
  | "not_stored"
  | "maybe_stored"
  | "overloaded"
  | "late"
  | "too_large"
  | "bad_request";

const statuses: Readonly<Record<ProxyFaultKind, number>> = {
  unreachable: 502,
  timed_out: 504,
  backend_failed: 502,
  store_full: 503,
  not_stored: 503,
  maybe_stored: 503,
  overloaded: 503,
  late: 408,
  too_large: 413,
  bad_request: 400,
};

/** The statuses whose response has no body (RFC 9110, 15.3.5, 15.3.6 and 15.4.5). */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304]);

export interface ProxyFault {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

export interface StoredMessageId {
  readonly id: string;
  /** True if the message will be tried again. False if it is already dead, for example with --max-retries 0. */
  readonly isWaiting: boolean;
}

/**
 * Formats the response. `stored` is null if the message is not stored; `kind` may also say that this is unknown.
 * `status` replaces the status of `kind`. The response to an accepted SOAP request has an empty body, because its
 * client would take a fault for an error.
 */
export function makeProxyFault(
  kind: ProxyFaultKind,
  why: string,
  stored: StoredMessageId | null,
  request: HttpHeaders,
  status: number = statuses[kind],
): ProxyFault {
  const id = stored?.id ?? null;
  const missing = kind === "maybe_stored" ? "the message MAY BE STORED" : "the message is NOT STORED";
  const state = stored === null
    ? missing
    : `the message is stored as ${stored.id} and will ${stored.isWaiting ? "" : "not "}be tried again`;
  const message = `${why}; ${state}`;
  if (bodiless.has(status)) return { status, contentType: "application/json", body: "" };
  if (isSoap(request)) {
    return { status, contentType: "text/xml; charset=utf-8", body: status < 300 ? "" : soapFault(kind, message, id) };
  }
  const body = JSON.stringify({ version: 1, error: kind, message, stored: stored !== null, id });
  return { status, contentType: "application/json", body: `${body}\n` };
}

/**
 * Returns true for a request of SOAP 1.1 or 1.2. SOAP 1.1 has the header SOAPAction (section 6.1); SOAP 1.2 has a
 * content type of its own.
 */
function isSoap(headers: HttpHeaders): boolean {
  const type = httpHeaderValue(headers, "content-type")?.toLowerCase() ?? "";
  return httpHeaderValue(headers, "soapaction") !== null || type.startsWith("application/soap+xml");
}

/** Formats a fault of SOAP 1.1 (section 4.4). Its code is "Client" only for errors of the request itself. */
function soapFault(kind: ProxyFaultKind, message: string, id: string | null): string {
  const code = kind === "too_large" || kind === "bad_request" || kind === "late" ? "Client" : "Server";
  const detail = `<baton:error xmlns:baton="urn:baton:retry">${kind}</baton:error>` +
    (id === null ? "" : `<baton:id xmlns:baton="urn:baton:retry">${escapeXml(id)}</baton:id>`);
  return '<?xml version="1.0" encoding="UTF-8"?>\n' +
    '<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body><soapenv:Fault>' +
    `<faultcode>soapenv:${code}</faultcode><faultstring>${escapeXml(message)}</faultstring><detail>${detail}</detail>` +
    "</soapenv:Fault></soapenv:Body></soapenv:Envelope>\n";
}

function escapeXml(text: string): string {
  const names: Readonly<Record<string, string>> = {
    "<": "&lt;",
    ">": "&gt;",
    "&": "&amp;",
    '"': "&quot;",
    "'": "&apos;",
  };
  // deno-lint-ignore no-control-regex -- XML 1.0, section 2.2, does not even allow them escaped
  return text.replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "?").replaceAll(
    /[<>&"']/g,
    (one) => names[one] ?? one,
  );
}
