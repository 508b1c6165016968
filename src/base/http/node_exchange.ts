/**
 * Sends requests with node:http and node:https, which behave alike under Bun, Deno and Node.js. Resolves the host name
 * again for each new connection. Loaded only when a request is sent.
 */
import http, { type ClientRequest, type IncomingMessage } from "node:http";
import https from "node:https";
import { errorMessage } from "../errors.ts";
import { clientTlsOptions } from "../sockets/client_tls.ts";
import type { TlsOptions } from "../sockets/connection.ts";
import { describeSocketFailure } from "../sockets/describe_failure.ts";
import { isIpLiteral } from "../sockets/resolve_host.ts";
import { onAbort } from "../support/abort.ts";
import { printable } from "../support/text.ts";
import {
  HttpExchangeError,
  type HttpExchangeOptions,
  type HttpReply,
  type OutgoingHttpRequest,
} from "./http_exchange.ts";
import { type HttpHeaders, httpHeaderValue, pairRawHttpHeaders } from "./http_headers.ts";
import { chooseHttpProxy, type ProxyChoice, type ProxyEnvironment } from "./proxy_choice.ts";

/**
 * How long an idle connection is kept, in milliseconds. Servers keep connections longer, so the client closes first.
 */
const idleMsMax = 1000;
/** The most bytes that a response's status and headers may have together. */
const headBytesMax = 256 << 10;
/** Methods whose requests have no Content-Length if they have no body. */
const bodilessMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "DELETE", "TRACE"]);

export interface NodeHttpExchangeOptions {
  readonly env: ProxyEnvironment;
  /**
   * Returns the TLS options of a new connection. Throws if the TLS files cannot be used. Null if the user cannot set
   * TLS options.
   */
  readonly tls: (() => TlsOptions) | null;
}

/** Where requests to one origin are sent. */
interface RequestRoute {
  readonly isTls: boolean;
  /** The host name or address, without the brackets of IPv6. */
  readonly host: string;
  readonly port: number;
  readonly hostHeader: string;
  readonly proxy: ProxyChoice | null;
}

const routesMax = 1000;

export class NodeHttpExchange {
  readonly #options: NodeHttpExchangeOptions;
  // Deno silently repeats a request if a reused connection breaks, so one attempt would become two.
  readonly #mayReuse = !("Deno" in globalThis);
  readonly #agents = new Map<boolean, http.Agent>();
  readonly #routes = new Map<string, RequestRoute>();

  constructor(options: NodeHttpExchangeOptions) {
    this.#options = options;
  }

  async send(request: OutgoingHttpRequest, options: HttpExchangeOptions): Promise<HttpReply> {
    let route: RequestRoute | null = null;
    try {
      route = this.#routeTo(request.origin);
      const { isTls, proxy } = route;
      const tls = isTls ? this.#tlsOf(route, options) : {};
      if (isTls && proxy !== null) {
        const socket = await openTunnel(proxy, route, options.signal);
        return await exchange({ ...tls, agent: false, socket }, route, request, options);
      }
      const agent = options.mayReuse && options.isSameHost && this.#mayReuse ? this.#agentFor(isTls) : false;
      return await exchange({ ...tls, agent }, route, request, options, () => this.#closeIdle(isTls));
    } catch (error) {
      const { isTls = false, proxy = null } = route ?? {};
      if (options.signal.aborted && proxy === null) throw options.signal.reason;
      const { isMalformed = false } = error instanceof HttpExchangeError ? error : {};
      const through = proxy === null ? "" : `through ${proxy.name}: `;
      throw new HttpExchangeError(`${through}${whyFailed(error, isTls, this.#options.tls !== null)}`, {
        cause: error,
        isMalformed,
      });
    }
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
    this.#agents.clear();
  }

  /** Finds the route to an origin. Throws CONFIG if a proxy variable is invalid. */
  #routeTo(origin: string): RequestRoute {
    const known = this.#routes.get(origin);
    if (known !== undefined) return known;
    const { protocol, hostname, port, host: hostHeader } = new URL(origin);
    const isTls = protocol === "https:";
    const route = {
      isTls,
      hostHeader,
      host: hostname.replace(/^\[|\]$/g, ""),
      port: Number(port || (isTls ? 443 : 80)),
      proxy: chooseHttpProxy(origin, this.#options.env),
    };
    if (this.#routes.size >= routesMax) this.#routes.clear();
    this.#routes.set(origin, route);
    return route;
  }

  #tlsOf({ host }: RequestRoute, { isSameHost }: HttpExchangeOptions): https.RequestOptions {
    const { ca, cert, key } = this.#options.tls?.() ?? {};
    const own = isSameHost && cert !== undefined && key !== undefined ? { cert, key } : {};
    return {
      ...clientTlsOptions({ ...(ca === undefined ? {} : { ca }), ...own }),
      servername: isIpLiteral(host) ? "" : host,
    };
  }

  #agentFor(isTls: boolean): http.Agent {
    const found = this.#agents.get(isTls);
    if (found !== undefined) return found;
    const { Agent } = isTls ? https : http;
    const agent = new Agent({ keepAlive: true, maxFreeSockets: 256, timeout: idleMsMax });
    this.#agents.set(isTls, agent);
    return agent;
  }

  /**
   * Closes the idle connections. Called after a connection was lost, because the host name may now have another
   * address.
   */
  #closeIdle(isTls: boolean): void {
    for (const sockets of Object.values(this.#agents.get(isTls)?.freeSockets ?? {})) {
      for (const socket of sockets ?? []) socket.destroy();
    }
  }
}

type ConnectionSettings = https.RequestOptions & { readonly socket?: IncomingMessage["socket"] };

/** Opens a tunnel through the proxy for a TLS connection. Each tunnel serves one request. */
function openTunnel(
  proxy: ProxyChoice,
  { host, port }: RequestRoute,
  signal: AbortSignal,
): Promise<IncomingMessage["socket"]> {
  const place = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage["socket"]>();
  const login = proxy.authorization === null ? [] : ["Proxy-Authorization", proxy.authorization];
  const asked = http.request({
    host: proxy.host,
    port: proxy.port,
    method: "CONNECT",
    path: place,
    agent: false,
    headers: ["Host", place, "User-Agent", "baton", ...login],
  });
  const off = onAbort(signal, (reason) => {
    asked.destroy();
    reject(reason);
  });
  const refuse = (status: number | undefined) =>
    reject(new Error(`the tunnel to ${place} was refused: status ${status}`));
  asked.on("error", (error) => {
    reject(new Error(`the tunnel to ${place} was not opened: ${whyFailed(error, false, false)}`, { cause: error }));
  });
  asked.on("response", ({ statusCode }) => {
    asked.destroy();
    refuse(statusCode);
  });
  asked.on("connect", ({ statusCode = 0 }, socket, head) => {
    if (statusCode < 200 || statusCode >= 300 || head.byteLength > 0) {
      socket.destroy();
      refuse(statusCode);
    } else resolve(socket);
  });
  asked.end();
  return promise.finally(off);
}

/** Sends the request. Resolves when status and headers have arrived. Calls `renew` if the connection is lost. */
function exchange(
  connection: ConnectionSettings,
  { isTls, host, port, hostHeader, proxy }: RequestRoute,
  request: OutgoingHttpRequest,
  { signal }: HttpExchangeOptions,
  renew: () => void = () => {},
): Promise<HttpReply> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpReply>();
  const forwarder = isTls ? null : proxy;
  const sent = (isTls ? https : http).request({
    ...connection,
    host: forwarder?.host ?? host,
    port: forwarder?.port ?? port,
    path: forwarder === null ? request.path : `${request.origin}${request.path}`,
    method: request.method,
    headers: headersOf(request, { hostHeader, isReused: connection.agent !== false, proxy: forwarder }),
    maxHeaderSize: headBytesMax,
    // Accepts invalid responses that other HTTP clients accept: line ends without CR, control characters in headers.
    insecureHTTPParser: true,
  });
  sent.maxHeadersCount = 0;
  let body: BodyStream | null = null;
  const off = onAbort(signal, (reason) => {
    reject(reason);
    body?.fail(reason);
    sent.destroy();
  });
  const name = proxy?.name ?? null;
  sent.on("response", (message) => {
    // The proxy refused the request, not the server; a later attempt may use another login.
    if (forwarder !== null && message.statusCode === 407) {
      off();
      sent.destroy();
      return reject(new Error("the request was refused: status 407"));
    }
    const received = new BodyStream(message, off);
    body = received;
    const status = message.statusCode ?? 0;
    const headers = pairRawHttpHeaders(message.rawHeaders);
    resolve({ status, headers, proxy: name, body, abandon: () => received.abandon() });
  });
  sent.on("upgrade", (message: IncomingMessage, socket) => {
    off();
    socket.destroy();
    resolve({ ...emptyReply(message.statusCode ?? 0, pairRawHttpHeaders(message.rawHeaders), null), proxy: name });
  });
  const head: Uint8Array[] = [];
  sent.once("socket", (socket) => {
    const keep = (chunk: Uint8Array) => void head.push(chunk);
    socket.on("data", keep);
    sent.once("response", () => socket.off("data", keep));
  });
  sent.on("error", (error: Error & { readonly rawPacket?: Uint8Array }) => {
    renew();
    if (body !== null) return body.noteFailure(describeError(error));
    off();
    const status = statusIn(Buffer.concat([...head, error.rawPacket ?? new Uint8Array()]));
    // A response with a status of 3xx whose headers cannot be read has no known target.
    if (status === null || (typeof status === "number" && status >= 300 && status < 400)) return reject(error);
    if (typeof status === "number") return resolve({ ...emptyReply(status, [], describeError(error)), proxy: name });
    const what = `got the status "${status}", which is no number of three digits`;
    reject(new HttpExchangeError(what, { isMalformed: true }));
  });
  sendBody(sent, request);
  return promise;
}

function sendBody(sent: ClientRequest, { body }: OutgoingHttpRequest): void {
  if (body.byteLength > 0) sent.end(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  else sent.end();
}

/** Returns the headers as node:http takes them: a list of alternating names and values. */
function headersOf(
  { method, headers, body }: OutgoingHttpRequest,
  { hostHeader, isReused, proxy }: {
    readonly hostHeader: string;
    readonly isReused: boolean;
    readonly proxy: ProxyChoice | null;
  },
): string[] {
  const lines = ["Host", hostHeader];
  for (const [name, value] of headers) lines.push(name, value);
  if (httpHeaderValue(headers, "user-agent") === null) lines.push("User-Agent", "baton");
  if (body.byteLength > 0 || !bodilessMethods.has(method)) lines.push("Content-Length", String(body.byteLength));
  lines.push("Connection", isReused ? "keep-alive" : "close");
  if (proxy?.authorization) lines.push("Proxy-Authorization", proxy.authorization);
  return lines;
}

/**
 * Returns a response without bytes. If `error` is null, its body is empty; otherwise reading the body throws `error`.
 */
function emptyReply(status: number, headers: HttpHeaders, error: unknown): Omit<HttpReply, "proxy"> {
  const next = () =>
    error === null ? Promise.resolve({ done: true, value: undefined } as const) : Promise.reject(error);
  return { status, headers, body: { [Symbol.asyncIterator]: () => ({ next }) }, abandon: () => {} };
}

/**
 * Finds the status in a response's head that the parser has rejected. Returns a number; a text if the status is not
 * three digits; null if there is no status.
 */
function statusIn(head: Buffer): number | string | null {
  const [, status = null] = /^HTTP\/\d(?:\.\d)? +(?!1\d\d[ \r\n])([^ \r\n]*)[ \r\n]/m.exec(head.toString("latin1")) ??
    [];
  return status !== null && /^\d{3}$/.test(status) ? Number(status) : status && printable(status);
}

function describeError(error: Error): Error {
  return new Error(describeSocketFailure(error), { cause: error });
}

function whyFailed(error: unknown, isTls: boolean, hasOptions: boolean): string {
  const code = String((error as NodeJS.ErrnoException).code ?? "");
  if (code.startsWith("HPE_")) return "the response is not HTTP";
  const isUnknown = /^(?:DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code);
  if (isUnknown || /^(?:ERR_TLS_CERT|CERT_)/.test(code)) {
    const hint = isUnknown && hasOptions ? "; --url-ca FILE names the authorities to trust" : "";
    return `the certificate is refused: ${errorMessage(error)}${hint}`;
  }
  const [, alert = null] = /alert[ _]((?:[a-z]+[ _]?)+)/i.exec(errorMessage(error)) ?? [];
  if (isTls && alert !== null) {
    const about = alert.replaceAll("_", " ").trim().toLowerCase();
    const hint = hasOptions && /cert|unknown ca/.test(about) ? "; --url-cert FILE is the certificate to show" : "";
    return `the server refused the TLS connection: ${about}${hint}`;
  }
  if (code === "ERR_SOCKET_CLOSED") return "connection reset";
  if (code === "EPROTO" || code.startsWith("ERR_SSL_WRONG_VERSION")) {
    return `${errorMessage(error)}; does this port use TLS?`;
  }
  return describeSocketFailure(error, isTls ? { tls: {} } : {});
}

/** The most bytes that are read from the network before the reader asks for them. */
const aheadBytesMax = 256 << 10;

/**
 * The body of a response, as it arrives. If the body is cut off, the reader gets all bytes that arrived, then the
 * error. If the sender is faster than the reader, the sender has to wait.
 */
class BodyStream implements AsyncIterable<Uint8Array> {
  readonly #message: IncomingMessage;
  readonly #onEnd: () => void;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  /** Null while more bytes may arrive; "end" when the body is complete; the error if it was cut off. */
  #end: "end" | { readonly error: unknown } | null = null;
  #wake: () => void = () => {};
  #why: Error | null = null;

  /** Calls `onEnd` once, when no further bytes can arrive. */
  constructor(message: IncomingMessage, onEnd: () => void) {
    this.#message = message;
    this.#onEnd = onEnd;
    message.on("data", (chunk: Uint8Array) => this.#receive(chunk));
    const broken = () => this.fail(this.#why ?? new Error("the connection was closed"));
    const { "content-length": length, "transfer-encoding": coding } = message.headers;
    const endsWithConnection = length === undefined && coding === undefined;
    const isCut = () => !message.complete || (endsWithConnection && this.#why !== null);
    message.on("end", () => isCut() ? broken() : this.#settle("end")).on("error", broken).on("close", broken);
  }

  /** Sets the error with which the body will end early. The reader first gets the bytes that have arrived. */
  noteFailure(error: Error): void {
    this.#why = error;
  }

  /** Ends the body with this error, unless it has already ended. */
  fail(error: unknown): void {
    this.#settle({ error });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const chunk = this.#chunks.shift();
        if (chunk !== undefined) {
          this.#bytes -= chunk.byteLength;
          if (this.#bytes <= aheadBytesMax / 2) this.#message.resume();
          yield chunk;
        } else if (this.#end === "end") return;
        else if (this.#end !== null) throw this.#end.error;
        else await new Promise<void>((resolve) => this.#wake = resolve);
      }
    } finally {
      this.abandon();
    }
  }

  /** Closes the connection unless the whole body was read. */
  abandon(): void {
    if (this.#end !== "end" || this.#chunks.length > 0) this.#message.destroy();
  }

  #receive(chunk: Uint8Array): void {
    if (this.#end !== null) return;
    this.#chunks.push(chunk);
    if ((this.#bytes += chunk.byteLength) > aheadBytesMax) this.#message.pause();
    this.#wake();
  }

  #settle(end: "end" | { readonly error: unknown }): void {
    if (this.#end !== null) return;
    this.#end = end;
    this.#wake();
    this.#onEnd();
  }
}
