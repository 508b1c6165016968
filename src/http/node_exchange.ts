/**
 * Sends requests with node:http and node:https, which behave alike under Bun, Deno and Node.js. A name is looked up for each new
 * connection. Loaded when a request is sent.
 */
import http, { type ClientRequest, type IncomingMessage } from "node:http";
import https from "node:https";
import { messageOf } from "../errors.ts";
import { clientTls } from "../sockets/client_tls.ts";
import type { TlsOptions } from "../sockets/connection.ts";
import { describeFailure } from "../sockets/describe_failure.ts";
import { isIpLiteral } from "../sockets/resolve_host.ts";
import { onAbort } from "../support/abort.ts";
import { printable } from "../support/text.ts";
import { BodyStream } from "./body_stream.ts";
import { ExchangeError, type HttpExchangeOptions, type HttpReply, type OutgoingRequest } from "./http_exchange.ts";
import { headerPairs, headerValue, type HttpHeaders } from "./http_headers.ts";
import { type ProxyChoice, type ProxyEnvironment, proxyFor } from "./proxy_choice.ts";

/** The time that a connection without a request is kept: shorter than servers keep it, so that they do not close it first. Milliseconds. */
const idleMsMax = 1000;
/** Maximum size of the status and the headers of a response. Bytes. */
const headBytesMax = 256 << 10;
/** Methods whose requests say nothing of a body that they do not have. */
const bodilessMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "DELETE", "TRACE"]);

export interface NodeExchangeOptions {
  readonly env: ProxyEnvironment;
  /** Called for each new connection. Throws if it cannot be opened. */
  readonly tls: () => TlsOptions;
}

export class NodeExchange {
  readonly #options: NodeExchangeOptions;
  // Deno repeats a request when an earlier connection breaks: one try would become two.
  readonly #mayReuse = !("Deno" in globalThis);
  #agents = new Map<string, http.Agent>();

  constructor(options: NodeExchangeOptions) {
    this.#options = options;
  }

  /** See HttpExchange. */
  async send(request: OutgoingRequest, options: HttpExchangeOptions): Promise<HttpReply> {
    const { protocol, hostname } = new URL(request.origin);
    const isTls = protocol === "https:";
    let proxy: ProxyChoice | null = null;
    try {
      proxy = proxyFor(request.origin, this.#options.env);
      const tls = isTls ? this.#tlsOf(hostname, options) : {};
      if (isTls && proxy !== null) {
        const socket = await openTunnel(proxy, request.origin, options.signal);
        return await exchange(https, { ...tls, agent: false, socket }, request, options, { proxy });
      }
      const isReused = options.mayReuse && options.isSameHost && this.#mayReuse;
      const agent = isReused ? this.#agentFor(protocol) : false;
      const renew = () => this.#closeIdle(protocol);
      return await exchange(isTls ? https : http, { ...tls, agent }, request, options, { proxy, renew });
    } catch (error) {
      if (options.signal.aborted) throw options.signal.reason;
      const { isMalformed = false } = error instanceof ExchangeError ? error : {};
      const through = proxy === null ? "" : `through ${proxy.name}: `;
      throw new ExchangeError(`${through}${whyFailed(error, isTls)}`, { cause: error, isMalformed });
    }
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
    this.#agents.clear();
  }

  #tlsOf(hostname: string, { isSameHost }: HttpExchangeOptions): https.RequestOptions {
    const host = hostname.replace(/^\[|\]$/g, "");
    const { ca, cert, key } = this.#options.tls();
    const own = isSameHost && cert !== undefined && key !== undefined ? { cert, key } : {};
    return { ...clientTls({ ...(ca === undefined ? {} : { ca }), ...own }), servername: isIpLiteral(host) ? "" : host };
  }

  #agentFor(protocol: string): http.Agent {
    const found = this.#agents.get(protocol);
    if (found !== undefined) return found;
    const { Agent } = protocol === "https:" ? https : http;
    const agent = new Agent({ keepAlive: true, maxFreeSockets: 256, timeout: idleMsMax });
    this.#agents.set(protocol, agent);
    return agent;
  }

  /** Called when a connection was lost: others may lead to the same address, and the name may have another one now. */
  #closeIdle(protocol: string): void {
    for (const sockets of Object.values(this.#agents.get(protocol)?.freeSockets ?? {})) {
      for (const socket of sockets ?? []) socket.destroy();
    }
  }
}

type ConnectionSettings = https.RequestOptions & { readonly socket?: IncomingMessage["socket"] };

/** Opens a tunnel for TLS. Its connection is closed with the request that uses it. */
function openTunnel(proxy: ProxyChoice, origin: string, signal: AbortSignal): Promise<IncomingMessage["socket"]> {
  const { hostname, port } = new URL(origin);
  const place = `${hostname}:${port || 443}`;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage["socket"]>();
  const login = proxy.authorization === null ? [] : ["Proxy-Authorization", proxy.authorization];
  const asked = http.request({
    ...{ host: proxy.host, port: proxy.port, method: "CONNECT", path: place, agent: false },
    headers: ["Host", place, "User-Agent", "baton", ...login],
  });
  const off = onAbort(signal, (reason) => {
    asked.destroy();
    reject(reason);
  });
  const refuse = (status: number | undefined) =>
    reject(new Error(`the tunnel to ${place} was refused: status ${status}`));
  asked.on("error", reject);
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

/** Sends the request, and resolves with the status and the headers. `renew`: called when a connection was lost. */
function exchange(
  { request: open }: typeof http | typeof https,
  connection: ConnectionSettings,
  request: OutgoingRequest,
  { signal }: HttpExchangeOptions,
  { proxy, renew = () => {} }: { readonly proxy: ProxyChoice | null; readonly renew?: () => void },
): Promise<HttpReply> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpReply>();
  const { hostname, port, protocol } = new URL(request.origin);
  const isForwarded = proxy !== null && protocol === "http:";
  const sent = open({
    ...connection,
    host: isForwarded ? proxy.host : hostname.replace(/^\[|\]$/g, ""),
    port: isForwarded ? proxy.port : port || (protocol === "https:" ? 443 : 80),
    path: isForwarded ? `${request.origin}${request.path}` : request.path,
    method: request.method,
    headers: headersOf(request, { isReused: connection.agent !== false, proxy: isForwarded ? proxy : null }).flat(),
    maxHeaderSize: headBytesMax,
    // Accepts what other clients accept: line ends without CR, control characters in a header.
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
    const received = new BodyStream(message, off);
    body = received;
    const [status, headers] = [message.statusCode ?? 0, headerPairs(message.rawHeaders)];
    resolve({ status, headers, proxy: name, body, abandon: () => received.abandon() });
  });
  sent.on("upgrade", (message: IncomingMessage, socket) => {
    off();
    socket.destroy();
    resolve({ ...emptyReply(message.statusCode ?? 0, headerPairs(message.rawHeaders), null), proxy: name });
  });
  let firstBytes: unknown = null;
  sent.once("socket", (socket) => socket.once("data", (chunk: unknown) => firstBytes = chunk));
  sent.on("error", (error: Error & { readonly rawPacket?: unknown }) => {
    renew();
    if (body !== null) return body.noteFailure(error);
    off();
    const status = statusIn(error.rawPacket) ?? statusIn(firstBytes);
    if (typeof status === "number") resolve({ ...emptyReply(status, [], error), proxy: name });
    else {reject(
        status === null
          ? error
          : new ExchangeError(`got the status "${status}", which is no number of three digits`, { isMalformed: true }),
      );}
  });
  sendBody(sent, request);
  return promise;
}

function sendBody(sent: ClientRequest, { body }: OutgoingRequest): void {
  if (body.byteLength > 0) sent.end(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  else sent.end();
}

function headersOf(
  { origin, method, headers, body }: OutgoingRequest,
  { isReused, proxy }: { readonly isReused: boolean; readonly proxy: ProxyChoice | null },
): HttpHeaders {
  const hasLength = body.byteLength > 0 || !bodilessMethods.has(method);
  return [
    ["Host", new URL(origin).host],
    ...headers,
    ...(headerValue(headers, "user-agent") === null ? [["User-Agent", "baton"] as const] : []),
    ...(hasLength ? [["Content-Length", String(body.byteLength)] as const] : []),
    ["Connection", isReused ? "keep-alive" : "close"],
    ...(proxy?.authorization ? [["Proxy-Authorization", proxy.authorization] as const] : []),
  ];
}

/** A response of which only the status is known. `error`: why its body cannot be read; null: it has none. */
function emptyReply(status: number, headers: HttpHeaders, error: unknown): Omit<HttpReply, "proxy"> {
  const next = () =>
    error === null ? Promise.resolve({ done: true, value: undefined } as const) : Promise.reject(error);
  return { status, headers, body: { [Symbol.asyncIterator]: () => ({ next }) }, abandon: () => {} };
}

/** The status of a response whose head cannot be read: a number, a text that is no status, or null if nothing is known. */
function statusIn(bytes: unknown): number | string | null {
  if (!(bytes instanceof Uint8Array)) return null;
  const [, status = null] = /^HTTP\/\d(?:\.\d)? +(?!1\d\d )([^ \r\n]*)/m.exec(Buffer.from(bytes).toString("latin1")) ??
    [];
  return status !== null && /^\d{3}$/.test(status) ? Number(status) : status && printable(status);
}

/** The reason without hints for programmers. */
function whyFailed(error: unknown, isTls: boolean): string {
  const code = String((error as NodeJS.ErrnoException).code ?? "");
  if (code.startsWith("HPE_")) return "the response is not HTTP";
  if (/^(?:ERR_TLS_CERT|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code)) {
    return `the certificate is refused: ${messageOf(error)}; --url-ca FILE names the authorities to trust`;
  }
  if (code === "EPROTO" || code.startsWith("ERR_SSL_WRONG_VERSION")) {
    return `${messageOf(error)}; does this port use TLS?`;
  }
  return describeFailure(error, isTls ? { tls: {} } : {});
}
