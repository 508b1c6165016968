/**
 * Delivers messages to a backend by HTTP. The status of the response decides whether the message is done; the body of
 * the response is ignored.
 */
import type { HttpClient, HttpClientResponse } from "../../base/http/http_client.ts";
import { type HttpHeaders, httpHeaderValue } from "../../base/http/http_headers.ts";
import type { HttpRequestTarget } from "../../base/http/request_target.ts";
import type { TryLease } from "../queue/processor_lease.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";
import { type Target, type TryResult, tryResult } from "./target.ts";
import { isRedirectionFollowed, outcomeOfStatus, type RetryRules } from "./outcome.ts";
import { buildBackendRequest, parseRetryAfter } from "./backend_request.ts";

/** The most bytes of a response that are read, so that the backend can send a short response completely. */
const responseBytesMax = 256 << 10;

export interface HttpTargetOptions {
  readonly client: HttpClient;
  /** The backend for all messages; null if each message names its own backend. */
  readonly backend: HttpRequestTarget | null;
  readonly method: string;
  readonly headers: HttpHeaders;
  readonly rules: RetryRules;
  /** True if the redirections 301, 302 and 303 are followed, too. */
  readonly follow: boolean;
  readonly timeoutMs: number;
}

export class HttpTarget implements Target {
  readonly #options: HttpTargetOptions;

  constructor(options: HttpTargetOptions) {
    this.#options = options;
  }

  async deliver({ id, head, body }: ClaimedMessage, lease: TryLease): Promise<TryResult> {
    const { client, rules, follow, timeoutMs } = this.#options;
    const request = buildBackendRequest(head, id, this.#options);
    if (request === null) return tryResult("final", "has a path that leads out of --url");
    const result = await client.send({ ...request, body }, {
      timeoutMs,
      signal: lease.lost,
      mayReuse: true,
      mayFollow: (status) => isRedirectionFollowed(status, rules, follow),
    });
    if (result.kind === "responded") {
      await drainBody(result);
      return resultOfStatus(result, rules);
    }
    if (lease.lost.aborted) {
      return lease.stopped.aborted ? tryResult("retry", "was stopped because baton was stopped") : { kind: "lost" };
    }
    const isFinal = result.kind === "failed" && result.isMalformed;
    return tryResult(isFinal ? "final" : "retry", result.why);
  }
}

function resultOfStatus({ status, headers, how }: HttpClientResponse, rules: RetryRules): TryResult {
  const outcome = outcomeOfStatus(status, rules);
  if (outcome === "done") return tryResult("done", null);
  return tryResult(outcome, how, readRetryAfter(headers));
}

/** Returns the delay that the header Retry-After asks for, in milliseconds; null if there is none. */
export function readRetryAfter(headers: HttpHeaders): number | null {
  return parseRetryAfter(httpHeaderValue(headers, "retry-after"), Date.now());
}

/**
 * Reads a short response to its end and abandons a long one. If the body is interrupted, this is not an error, because
 * the status has already arrived.
 */
async function drainBody({ body, done }: HttpClientResponse): Promise<void> {
  let bytes = 0;
  try {
    for await (const chunk of body) if ((bytes += chunk.byteLength) > responseBytesMax) break;
  } catch {
    // see above
  } finally {
    done();
  }
}
