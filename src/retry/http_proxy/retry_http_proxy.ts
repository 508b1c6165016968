/**
 * The HTTP proxy in front of a backend. It responds in bounded time, whatever the backend does: a request that could not be delivered is
 * stored durably before the client gets its response, and so is a request above the limit of requests at the backend. Owns the listener.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { BatonError, messageOf } from "../../errors.ts";
import {
  backendUrl,
  forwardedHeaders,
  headerValue,
  type HttpHeaders,
  idempotencyHeader,
  losesBody,
  parseRetryAfter,
} from "../targets/backend_request.ts";
import { type BackendResponse, callBackend, replaceHeaders } from "../targets/http_target.ts";
import { type RequestBody, RequestReader } from "./request_body.ts";
import { RequestBudget } from "./request_budget.ts";
import type { TrySpan } from "../targets/try_span.ts";
import type { StoreClient } from "../queue/store_methods.ts";
import type { FirstTry, MessageHead } from "../queue/stored_message.ts";
import { outcomeOfStatus, type RetryRules } from "../targets/outcome.ts";
import { type HttpListener, type HttpListenerOptions, listenHttp } from "../../http/http_listener.ts";
import type { Address } from "../../sockets/connection.ts";
import type { Clock } from "../../support/clock.ts";
import { deadlineAfter } from "../../support/deadline.ts";
import { whyNotSent } from "../../support/fetch_failure.ts";
import { formatDuration } from "../../support/duration.ts";
import { newGuid } from "../../support/guid.ts";
import { type FaultKind, makeFault, type StoredId } from "./fault_body.ts";

/** The response header with the id of the stored message. */
const idHeader = "baton-message-id";

/** Time limit for the head of a request. Milliseconds. */
const headMsMax = 10_000;
/** Time for storing requests that were at the backend when the drain time ended. Milliseconds. */
const finalStoreMs = 2000;
/** Approximate memory of a request besides its head and body. */
const requestBytes = 1024;
const headBytesMax = 64 << 10;

/** Methods that request no action (RFC 9110, 9.2.1), so that there is nothing to do later. */
const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/** Asks the circuit breaker for calls besides the processor's tries; null: there is no processor. */
export interface CallGate {
  beginCall(): { readonly isProbe: boolean } | null;
  endCall(call: { readonly isProbe: boolean }, isHealthy: boolean | null): void;
}

interface RetryHttpProxyOptions {
  readonly backend: URL;
  readonly store: StoreClient;
  readonly rules: RetryRules;
  readonly timeoutMs: number;
  readonly bodyBytesMax: number;
  readonly bodyTimeoutMs: number;
  /** Memory for all requests in progress; at least twice `bodyBytesMax`, so that every request may go to the backend. */
  readonly memoryBytes: number;
  /** Maximum number of requests at the backend; one more is stored without a first try. */
  readonly callsMax: number;
  readonly connectionsMax: number;
  /** Status of the response to a request that is stored and will be tried again; null: the status of the failure. */
  readonly storedStatus: number | null;
  readonly clock: Clock;
  readonly gate: CallGate | null;
  /** Begins the span of a first try. `headers`: those of the request. */
  readonly traceTry?: (headers: HttpHeaders) => Pick<TrySpan, "headers" | "end">;
  /** Logs a stored message and the reason; `isTried`: there was a first try. */
  readonly onStored: (id: string, why: string, isTried: boolean) => void;
  readonly onFailure: (why: string) => void;
  /** The real one when left out. */
  readonly listen?: (address: Address, options: HttpListenerOptions) => Promise<ProxyListener>;
}

type ProxyListener = Pick<HttpListener, "address" | "stop" | "idle" | "close">;

interface ProxiedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: HttpHeaders;
  readonly body: Uint8Array;
  readonly reader: RequestReader;
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

  /** Rejects CANNOT_CREATE. Resolves with the actual address. */
  async listen(address: Address): Promise<Address> {
    const { connectionsMax, clock, listen = listenHttp } = this.#options;
    this.#listener = await listen(address, {
      onRequest: (request, response) => this.#serve(request, response),
      limits: { connectionsMax, headMsMax, headBytesMax: headBytesMax / 4 },
      makeRoom: () => this.#budget.refuseSlow(),
      clock,
    });
    return this.#listener.address;
  }

  /**
   * Accepts no new connections; resolves when all requests in progress have a response. After the signal, requests at the backend are
   * stored, and requests that have not arrived are abandoned.
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
    const headers = headersOf(request);
    const reader = new RequestReader(request, {
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
      this.#options.onFailure(messageOf(error));
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
    reader: RequestReader,
  ): Promise<void> {
    const { backend } = this.#options;
    const path = request.url ?? "/";
    const method = request.method ?? "GET";
    const url = backendUrl(backend, path);
    if (url === null) {
      const why = `the path ${path} cannot be forwarded`;
      return respondFault(response, headers, { kind: "bad_request", why, stored: null });
    }
    const read = await reader.read();
    if (read.kind !== "complete") return this.#refuseBody(response, headers, read);
    const { body } = read;
    if (losesBody(method, body)) {
      const why = `a ${method} request with a body cannot be forwarded: the body would be lost`;
      return respondFault(response, headers, { kind: "bad_request", why, stored: null });
    }
    // The key is stored, too, so that all tries are one message for the backend.
    const passed = forwardedHeaders(headers);
    const isKeyed = safeMethods.has(method) || headerValue(passed, idempotencyHeader) !== null;
    const keyed: HttpHeaders = isKeyed ? passed : [...passed, ["Idempotency-Key", newGuid()]];
    await this.#tryOrStore(response, { method, path, body, headers: keyed, reader }, url);
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

  /** Asks the breaker only below the limit: a request that is not sent would use up its probe. */
  async #tryOrStore(response: ServerResponse, call: ProxiedRequest, url: string): Promise<void> {
    const { gate, callsMax, rules } = this.#options;
    const { share } = call.reader;
    if (!this.#budget.mayCall(share)) {
      const why = this.#budget.calls < callsMax
        ? "the requests at the backend use all their memory (--body-memory)"
        : `${callsMax} requests are at the backend (--max-backend-requests)`;
      return await this.#storeAndRespondFault(response, call, { kind: "overloaded", why, tried: null });
    }
    const permit = gate === null ? { isProbe: false } : gate.beginCall();
    if (permit === null) {
      const why = "the circuit breaker is open: the backend failed too often";
      return await this.#storeAndRespondFault(response, call, { kind: "breaker_open", why, tried: null });
    }
    let isHealthy: boolean | null = null;
    this.#budget.beginCall(share);
    try {
      const result = await this.#callBackend(url, call);
      if (result.kind === "responded") isHealthy = outcomeOfStatus(result.response.status, rules) !== "retry";
      else isHealthy = this.#ending.signal.aborted ? null : false;
      await this.#passResponse(response, call, result);
    } finally {
      gate?.endCall(permit, isHealthy);
    }
  }

  async #callBackend(url: string, { method, headers, body }: ProxiedRequest): Promise<BackendResponse> {
    const { timeoutMs, clock, traceTry, rules } = this.#options;
    const span = traceTry?.(headers);
    const sent = span === undefined ? headers : replaceHeaders(headers, span.headers);
    const result = await callBackend({ url, method, headers: sent }, body, {
      ...{ timeoutMs, clock, signal: this.#ending.signal },
    });
    if (result.kind === "responded") {
      const { status } = result.response;
      const outcome = outcomeOfStatus(status, rules);
      const error = outcome === "done" ? null : `got status ${status}`;
      span?.end({ "baton.attempt": 1, "baton.result": outcome, "http.response.status_code": status }, error);
    } else span?.end({ "baton.attempt": 1, "baton.result": "retry" }, result.why);
    return result;
  }

  async #passResponse(response: ServerResponse, call: ProxiedRequest, result: BackendResponse): Promise<void> {
    if (result.kind !== "responded") {
      this.#budget.endCall(call.reader.share);
      const [kind, why] = this.#ending.signal.aborted
        ? ["timed_out", "the service is stopping, and the backend has not responded yet"] as const
        : result.kind === "timed_out"
        ? ["timed_out", "the backend did not respond in time"] as const
        : ["unreachable", "the backend cannot be reached"] as const;
      return await this.#storeAndRespondFault(response, call, { kind, why, tried: temporaryFailure(result.why) });
    }
    const { status, headers } = result.response;
    try {
      let id: string | null = null;
      if (outcomeOfStatus(status, this.#options.rules) === "retry" && !safeMethods.has(call.method)) {
        const tried = {
          ...temporaryFailure(`got status ${status}`),
          retryAfterMs: parseRetryAfter(headers.get("retry-after"), Date.now()),
        };
        const stored = await this.#store(call, tried, tried.error);
        if (stored.id === null) {
          await result.response.body?.cancel();
          return respondFault(response, call.headers, {
            kind: stored.kind,
            why: `the backend responded with ${status}; ${stored.why}`,
            stored: null,
          });
        }
        if (stored.isWaiting && this.#options.storedStatus !== null) {
          await result.response.body?.cancel();
          const why = `the backend responded with ${status}`;
          return this.#respondStored(response, call.headers, { kind: "backend_failed", why, stored });
        }
        id = stored.id;
      }
      await sendResponse(response, result.response, id, call.method);
    } finally {
      result.done();
    }
  }

  async #storeAndRespondFault(
    response: ServerResponse,
    call: ProxiedRequest,
    { kind, why, tried }: { readonly kind: FaultKind; readonly why: string; readonly tried: FirstTry | null },
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
    fault: { readonly kind: FaultKind; readonly why: string; readonly stored: StoredId },
  ): void {
    const { storedStatus } = this.#options;
    const status = fault.stored.isWaiting && storedStatus !== null ? { status: storedStatus } : {};
    respondFault(response, headers, { ...fault, ...status });
  }

  /** The message is durable if there is an id. */
  async #store(
    { method, path, headers, body }: ProxiedRequest,
    tried: FirstTry | null,
    why: string,
  ): Promise<StoredId | { readonly id: null; readonly kind: FaultKind; readonly why: string }> {
    const head: MessageHead = { kind: "http", method, path, headers };
    try {
      const [stored] = await this.#options.store.call("accept", [{ head, body, key: null, tried }], Date.now());
      if (stored === undefined) throw new BatonError("INTERNAL", "nothing was stored");
      this.#options.onStored(stored.id, why, tried !== null);
      return { id: stored.id, isWaiting: stored.life.state === "waiting" };
    } catch (error) {
      this.#options.onFailure(messageOf(error));
      const code = error instanceof BatonError ? error.code : "INTERNAL";
      if (code === "OUTCOME_UNKNOWN") return { id: null, kind: "maybe_stored", why: "the store did not respond" };
      // The disk may have what was written before it failed.
      if (code === "IO") return { id: null, kind: "maybe_stored", why: "the store failed" };
      const isFull = code === "STORE_FULL";
      return {
        id: null,
        kind: isFull ? "store_full" : "not_stored",
        why: isFull ? "the store is full" : "the store failed",
      };
    }
  }
}

function temporaryFailure(error: string): FirstTry {
  return { outcome: "retry", retryAfterMs: null, error };
}

function headersOf({ rawHeaders }: IncomingMessage): HttpHeaders {
  const pairs: [string, string][] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) pairs.push([rawHeaders[at] ?? "", rawHeaders[at + 1] ?? ""]);
  return pairs;
}

function headBytesOf({ url = "" }: IncomingMessage, headers: HttpHeaders): number {
  return headers.reduce((sum, [name, value]) => sum + name.length + value.length, url.length);
}

function respondFault(
  response: ServerResponse,
  request: HttpHeaders,
  { kind, why, stored, status: given }: {
    readonly kind: FaultKind;
    readonly why: string;
    readonly stored: StoredId | null;
    readonly status?: number;
  },
): void {
  const { status, contentType, body } = makeFault(kind, why, stored, request, given);
  response.writeHead(status, {
    "content-type": contentType,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    // Only a request that is not stored should be sent again.
    ...(kind === "overloaded" && stored === null ? { "retry-after": "1" } : {}),
    ...(stored === null ? {} : { [idHeader]: stored.id }),
  });
  response.end(body);
}

/** Passes the backend's response on as it came, except for headers of the connection and a content encoding. */
async function sendResponse(
  response: ServerResponse,
  result: Response,
  id: string | null,
  method: string,
): Promise<void> {
  const headers = forwardedHeaders([...result.headers], { isUnpacked: true });
  response.statusCode = result.status;
  // Repeated headers such as Set-Cookie stay separate.
  const byName = new Map<string, string[]>();
  for (const [name, value] of headers) byName.set(name, [...byName.get(name) ?? [], value]);
  for (const [name, values] of byName) response.setHeader(name, values.length === 1 ? values[0] ?? "" : values);
  if (id !== null) response.setHeader(idHeader, id);
  if (result.body === null || method === "HEAD") return void response.end();
  try {
    for await (const chunk of result.body) {
      if (!response.write(chunk)) await waitForDrainOrClose(response);
      if (response.destroyed) break;
    }
  } catch (error) {
    const why = `the backend's response ${result.status} was interrupted`;
    throw new Error(`${why}: ${whyNotSent(error)}`, { cause: error });
  }
  response.end();
}

/** Removes its listeners: a long response waits often. */
function waitForDrainOrClose(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      response.off("drain", go);
      response.off("close", go);
      resolve();
    };
    response.on("drain", go);
    response.on("close", go);
    if (response.destroyed) go();
  });
}
