/** The fault that a caller gets at once: JSON, or a SOAP 1.1 fault for who speaks SOAP. Pure. */
import { headerOf, type HttpHeaders } from "../targets/backend_request.ts";

export type FaultKind =
  | "unreachable"
  | "timed_out"
  | "breaker_open"
  | "store_full"
  | "not_stored"
  | "overloaded"
  | "late"
  | "too_large"
  | "bad_request";

const statuses: Readonly<Record<FaultKind, number>> = {
  unreachable: 502,
  timed_out: 504,
  breaker_open: 503,
  store_full: 503,
  not_stored: 503,
  overloaded: 503,
  late: 408,
  too_large: 413,
  bad_request: 400,
};

export interface Fault {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

export interface StoredId {
  readonly id: string;
  /** It will be tried again; else it is dead already, as with no redeliveries at all. */
  readonly isWaiting: boolean;
}

/** `stored`: null: NOT stored. */
export function faultOf(kind: FaultKind, why: string, stored: StoredId | null, request: HttpHeaders): Fault {
  const status = statuses[kind];
  const id = stored?.id ?? null;
  const fate = stored === null
    ? "the message is NOT STORED"
    : `the message is stored as ${stored.id} and is ${stored.isWaiting ? "" : "not "}tried again`;
  const message = `${why}; ${fate}`;
  if (isSoap(request)) return { status, contentType: "text/xml; charset=utf-8", body: soapFault(kind, message, id) };
  const body = JSON.stringify({ version: 1, error: kind, message, stored: stored !== null, id });
  return { status, contentType: "application/json", body: `${body}\n` };
}

/** SOAP 1.1, section 6.1: who speaks it says SOAPAction; 1.2 has a type of its own. */
function isSoap(headers: HttpHeaders): boolean {
  const type = headerOf(headers, "content-type")?.toLowerCase() ?? "";
  return headerOf(headers, "soapaction") !== null || type.startsWith("application/soap+xml");
}

/** SOAP 1.1, section 4.4. What the caller sent is not to blame for what went wrong behind. */
function soapFault(kind: FaultKind, message: string, id: string | null): string {
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
  // deno-lint-ignore no-control-regex -- XML 1.0, section 2.2: they may not even be escaped
  return text.replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "?").replaceAll(
    /[<>&"']/g,
    (one) => names[one] ?? one,
  );
}
