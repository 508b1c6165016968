/**
 * The HTTP proxy in front of a backend. It answers in bounded time, whatever the backend does: a request that could not be delivered is
 * stored, durably, before the caller hears so, and so is one that finds as many at the backend as may be there. Owns the listener.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { BatonError, messageOf } from "../../errors.ts";
import {
  backendUrl,
  forwardedHeaders,
  headerOf,
  type HttpHeaders,
  idempotencyHeader,
  losesBody,
} from "../targets/backend_request.ts";
import { type BackendResponse, callBackend, whyNotSent } from "../targets/http_target.ts";
import { type RequestBody, RequestReader } from "./request_body.ts";
import { RequestBudget } from "./request_budget.ts";
import { parseRetryAfter } from "../targets/backend_request.ts";
import type { StoreClient } from "../queue/store_methods.ts";
import type { FirstTry, MessageHead } from "../queue/stored_message.ts";
import { outcomeOfStatus, type RetryRules } from "../targets/outcome.ts";
import { type Address, formatAddress } from "../../sockets/connection.ts";
import { whyNotListening } from "../../sockets/why_not_listening.ts";
import { onAbort } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import { deadlineAfter } from "../../support/deadline.ts";
import { formatDuration } from "../../support/duration.ts";
import { newGuid } from "../../support/guid.ts";
import { type FaultKind, faultOf, type StoredId } from "./fault_body.ts";
import { HttpConnections } from "./http_connections.ts";

/** In the answer: what the message was stored as. */
export const idHeader = "baton-message-id";

/** How long the head of a request may take to arrive. Milliseconds. */
const headMsMax = 10_000;
/** How long requests that were at the backend may take to be stored once the service has no more time. Milliseconds. */
const lastMs = 2000;
/** What a request takes beside its head's and its body's bytes, about. */
const requestBytes = 1024;
const headBytesMax = 64 << 10;

/** RFC 9110, 9.2.1: they ask for nothing to be done, so that there is nothing to be done later. */
const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/** Of calls beside the processor's tries; null: there is no processor. */
export interface CallGate {
  beginCall(): { readonly isProbe: boolean } | null;
  endCall(call: { readonly isProbe: boolean }, works: boolean | null): void;
}

export interface RetryHttpProxyOptions {
  readonly backend: URL;
  readonly store: StoreClient;
  readonly rules: RetryRules;
  readonly timeoutMs: number;
  readonly bodyBytesMax: number;
  readonly bodyTimeoutMs: number;
  /** For all requests in progress together; at least twice `bodyBytesMax`, so that every request may go to the backend. */
  readonly memoryBytes: number;
  /** Requests at the backend; one more is stored without a first try. */
  readonly callsMax: number;
  readonly connectionsMax: number;
  readonly clock: Clock;
  readonly gate: CallGate | null;
  /** For the log: what was stored, and why; `isTried`: after a first try. */
  readonly onStored: (id: string, why: string, isTried: boolean) => void;
  readonly onFailure: (why: string) => void;
}

interface ProxiedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: HttpHeaders;
  readonly body: Uint8Array;
  readonly reader: RequestReader;
}

export class RetryHttpProxy {
  readonly #options: RetryHttpProxyOptions;
  readonly #server: Server;
  readonly #budget: RequestBudget;
  readonly #connections: HttpConnections;
  /** Aborts when what is in progress has no more time. */
  readonly #ending = new AbortController();
  #requests = 0;
  #idle: (() => void) | null = null;

  constructor(options: RetryHttpProxyOptions) {
    this.#options = options;
    const { memoryBytes, callsMax, connectionsMax, clock, bodyTimeoutMs, bodyBytesMax } = options;
    const requestBytesMax = bodyBytesMax + headBytesMax;
    this.#budget = new RequestBudget({ bytesMax: memoryBytes + 2 * headBytesMax, requestBytesMax, callsMax, clock });
    this.#connections = new HttpConnections(connectionsMax, () => this.#budget.refuseSlow());
    // The body's own deadline comes first, and has an answer of its own.
    this.#server = createServer({
      maxHeaderSize: headBytesMax / 4,
      headersTimeout: headMsMax,
      requestTimeout: headMsMax + bodyTimeoutMs + lastMs,
    });
    this.#server.on("connection", (socket) => this.#connections.add(socket));
    this.#server.on("request", (request, response) => void this.#serve(request, response));
  }

  /** Requests at the backend now. */
  get calls(): number {
    return this.#budget.calls;
  }

  /** Rejects CANNOT_CREATE. Resolves with where it really listens. */
  async listen(address: Address): Promise<Address> {
    const server = this.#server;
    try {
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject);
        const ready = () => {
          server.off("error", reject);
          server.on("error", () => {}); // of a connection that could not be accepted
          resolve();
        };
        if (address.kind === "unix") server.listen(address.path, ready);
        else server.listen(address.port, address.host, ready);
      });
    } catch (error) {
      const message = `Cannot listen at ${formatAddress(address)}: ${await whyNotListening(error, address)}`;
      throw new BatonError("CANNOT_CREATE", message, { cause: error });
    }
    const bound = server.address();
    return address.kind === "tcp" && bound !== null && typeof bound === "object"
      ? { ...address, port: bound.port }
      : address;
  }

  /**
   * Accepts no more connections; resolves when all requests in progress are answered. After the signal those at the backend are
   * stored, and those that have not arrived are given up.
   */
  async close(signal: AbortSignal): Promise<void> {
    this.#server.close();
    await this.#idleOr(signal);
    this.#ending.abort(new Error("the service ends"));
    const deadline = deadlineAfter(this.#options.clock, lastMs, { reason: () => null });
    await this.#idleOr(deadline.signal);
    deadline.cancel();
    this.#server.closeAllConnections();
  }

  async #idleOr(signal: AbortSignal): Promise<void> {
    if (this.#requests === 0 || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#idle = resolve;
    const off = onAbort(signal, () => resolve());
    await promise;
    off();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { bodyBytesMax, bodyTimeoutMs, clock } = this.#options;
    const headers = headersOf(request);
    const { socket } = request;
    const reader = new RequestReader(request, {
      budget: this.#budget,
      headBytes: requestBytes + headBytesOf(request, headers),
      bytesMax: bodyBytesMax,
      timeoutMs: bodyTimeoutMs,
      clock,
      ending: this.#ending.signal,
    });
    this.#requests++;
    this.#connections.requestBegan(socket);
    try {
      await this.#answer(request, response, headers, reader);
    } catch (error) {
      this.#options.onFailure(messageOf(error));
      if (!response.headersSent) {
        answerFault(response, headers, { kind: "not_stored", why: "the service has failed", stored: null });
      } else response.destroy();
    } finally {
      reader.release();
      this.#connections.requestEnded(socket);
      this.#requests--;
      if (this.#requests === 0) this.#idle?.();
    }
  }

  async #answer(
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
      const why = `the path ${path} cannot be passed on`;
      return answerFault(response, headers, { kind: "bad_request", why, stored: null });
    }
    const read = await reader.read();
    if (read.kind !== "complete") return this.#refuseBody(response, headers, read);
    const { body } = read;
    if (losesBody(method, body)) {
      const why = `a ${method} with a body cannot be passed on: the body would be left behind`;
      return answerFault(response, headers, { kind: "bad_request", why, stored: null });
    }
    // Stored with its key, so that the first try and all that follow are one message to the backend.
    const passed = forwardedHeaders(headers);
    const isKeyed = safeMethods.has(method) || headerOf(passed, idempotencyHeader) !== null;
    const keyed: HttpHeaders = isKeyed ? passed : [...passed, ["Idempotency-Key", newGuid()]];
    await this.#tryOrStore(response, { method, path, body, headers: keyed, reader }, url);
  }

  #refuseBody(response: ServerResponse, headers: HttpHeaders, read: Exclude<RequestBody, { kind: "complete" }>): void {
    const { bodyBytesMax, bodyTimeoutMs } = this.#options;
    if (read.kind === "left") {
      const why = `a caller has left before all of its request was there, after ${read.bytes} bytes of its body`;
      throw new Error(`${why}; it is not stored: ${read.why}`);
    }
    const [kind, why] = ({
      too_large: ["too_large", `the body is longer than ${bodyBytesMax} bytes`],
      late: ["late", `the body has not arrived within ${formatDuration(bodyTimeoutMs)} (--body-timeout)`],
      no_memory: ["overloaded", "the requests in progress take all memory that they may have (--body-memory)"],
      ending: ["overloaded", "the service ends"],
    } as const)[read.kind];
    response.setHeader("connection", "close");
    answerFault(response, headers, { kind, why, stored: null });
  }

  /** Above the limit the breaker is not asked: its probe would be used up by a request that is not sent. */
  async #tryOrStore(response: ServerResponse, call: ProxiedRequest, url: string): Promise<void> {
    const { gate, callsMax, rules } = this.#options;
    const { share } = call.reader;
    if (!this.#budget.mayCall(share)) {
      const why = this.#budget.calls < callsMax
        ? "the requests at the backend take all memory that they may have (--body-memory)"
        : `${callsMax} requests are at the backend (--max-backend-requests)`;
      return await this.#storeAndFault(response, call, { kind: "overloaded", why, tried: null });
    }
    const leave = gate === null ? { isProbe: false } : gate.beginCall();
    if (leave === null) {
      const why = "the backend has failed too often";
      return await this.#storeAndFault(response, call, { kind: "breaker_open", why, tried: null });
    }
    let works: boolean | null = null;
    this.#budget.beginCall(share);
    try {
      const answer = await this.#callBackend(url, call);
      if (answer.kind === "answered") works = outcomeOfStatus(answer.response.status, rules) !== "retry";
      else works = this.#ending.signal.aborted ? null : false;
      await this.#passOn(response, call, answer);
    } finally {
      gate?.endCall(leave, works);
    }
  }

  async #callBackend(url: string, { method, headers, body }: ProxiedRequest): Promise<BackendResponse> {
    const { timeoutMs, clock } = this.#options;
    return await callBackend({ url, method, headers }, body, { timeoutMs, clock, signal: this.#ending.signal });
  }

  async #passOn(response: ServerResponse, call: ProxiedRequest, answer: BackendResponse): Promise<void> {
    if (answer.kind !== "answered") {
      this.#budget.endCall(call.reader.share);
      const [kind, why] = this.#ending.signal.aborted
        ? ["timed_out", "the service ends, and the backend has not answered yet"] as const
        : answer.kind === "timed_out"
        ? ["timed_out", "the backend did not answer in time"] as const
        : ["unreachable", "the backend cannot be reached"] as const;
      return await this.#storeAndFault(response, call, { kind, why, tried: retry(answer.why) });
    }
    const { status, headers } = answer.response;
    try {
      let id: string | null = null;
      if (outcomeOfStatus(status, this.#options.rules) === "retry" && !safeMethods.has(call.method)) {
        const tried = {
          ...retry(`was answered with ${status}`),
          retryAfterMs: parseRetryAfter(headers.get("retry-after"), Date.now()),
        };
        const stored = await this.#store(call, tried, tried.error);
        if (stored.id === null) {
          await answer.response.body?.cancel();
          return answerFault(response, call.headers, {
            kind: stored.kind,
            why: `the backend has answered with ${status}; ${stored.why}`,
            stored: null,
          });
        }
        id = stored.id;
      }
      await sendResponse(response, answer.response, id, call.method);
    } finally {
      answer.done();
    }
  }

  async #storeAndFault(
    response: ServerResponse,
    call: ProxiedRequest,
    { kind, why, tried }: { readonly kind: FaultKind; readonly why: string; readonly tried: FirstTry | null },
  ): Promise<void> {
    if (safeMethods.has(call.method)) return answerFault(response, call.headers, { kind, why, stored: null });
    const stored = await this.#store(call, tried, tried?.error ?? `was left out: ${why}`);
    if (stored.id === null) {
      return answerFault(response, call.headers, { kind: stored.kind, why: `${why}; ${stored.why}`, stored: null });
    }
    answerFault(response, call.headers, { kind, why, stored });
  }

  /** Durable when there is an id. */
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
      const isFull = error instanceof BatonError && error.code === "STORE_FULL";
      return {
        id: null,
        kind: isFull ? "store_full" : "not_stored",
        why: isFull ? "the store is full" : "the store has failed",
      };
    }
  }
}

function retry(error: string): FirstTry {
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

function answerFault(
  response: ServerResponse,
  request: HttpHeaders,
  { kind, why, stored }: { readonly kind: FaultKind; readonly why: string; readonly stored: StoredId | null },
): void {
  const { status, contentType, body } = faultOf(kind, why, stored, request);
  response.writeHead(status, {
    "content-type": contentType,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    // Only a request that is not stored is to be sent again.
    ...(kind === "overloaded" && stored === null ? { "retry-after": "1" } : {}),
    ...(stored === null ? {} : { [idHeader]: stored.id }),
  });
  response.end(body);
}

/** The backend's answer as it came, as far as HTTP is passed on at all; its packing was taken off on the way. */
async function sendResponse(
  response: ServerResponse,
  answer: Response,
  id: string | null,
  method: string,
): Promise<void> {
  const headers = forwardedHeaders([...answer.headers], { isUnpacked: true });
  response.statusCode = answer.status;
  // Several of one name, such as Set-Cookie, stay several.
  const byName = new Map<string, string[]>();
  for (const [name, value] of headers) byName.set(name, [...byName.get(name) ?? [], value]);
  for (const [name, values] of byName) response.setHeader(name, values.length === 1 ? values[0] ?? "" : values);
  if (id !== null) response.setHeader(idHeader, id);
  if (answer.body === null || method === "HEAD") return void response.end();
  try {
    for await (const chunk of answer.body) {
      if (!response.write(chunk)) await drainedOrClosed(response);
      if (response.destroyed) break;
    }
  } catch (error) {
    const why = `the backend's answer, ${answer.status}, broke off on its way to the caller`;
    throw new Error(`${why}: ${whyNotSent(error)}`, { cause: error });
  }
  response.end();
}

/** Leaves no listener behind: a long answer waits often. */
function drainedOrClosed(response: ServerResponse): Promise<void> {
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
