/**
 * The HTTP proxy in front of a backend. It responds in bounded time, whatever the backend does. A request that could
 * not be delivered, or that exceeds the limit of requests at the backend, is stored durably before its client gets a
 * response.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { forwardedHeaders, idempotencyHeader, losesBody } from "../targets/backend_request.ts";
import { readRetryAfter } from "../targets/http_target.ts";
import { type RequestBody, RequestBodyReader } from "./request_body.ts";
import { RequestBudget } from "./request_budget.ts";
import type { StoreClient } from "../queue/store_methods.ts";
import { type FirstTry, mayBeStored, type MessageHead } from "../queue/stored_message.ts";
import { isRedirectionFollowed, outcomeOfStatus, type RetryRules } from "../targets/outcome.ts";
import type { HttpClient, HttpClientResponse, HttpSendResult } from "../../base/http/http_client.ts";
import {
  type HttpHeaders,
  httpHeaderValue,
  pairRawHttpHeaders,
  replaceHttpHeaders,
} from "../../base/http/http_headers.ts";
import { type HttpListener, type HttpListenerOptions, listenHttp } from "../../base/http/http_listener.ts";
import { type HttpRequestTarget, joinUrlPaths, requestTargetPath } from "../../base/http/request_target.ts";
import type { Address } from "../../base/sockets/connection.ts";
import type { Clock } from "../../base/support/clock.ts";
import { deadlineAfter } from "../../base/support/deadline.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { newGuid } from "../../base/support/guid.ts";
import { makeProxyFault, type ProxyFaultKind, type StoredMessageId } from "./fault_body.ts";
import { onAbort } from "../../base/support/abort.ts";

/** The response header that contains the ID of the stored message. */
const idHeader = "baton-message-id";

/** The time limit for the head of a request, in milliseconds. */
const headMsMax = 10_000;
/** The time for storing requests that were at the backend when the drain time ended, in milliseconds. */
const finalStoreMs = 2000;
/** The approximate memory that a request takes in addition to its head and body, in bytes. */
const requestBytes = 1024;
const headBytesMax = 64 << 10;

/** The methods that request no action (RFC 9110, 9.2.1). For such a request, there is nothing to do later. */
const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

interface RetryHttpProxyOptions {
  readonly client: HttpClient;
  readonly backend: HttpRequestTarget;
  readonly store: StoreClient;
  readonly rules: RetryRules;
  /** If true, also follows the redirections 301, 302 and 303, for requests that could be stored. */
  readonly follow: boolean;
  readonly timeoutMs: number;
  readonly bodyBytesMax: number;
  readonly bodyTimeoutMs: number;
  /**
   * The memory for all requests in progress, in bytes. It is at least twice `bodyBytesMax`, so that every request may
   * go to the backend.
   */
  readonly memoryBytes: number;
  /** The most requests at the backend. Further requests are stored without being tried. */
  readonly callsMax: number;
  readonly connectionsMax: number;
  /** The status of the response to a stored request that will be tried again; null for the status of the failure. */
  readonly storedStatus: number | null;
  readonly clock: Clock;
  /** Logs a stored message and the reason. `isTried` is true if it was tried. */
  readonly onStored: (id: string, why: string, isTried: boolean) => void;
  readonly onFailure: (why: string) => void;
  /** Reports that a client got only a part of a response. */
  readonly onCut: (why: string) => void;
  /** The function that listens; tests replace it. */
  readonly listen?: (address: Address, options: HttpListenerOptions) => Promise<ProxyListener>;
}

type ProxyListener = Pick<HttpListener, "address" | "stop" | "idle" | "close">;

interface ProxiedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: HttpHeaders;
  readonly body: Uint8Array;
  readonly reader: RequestBodyReader;
}

export class RetryHttpProxy {
  readonly #options: RetryHttpProxyOptions;
  readonly #budget: RequestBudget;
  /** Aborts when requests in progress have to end. */
  readonly #ending = new AbortController();
  #listener: ProxyListener | null = null;

  constructor(options: RetryHttpProxyOptions) {
    this.#options = options;
    const { memoryBytes, callsMax, clock, bodyBytesMax } = options;
    const requestBytesMax = bodyBytesMax + headBytesMax;
    this.#budget = new RequestBudget({ bytesMax: memoryBytes + 2 * headBytesMax, requestBytesMax, callsMax, clock });
  }

  /** Listens. Resolves with the actual address. Rejects with CANNOT_CREATE. */
  async listen(address: Address): Promise<Address> {
    const { connectionsMax, clock, listen = listenHttp } = this.#options;
    this.#listener = await listen(address, {
      onRequest: (request, response) => this.#serve(request, response),
      limits: { connectionsMax, headMsMax, headBytesMax: headBytesMax / 4 },
      makeRoom: () => this.#budget.refuseSlow(),
      halfOpen: true,
      clock,
    });
    return this.#listener.address;
  }

  /**
   * Accepts no new connections. Resolves when all requests in progress have a response. When `signal` aborts, requests
   * at the backend are stored, and incomplete requests are abandoned.
   */
  async close(signal: AbortSignal): Promise<void> {
    this.#listener?.stop();
    await this.#listener?.idle(signal);
    this.#ending.abort(new Error("the service is stopping"));
    using deadline = deadlineAfter(this.#options.clock, finalStoreMs, { reason: () => null });
    await this.#listener?.idle(deadline.signal);
    await this.#listener?.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { bodyBytesMax, bodyTimeoutMs, clock } = this.#options;
    const headers = pairRawHttpHeaders(request.rawHeaders);
    const reader = new RequestBodyReader(request, {
      budget: this.#budget,
      headBytes: requestBytes + headBytesOf(request, headers),
      bytesMax: bodyBytesMax,
      timeoutMs: bodyTimeoutMs,
      clock,
      ending: this.#ending.signal,
    });
    try {
      await this.#respond(request, response, headers, reader);
    } catch (error) {
      this.#options.onFailure(errorMessage(error));
      if (!response.headersSent) {
        respondFault(response, headers, { kind: "not_stored", why: "the service failed", stored: null });
      } else response.destroy();
    } finally {
      reader.release();
    }
  }

  async #respond(
    request: IncomingMessage,
    response: ServerResponse,
    headers: HttpHeaders,
    reader: RequestBodyReader,
  ): Promise<void> {
    const { backend } = this.#options;
    const path = requestTargetPath(request.url ?? "/");
    const method = request.method ?? "GET";
    const joined = path && joinUrlPaths(backend.path, path);
    if (path === null || joined === null) {
      const why = `the path ${request.url} cannot be forwarded`;
      return respondFault(response, headers, { kind: "bad_request", why, stored: null });
    }
    const coding = request.headers["transfer-encoding"] ?? "chunked";
    if (coding.toLowerCase() !== "chunked") {
      const why = `a body with the transfer coding ${coding} cannot be forwarded`;
      response.setHeader("connection", "close");
      return respondFault(response, headers, { kind: "bad_request", why, stored: null });
    }
    const read = await reader.read();
    if (read.kind !== "complete") return this.#refuseBody(response, headers, read);
    const { body } = read;
    if (losesBody(method, body)) {
      const why = `a ${method} request with a body cannot be forwarded: the body would be lost`;
      return respondFault(response, headers, { kind: "bad_request", why, stored: null });
    }
    // The key is stored, too. By the key, the backend can recognize all tries as the same message.
    const passed = forwardedHeaders(headers);
    const isKeyed = safeMethods.has(method) || httpHeaderValue(passed, idempotencyHeader) !== null;
    const keyed: HttpHeaders = isKeyed ? passed : [...passed, ["Idempotency-Key", newGuid()]];
    await this.#tryOrStore(response, { method, path, body, headers: keyed, reader }, joined);
  }

  #refuseBody(response: ServerResponse, headers: HttpHeaders, read: Exclude<RequestBody, { kind: "complete" }>): void {
    const { bodyBytesMax, bodyTimeoutMs } = this.#options;
    if (read.kind === "left") {
      const why = `a client disconnected before its request was complete, after ${read.bytes} bytes of the body`;
      throw new Error(`${why}; not stored: ${read.why}`);
    }
    const [kind, why] = ({
      too_large: ["too_large", `the body is longer than ${bodyBytesMax} bytes`],
      late: ["late", `the body did not arrive within ${formatDuration(bodyTimeoutMs)} (--body-timeout)`],
      no_memory: ["overloaded", "the requests in progress use all their memory (--body-memory)"],
      ending: ["overloaded", "the service is stopping"],
    } as const)[read.kind];
    response.setHeader("connection", "close");
    respondFault(response, headers, { kind, why, stored: null });
  }

  /** Tries a request, or stores it if too many requests are at the backend. */
  async #tryOrStore(response: ServerResponse, call: ProxiedRequest, path: string): Promise<void> {
    const { callsMax } = this.#options;
    const { share } = call.reader;
    if (!this.#budget.mayCall(share)) {
      const why = this.#budget.calls < callsMax
        ? "the requests at the backend use all their memory (--body-memory)"
        : `${callsMax} requests are at the backend (--max-backend-requests)`;
      return await this.#storeAndRespondFault(response, call, { kind: "overloaded", why, tried: null });
    }
    this.#budget.beginCall(share);
    await this.#passResponse(response, call, await this.#callBackend(path, call));
  }

  /**
   * Sends a request to the backend. Follows redirections only for requests that could be stored; clients follow the
   * others.
   */
  #callBackend(path: string, { method, headers, body }: ProxiedRequest): Promise<HttpSendResult> {
    const { client, backend, timeoutMs, rules, follow } = this.#options;
    return client.send({ origin: backend.origin, path, method, headers, body }, {
      timeoutMs,
      signal: this.#ending.signal,
      mayFollow: (status) => !safeMethods.has(method) && isRedirectionFollowed(status, rules, follow),
    });
  }

  async #passResponse(response: ServerResponse, call: ProxiedRequest, result: HttpSendResult): Promise<void> {
    if (result.kind !== "responded") {
      this.#budget.endCall(call.reader.share);
      if (isMalformed(result)) {
        const why = `the response of the backend is not valid: the request ${result.why}`;
        return respondFault(response, call.headers, { kind: "backend_failed", why, stored: null });
      }
      const [kind, why] = this.#ending.signal.aborted
        ? ["timed_out", "the service is stopping, and the backend has not responded yet"] as const
        : result.kind === "timed_out"
        ? ["timed_out", "the backend did not respond in time"] as const
        : ["unreachable", "the backend cannot be reached"] as const;
      return await this.#storeAndRespondFault(response, call, { kind, why, tried: temporaryFailure(result.why) });
    }
    try {
      await this.#passResult(response, call, result);
    } finally {
      result.done();
    }
  }

  async #passResult(response: ServerResponse, call: ProxiedRequest, result: HttpClientResponse): Promise<void> {
    const { status, headers, how } = result;
    let stored: StoredMessageId | null = null;
    if (outcomeOfStatus(status, this.#options.rules) === "retry" && !safeMethods.has(call.method)) {
      const tried = { ...temporaryFailure(how), retryAfterMs: readRetryAfter(headers) };
      const kept = await this.#store(call, tried, tried.error);
      if (kept.id === null) {
        const why = `the backend responded with ${status}; ${kept.why}`;
        return respondFault(response, call.headers, { kind: kept.kind, why, stored: null });
      }
      stored = kept;
      if (stored.isWaiting && this.#options.storedStatus !== null) {
        const why = `the backend responded with ${status}`;
        return this.#respondStored(response, call.headers, { kind: "backend_failed", why, stored });
      }
    }
    if (status < 200 || status > 999) {
      const why = `the backend responded with ${status}, which is no status of a response`;
      return respondFault(response, call.headers, { kind: "backend_failed", why, stored });
    }
    const added: HttpHeaders = stored === null ? [] : [[idHeader, stored.id]];
    const cut = await passResponse(response, result, { method: call.method, added, clock: this.#options.clock });
    if (cut !== null) this.#options.onCut(`the backend's response ${status} was interrupted: ${cut}`);
  }

  async #storeAndRespondFault(
    response: ServerResponse,
    call: ProxiedRequest,
    { kind, why, tried }: { readonly kind: ProxyFaultKind; readonly why: string; readonly tried: FirstTry | null },
  ): Promise<void> {
    if (safeMethods.has(call.method)) return respondFault(response, call.headers, { kind, why, stored: null });
    const stored = await this.#store(call, tried, tried?.error ?? `was skipped: ${why}`);
    if (stored.id === null) {
      return respondFault(response, call.headers, { kind: stored.kind, why: `${why}; ${stored.why}`, stored: null });
    }
    this.#respondStored(response, call.headers, { kind, why, stored });
  }

  #respondStored(
    response: ServerResponse,
    headers: HttpHeaders,
    fault: { readonly kind: ProxyFaultKind; readonly why: string; readonly stored: StoredMessageId },
  ): void {
    const { storedStatus } = this.#options;
    const status = fault.stored.isWaiting && storedStatus !== null ? { status: storedStatus } : {};
    respondFault(response, headers, { ...fault, ...status });
  }

  /** Stores the request. If the result has an ID, the message is durable. */
  async #store(
    { method, path, headers, body }: ProxiedRequest,
    tried: FirstTry | null,
    why: string,
  ): Promise<StoredMessageId | { readonly id: null; readonly kind: ProxyFaultKind; readonly why: string }> {
    const head: MessageHead = { kind: "http", method, path, headers };
    try {
      const [stored] = await this.#options.store.call("accept", [{ head, body, key: null, tried }], Date.now());
      if (stored === undefined) throw new BatonError("INTERNAL", "nothing was stored");
      this.#options.onStored(stored.id, why, tried !== null);
      return { id: stored.id, isWaiting: stored.life.state === "waiting" };
    } catch (error) {
      this.#options.onFailure(errorMessage(error));
      const code = error instanceof BatonError ? error.code : "INTERNAL";
      const isFull = code === "STORE_FULL";
      const kind = mayBeStored(error) ? "maybe_stored" : isFull ? "store_full" : "not_stored";
      const what = code === "OUTCOME_UNKNOWN" ? "did not respond" : isFull ? "is full" : "failed";
      return { id: null, kind, why: `the store ${what}` };
    }
  }
}

function isMalformed(result: HttpSendResult): boolean {
  return result.kind === "failed" && result.isMalformed;
}

function temporaryFailure(error: string): FirstTry {
  return { outcome: "retry", retryAfterMs: null, error };
}

function headBytesOf({ url = "" }: IncomingMessage, headers: HttpHeaders): number {
  return headers.reduce((sum, [name, value]) => sum + name.length + value.length, url.length);
}

function respondFault(
  response: ServerResponse,
  request: HttpHeaders,
  { kind, why, stored, status: given }: {
    readonly kind: ProxyFaultKind;
    readonly why: string;
    readonly stored: StoredMessageId | null;
    readonly status?: number;
  },
): void {
  const { status, contentType, body } = makeProxyFault(kind, why, stored, request, given);
  response.writeHead(status, {
    "content-type": contentType,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    // Sets retry-after only for a request that is not stored, because its client should send it again.
    ...(kind === "overloaded" && stored === null ? { "retry-after": "1" } : {}),
    ...(stored === null ? {} : { [idHeader]: stored.id }),
  });
  response.end(body);
}

/** The time in which a client must receive what was written, in milliseconds. */
const takeMsMax = 60_000;

interface BackendReply {
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Passes the response of a backend to a client, except for headers of the connection. Returns the reason why the
 * response is incomplete; null if it is complete or the client has left. After an incomplete response, closes the
 * connection, so that the client notices.
 */
async function passResponse(
  response: ServerResponse,
  { status, headers, body }: BackendReply,
  { method, added, clock }: { readonly method: string; readonly added: HttpHeaders; readonly clock: Clock },
): Promise<string | null> {
  const closed = new AbortController();
  response.once("close", () => closed.abort());
  const passed = passedHeaders(status, headers);
  response.writeHead(status, replaceHttpHeaders(passed, added).flat());
  const hasBody = method !== "HEAD" && status !== 204 && status !== 304;
  try {
    for await (const chunk of body) {
      if (hasBody && !response.write(chunk)) await drained(response, closed.signal, clock);
      if (closed.signal.aborted) return null;
    }
  } catch (error) {
    if (hasBody) {
      cutOff(response, passed.some(([name]) => name === "Content-Length"), clock);
      return errorMessage(error);
    }
  }
  response.once("close", clock.startTimer(takeMsMax, () => response.destroy()));
  response.end();
  return null;
}

/**
 * Returns the headers to pass, with the length of the body if the backend has sent it. Omits headers with invalid
 * names; invalid characters of values become "?".
 */
function passedHeaders(status: number, headers: HttpHeaders): HttpHeaders {
  const length = httpHeaderValue(headers, "content-length");
  const isChunked = httpHeaderValue(headers, "transfer-encoding") !== null;
  const keepsLength = length !== null && /^\d+$/.test(length) && !isChunked && status !== 204;
  const valid = forwardedHeaders(headers).filter(([name]) => /^[!#$%&'*+.^_`|~\w-]+$/.test(name))
    .map(([name, value]) => [name, value.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, "?")] as const);
  return [...valid, ...(keepsLength ? [["Content-Length", length] as const] : [])];
}

/**
 * Sends what was written, and closes the connection before the end of the body. The client thus notices that something
 * is missing.
 */
function cutOff(response: ServerResponse, hasLength: boolean, clock: Clock): void {
  const { socket, req } = response;
  if (socket === null) return void response.destroy();
  const cancel = clock.startTimer(takeMsMax, () => response.destroy());
  response.once("close", cancel);
  response.flushHeaders();
  // If there is no length, an HTTP/1.0 client takes the end of the connection for the end of the body. Its connection
  // is therefore reset.
  const isFramed = req.httpVersion !== "1.0" || hasLength;
  if (isFramed) socket.end(() => response.destroy());
  else socket.write("", () => socket.resetAndDestroy());
}

/**
 * Resolves when the client has received what was written, or has left. Closes the connection of a client that receives
 * nothing.
 */
function drained(response: ServerResponse, closed: AbortSignal, clock: Clock): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = clock.startTimer(takeMsMax, () => response.destroy());
  const off = onAbort(closed, () => resolve());
  response.once("drain", resolve);
  return promise.finally(() => {
    cancel();
    off();
    response.off("drain", resolve);
  });
}
