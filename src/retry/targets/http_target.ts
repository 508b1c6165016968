/** Delivers messages to a backend by HTTP. The body of the response is ignored: its status decides. */
import type { Clock } from "../../support/clock.ts";
import { whyNotSent } from "../../support/fetch_failure.ts";
import { formatDuration } from "../../support/duration.ts";
import type { TryLease } from "../queue/processor_lease.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";
import { type Target, type TryResult, tryResult, type TryTrace } from "./target.ts";
import { outcomeOfStatus, type RetryRules } from "./outcome.ts";
import { type BackendRequest, backendRequestOf, type HttpHeaders, parseRetryAfter } from "./backend_request.ts";
import { deadlineAfter } from "../../support/deadline.ts";

/** How much of a response is read, so that the backend can send a short one completely. Bytes. */
const responseBytesMax = 256 << 10;

export interface HttpTargetOptions {
  /** Null: each message has its own. */
  readonly backend: URL | null;
  readonly method: string;
  readonly headers: HttpHeaders;
  readonly rules: RetryRules;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

export class HttpTarget implements Target {
  readonly #options: HttpTargetOptions;

  constructor(options: HttpTargetOptions) {
    this.#options = options;
  }

  async deliver(message: ClaimedMessage, lease: TryLease, trace?: TryTrace): Promise<TryResult> {
    const { rules, timeoutMs, clock } = this.#options;
    const request = backendRequestOf(message.head, message.id, this.#options);
    if (request === null) return tryResult("final", "has a path that leads out of --url", null);
    const traced = trace === undefined
      ? request
      : { ...request, headers: replaceHeaders(request.headers, trace.headers) };
    const answer = await callBackend(traced, message.body, { timeoutMs, clock, signal: lease.lost, mayReuse: true });
    if (answer.kind === "responded") {
      await drainResponse(answer.response);
      answer.done();
      const { status, headers } = answer.response;
      const outcome = outcomeOfStatus(status, rules);
      if (outcome === "done") return tryResult("done", null, true);
      const retryAfterMs = parseRetryAfter(headers.get("retry-after"), Date.now());
      return tryResult(outcome, `got status ${status}`, outcome === "final", retryAfterMs);
    }
    if (lease.lost.aborted) {
      return lease.stopped.aborted
        ? tryResult("retry", "was stopped because baton was stopped", null)
        : { kind: "lost" };
    }
    return tryResult("retry", answer.why, false);
  }
}

export function replaceHeaders(headers: HttpHeaders, by: HttpHeaders): HttpHeaders {
  const names = by.map(([name]) => name.toLowerCase());
  return [...headers.filter(([name]) => !names.includes(name.toLowerCase())), ...by];
}

export type BackendResponse =
  /** `done` ends the time limit: called when the body was read or is not needed. */
  | { readonly kind: "responded"; readonly response: Response; done(): void }
  | { readonly kind: "timed_out" | "failed"; readonly why: string };

/** Sends a request and resolves when the status has arrived. Never rejects. Redirections are not followed. */
export async function callBackend(
  { url, method, headers }: BackendRequest,
  body: Uint8Array,
  { timeoutMs, clock, signal, mayReuse = false }: {
    readonly timeoutMs: number;
    readonly clock: Clock;
    readonly signal?: AbortSignal | undefined;
    /** Allows reuse of an earlier connection: cheaper, but the backend may be about to close it. */
    readonly mayReuse?: boolean;
  },
): Promise<BackendResponse> {
  const late = new Error("the time limit was reached");
  const deadline = deadlineAfter(clock, timeoutMs, { signal, reason: () => late });
  try {
    const pairs = headers.map(([name, value]) => [name, value] as [string, string]);
    // The runtime would send its own name and version.
    if (!pairs.some(([name]) => name.toLowerCase() === "user-agent")) pairs.push(["user-agent", "baton"]);
    const isReused = mayReuse && !mayResend(method);
    const hasBody = method !== "GET" && method !== "HEAD";
    const response = await fetch(url, {
      method,
      headers: isReused ? pairs : [...pairs, ["connection", "close"]],
      keepalive: isReused,
      redirect: "manual",
      signal: deadline.signal,
      ...(hasBody ? { body: body as Uint8Array<ArrayBuffer> } : {}),
    });
    return { kind: "responded", response, done: deadline.cancel };
  } catch (error) {
    deadline.cancel();
    if (deadline.signal.reason === late) {
      return { kind: "timed_out", why: `got no response within ${formatDuration(timeoutMs)}` };
    }
    return { kind: "failed", why: `could not be sent: ${whyNotSent(error)}` };
  }
}

/**
 * Whether `fetch` itself repeats a request when a reused connection breaks, so that one try would become two: Bun repeats idempotent
 * requests, Deno all requests.
 */
function mayResend(method: string): boolean {
  return !("Bun" in globalThis) || method !== "POST";
}

/** Reads a short response to its end, and abandons a long one. */
async function drainResponse(response: Response): Promise<void> {
  const { body, headers } = response;
  if (body === null) return;
  let bytes = 0;
  try {
    // A response with a short Content-Length is read in one piece: reading chunks costs as much as the request.
    const length = headers.get("content-length");
    if (length !== null && Number(length) <= responseBytesMax) return void await response.arrayBuffer();
    for await (const chunk of body) if ((bytes += chunk.byteLength) > responseBytesMax) break;
  } catch {
    // the status has arrived: an incomplete body does not matter
  }
}
