/**
 * Serves HTTP with one function that takes a request and returns a response, which may be a stream such as server-sent
 * events. Limits the size and time of requests and responses. Owns the listener; http_listener.ts has the connections.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { errorMessage } from "../errors.ts";
import type { Address, TlsSource } from "../sockets/connection.ts";
import { anyAbortSignal, rejectOnAbort } from "../support/abort.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import { deadlineAfter } from "../support/deadline.ts";
import { formatDuration } from "../support/duration.ts";
import { HttpError } from "./http_error.ts";
import { type HttpListener, type HttpListenerLimits, listenHttp } from "./http_listener.ts";
import { HttpResponseStream, type HttpResponseStreamLimits } from "./response_stream.ts";

export interface HttpRequest {
  /** The method in upper case, such as GET. */
  readonly method: string;
  /** The path as the client sent it, not decoded and not normalized; without the query. Begins with "/". */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Aborts when the client has closed the connection, or the listener closes. */
  readonly signal: AbortSignal;
  /** Reads the whole body. Rejects with an HttpError: 413 if the body is too long, 408 if it is late. */
  readBody(): Promise<Uint8Array>;
}

export interface HttpResponse {
  readonly status: number;
  /**
   * The headers; names are in lower case. By default, cache-control is `no-store`, and a text has `content-type:
   * text/plain`.
   */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The body. A function writes the body as a stream, and the response ends when the function resolves; for HEAD the
   * function is not called.
   */
  readonly body?: string | Uint8Array | ((stream: HttpResponseStream) => Promise<void>);
}

export interface HttpServiceLimits extends HttpListenerLimits, HttpResponseStreamLimits {
  readonly bodyBytesMax: number;
  /** How long a request's body may take to arrive, in milliseconds. */
  readonly bodyMsMax: number;
  readonly handleMsMax: number;
}

export interface HttpServiceOptions {
  /**
   * Makes the response to a request. If it throws an HttpError, the response has that error's status and message; other
   * errors give status 500.
   */
  readonly handle: (request: HttpRequest) => HttpResponse | Promise<HttpResponse>;
  readonly limits?: Partial<HttpServiceLimits> | undefined;
  readonly tls?: TlsSource | undefined;
  readonly clock?: Clock | undefined;
  /** The caller's action, for an error message: "serve /metrics on :80". */
  readonly action?: string | undefined;
  /**
   * Called if sending a response fails, except when the client has closed its connection.
   */
  readonly onFailure?: ((error: unknown) => void) | undefined;
}

export interface HttpService extends AsyncDisposable {
  /** The actual address: port 0 is replaced by the port that the system chose. */
  readonly address: Address;
  /** Ends streams, waits up to 1 s until other responses are sent, and closes all connections. */
  close(): Promise<void>;
}

/** The default limits. `handle` has the time that Prometheus waits for a scrape. */
const pageLimits = {
  bodyBytesMax: 64 << 10,
  bodyMsMax: 5000,
  handleMsMax: 10_000,
  sendMsMax: 5000,
  unsentBytesMax: 1 << 20,
};
const closeMsMax = 1000;

/** Listens on `address`. Rejects with CANNOT_CREATE. */
export async function serveHttp(address: Address, options: HttpServiceOptions): Promise<HttpService> {
  const { clock = systemClock(), tls, action } = options;
  const limits = { ...pageLimits, ...options.limits };
  const ending = new AbortController();
  const listener = await listenHttp(address, {
    tls,
    clock,
    action,
    limits: options.limits,
    onRequest: (request, response) =>
      new Exchange(request, response, { ...options, clock, limits, ending: ending.signal }).run(),
  });
  const close = () => closeService(listener, ending, clock);
  return { address: listener.address, close, [Symbol.asyncDispose]: close };
}

async function closeService(listener: HttpListener, ending: AbortController, clock: Clock): Promise<void> {
  listener.stop();
  ending.abort(new Error("the service is stopping"));
  using deadline = deadlineAfter(clock, closeMsMax, { reason: () => null });
  await listener.idle(deadline.signal);
  await listener.close();
}

interface ExchangeOptions extends HttpServiceOptions {
  readonly clock: Clock;
  readonly limits: Omit<HttpServiceLimits, keyof HttpListenerLimits>;
  readonly ending: AbortSignal;
}

class Exchange {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #options: ExchangeOptions;
  readonly #connection = new AbortController();
  readonly #signal: AbortSignal;

  constructor(request: IncomingMessage, response: ServerResponse, options: ExchangeOptions) {
    this.#request = request;
    this.#response = response;
    this.#options = options;
    this.#signal = anyAbortSignal(this.#connection.signal, options.ending);
    response.once("close", () => this.#connection.abort(new Error("the client closed the connection")));
    // Ignores errors, because "close" reports the end of the connection.
    request.on("error", () => {});
    response.on("error", () => {});
  }

  /** Handles the request and sends the response. A failure is given to `onFailure` and does not reject. */
  async run(): Promise<void> {
    const response = await this.#handle();
    try {
      await this.#send(response);
    } catch (error) {
      if (!this.#connection.signal.aborted) this.#options.onFailure?.(error);
      this.#response.destroy();
    }
  }

  async #handle(): Promise<HttpResponse> {
    const { clock, limits, handle } = this.#options;
    const late = new HttpError(503, `there was no response within ${formatDuration(limits.handleMsMax)}`);
    try {
      using deadline = deadlineAfter(clock, limits.handleMsMax, { reason: () => late });
      return await rejectOnAbort(Promise.resolve(handle(this.#describe())), deadline.signal);
    } catch (error) {
      const status = error instanceof HttpError ? error.status : this.#options.ending.aborted ? 503 : 500;
      return { status, body: `${errorMessage(error)}\n` };
    }
  }

  /**
   * Throws an HttpError if the request's target is not a path, such as `*` or a whole URL, which only proxies accept.
   */
  #describe(): HttpRequest {
    const { method = "GET", url = "/", headers } = this.#request;
    if (!url.startsWith("/")) throw new HttpError(400, `"${url}" is not a path`);
    const at = url.indexOf("?");
    return {
      method,
      headers,
      path: at < 0 ? url : url.slice(0, at),
      query: new URLSearchParams(at < 0 ? "" : url.slice(at + 1)),
      signal: this.#signal,
      readBody: () => this.#readBody(),
    };
  }

  async #readBody(): Promise<Uint8Array> {
    const { clock, limits: { bodyBytesMax, bodyMsMax } } = this.#options;
    const tooLarge = new HttpError(413, `the body is longer than ${bodyBytesMax} bytes`);
    const request = this.#request;
    if (Number(request.headers["content-length"] ?? 0) > bodyBytesMax) throw tooLarge;
    const late = new HttpError(408, `the body did not arrive within ${formatDuration(bodyMsMax)}`);
    using deadline = deadlineAfter(clock, bodyMsMax, { reason: () => late, signal: this.#signal });
    const chunks: Uint8Array[] = [];
    const read = Promise.withResolvers<void>();
    let bytes = 0;
    const onData = (chunk: Uint8Array) => {
      bytes += chunk.byteLength;
      if (bytes > bodyBytesMax) read.reject(tooLarge);
      else chunks.push(chunk);
    };
    request.on("end", read.resolve).on("data", onData);
    try {
      await rejectOnAbort(read.promise, deadline.signal);
    } finally {
      request.off("end", read.resolve).off("data", onData).pause();
    }
    return Buffer.concat(chunks);
  }

  async #send({ status, headers = {}, body = "" }: HttpResponse): Promise<void> {
    const response = this.#response;
    const { clock, limits, ending } = this.#options;
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    const isStream = typeof bytes === "function";
    response.writeHead(status, {
      "cache-control": "no-store",
      ...(typeof body === "string" && body !== "" ? { "content-type": "text/plain; charset=utf-8" } : {}),
      ...headers,
      ...(isStream || status === 204 || status === 304 ? {} : { "content-length": bytes.byteLength }),
      ...(this.#leavesBody() || ending.aborted ? { connection: "close" } : {}),
    });
    const stream = new HttpResponseStream(response, { connection: this.#connection, ending, limits, clock });
    if (this.#request.method !== "HEAD") {
      if (!isStream) await stream.writeAll(bytes);
      else await bytes(stream).catch((error) => this.#endStream(error));
    }
    await stream.end();
  }

  /**
   * Reports why a stream has failed. Ignores the error if the listener has ended the stream: the response then ends
   * normally for the client.
   */
  #endStream(error: unknown): void {
    if (!this.#options.ending.aborted || this.#connection.signal.aborted) throw error;
  }

  /**
   * Returns true if part of the request's body is unread. The connection must then close, because the listener would
   * take the rest for the next request.
   */
  #leavesBody(): boolean {
    const { headers, complete } = this.#request;
    const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
    return hasBody && !complete;
  }
}
