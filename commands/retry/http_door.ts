/**
 * The HTTP door: a proxy in front of a backend that answers at once, whatever the backend does. What could not be delivered is stored,
 * durably, before the caller is told so. Owns the listener and its connections.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { BatonError, messageOf } from "../../src/errors.ts";
import {
  backendUrl,
  forwardedHeaders,
  headerOf,
  type Headers,
  idempotencyHeader,
  losesBody,
} from "../../src/recipes/retry/http/backend_request.ts";
import { type BackendAnswer, callBackend, whyNotSent } from "../../src/recipes/retry/http/http_target.ts";
import { parseRetryAfter } from "../../src/recipes/retry/http/retry_after.ts";
import type { AskStore } from "../../src/recipes/retry/processor.ts";
import type { FirstTry, MessageHead } from "../../src/recipes/retry/store/stored_message.ts";
import { type RetryRules, verdictOfStatus } from "../../src/recipes/retry/verdict.ts";
import { type Address, formatAddress } from "../../src/sockets/connection.ts";
import { whyNotListening } from "../../src/sockets/why_not_listening.ts";
import type { Clock } from "../../src/support/clock.ts";
import { newGuid } from "../../src/support/guid.ts";
import { type FaultKind, faultOf, type StoredAs } from "./fault_body.ts";

/** In the answer: what the message was stored as. */
export const idHeader = "baton-message-id";

/** What the door has in its hands at once; one more is told 503, and nothing of it is stored. */
export const requestsMax = 256;
const connectionsMax = 1024;
const headMsMax = 10_000;
const requestMsMax = 120_000;

/** RFC 9110, 9.2.1: they ask for nothing to be done, so that there is nothing to be done later. */
const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/** Of calls beside the processor's tries; null: there is no processor. */
export interface CallGate {
  beginCall(): { readonly isProbe: boolean } | null;
  endCall(call: { readonly isProbe: boolean }, works: boolean | null): void;
}

export interface HttpDoorOptions {
  readonly backend: URL;
  readonly store: AskStore;
  readonly rules: RetryRules;
  readonly timeoutMs: number;
  readonly bodyBytesMax: number;
  readonly clock: Clock;
  readonly gate: CallGate | null;
  /** For the log: what was stored, and why. */
  readonly onStored: (id: string, why: string) => void;
  readonly onTrouble: (why: string) => void;
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

export class HttpDoor {
  readonly #options: HttpDoorOptions;
  readonly #server: Server;
  #requests = 0;
  #idle: (() => void) | null = null;

  constructor(options: HttpDoorOptions) {
    this.#options = options;
    this.#server = createServer({ headersTimeout: headMsMax, requestTimeout: requestMsMax });
    this.#server.maxConnections = connectionsMax;
    this.#server.on("request", (request, response) => void this.#serve(request, response));
  }

  /** Requests under way. */
  get requests(): number {
    return this.#requests;
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

  /** Takes no more; resolves when what is under way is answered, or with the signal. */
  async close(signal: AbortSignal): Promise<void> {
    this.#server.close();
    if (this.#requests > 0 && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    this.#server.closeAllConnections();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const headers = headersOf(request);
    if (this.#requests >= requestsMax) {
      request.resume();
      return answerFault(response, headers, {
        kind: "overloaded",
        why: `${requestsMax} requests are under way`,
        stored: null,
      });
    }
    this.#requests++;
    try {
      await this.#answer(request, response, headers);
    } catch (error) {
      this.#options.onTrouble(messageOf(error));
      if (!response.headersSent) {
        answerFault(response, headers, { kind: "not_stored", why: "the service has failed", stored: null });
      } else response.destroy();
    } finally {
      this.#requests--;
      if (this.#requests === 0) this.#idle?.();
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse, headers: Headers): Promise<void> {
    const { backend, bodyBytesMax, gate } = this.#options;
    const path = request.url ?? "/";
    const method = request.method ?? "GET";
    const url = backendUrl(backend, path);
    if (url === null) {
      return answerFault(response, headers, {
        kind: "bad_request",
        why: `the path ${path} cannot be passed on`,
        stored: null,
      });
    }
    const body = await bodyOf(request, bodyBytesMax);
    if (body === null) {
      const why = `the body is longer than ${bodyBytesMax} bytes`;
      response.setHeader("connection", "close");
      return answerFault(response, headers, { kind: "too_large", why, stored: null });
    }
    if (losesBody(method, body)) {
      const why = `a ${method} with a body cannot be passed on: the body would be left behind`;
      return answerFault(response, headers, { kind: "bad_request", why, stored: null });
    }
    // Stored with its key, so that the first try and all that follow are one message to the backend.
    const passed = forwardedHeaders(headers);
    const isKeyed = safeMethods.has(method) || headerOf(passed, idempotencyHeader) !== null;
    const call: Call = { method, path, body, headers: isKeyed ? passed : [...passed, ["Idempotency-Key", newGuid()]] };
    const leave = gate === null ? { isProbe: false } : gate.beginCall();
    if (leave === null) {
      return await this.#storeAndFault(response, call, {
        kind: "breaker_open",
        why: "the backend has failed too often",
        tried: null,
      });
    }
    let works: boolean | null = null;
    try {
      const answer = await this.#callBackend(url, call);
      works = answer.kind === "answered"
        ? verdictOfStatus(answer.response.status, this.#options.rules) !== "retry"
        : false;
      await this.#passOn(response, call, answer);
    } finally {
      gate?.endCall(leave, works);
    }
  }

  async #callBackend(url: string, { method, headers, body }: Call): Promise<BackendAnswer> {
    const { timeoutMs, clock } = this.#options;
    return await callBackend({ url, method, headers }, body, { timeoutMs, clock });
  }

  async #passOn(response: ServerResponse, call: Call, answer: BackendAnswer): Promise<void> {
    if (answer.kind !== "answered") {
      const kind = answer.kind === "timed_out" ? "timed_out" : "unreachable";
      const why = kind === "timed_out" ? "the backend did not answer in time" : "the backend cannot be reached";
      return await this.#storeAndFault(response, call, { kind, why, tried: retry(answer.why) });
    }
    const { status, headers } = answer.response;
    try {
      let id: string | null = null;
      if (verdictOfStatus(status, this.#options.rules) === "retry" && !safeMethods.has(call.method)) {
        const tried = {
          ...retry(`was answered with ${status}`),
          retryAfterMs: parseRetryAfter(headers.get("retry-after"), Date.now()),
        };
        const stored = await this.#store(call, tried);
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
      await sendOn(response, answer.response, id, call.method);
    } finally {
      answer.done();
    }
  }

  async #storeAndFault(
    response: ServerResponse,
    call: Call,
    { kind, why, tried }: { readonly kind: FaultKind; readonly why: string; readonly tried: FirstTry | null },
  ): Promise<void> {
    if (safeMethods.has(call.method)) return answerFault(response, call.headers, { kind, why, stored: null });
    const stored = await this.#store(call, tried);
    if (stored.id === null) {
      return answerFault(response, call.headers, { kind: stored.kind, why: `${why}; ${stored.why}`, stored: null });
    }
    answerFault(response, call.headers, { kind, why, stored });
  }

  /** Durable when there is an id. */
  async #store(
    { method, path, headers, body }: Call,
    tried: FirstTry | null,
  ): Promise<StoredAs | { readonly id: null; readonly kind: FaultKind; readonly why: string }> {
    const head: MessageHead = { kind: "http", method, path, headers };
    try {
      const [stored] = await this.#options.store.call("accept", [{ head, body, key: null, tried }], Date.now());
      if (stored === undefined) throw new BatonError("INTERNAL", "nothing was stored");
      this.#options.onStored(stored.id, tried?.error ?? "was not tried: the breaker is open");
      return { id: stored.id, isWaiting: stored.life.state === "waiting" };
    } catch (error) {
      this.#options.onTrouble(messageOf(error));
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
  return { verdict: "retry", retryAfterMs: null, error };
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const pairs: [string, string][] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) pairs.push([rawHeaders[at] ?? "", rawHeaders[at + 1] ?? ""]);
  return pairs;
}

/** Null: longer than it may be; the rest is not read. Rejects when the caller leaves. */
async function bodyOf(request: IncomingMessage, bytesMax: number): Promise<Uint8Array | null> {
  if (Number(request.headers["content-length"] ?? 0) > bytesMax) return null;
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.byteLength;
      if (bytes > bytesMax) return null;
      chunks.push(chunk);
    }
  } catch (error) {
    const why = `a caller has left before all of its request was there, after ${bytes} bytes of its body`;
    throw new Error(`${why}; it is not stored: ${messageOf(error)}`, { cause: error });
  }
  return new Uint8Array(Buffer.concat(chunks));
}

function answerFault(
  response: ServerResponse,
  request: Headers,
  { kind, why, stored }: { readonly kind: FaultKind; readonly why: string; readonly stored: StoredAs | null },
): void {
  const { status, contentType, body } = faultOf(kind, why, stored, request);
  response.writeHead(status, {
    "content-type": contentType,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    ...(stored === null ? {} : { [idHeader]: stored.id }),
  });
  response.end(body);
}

/** The backend's answer as it came, as far as HTTP is passed on at all; its packing was taken off on the way. */
async function sendOn(response: ServerResponse, answer: Response, id: string | null, method: string): Promise<void> {
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
