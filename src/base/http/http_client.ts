/**
 * The client for all outgoing HTTP: one request with a time limit, the redirections that may be followed, and the words
 * for failures. Status and headers come first; the body follows, and may fail without changing what they say.
 */
import { errorMessage } from "../errors.ts";
import type { TlsOptions } from "../sockets/connection.ts";
import type { Clock } from "../support/clock.ts";
import { type Deadline, deadlineAfter } from "../support/deadline.ts";
import { formatDuration } from "../support/duration.ts";
import { printable } from "../support/text.ts";
import {
  type HttpExchange,
  HttpExchangeError,
  type HttpExchangeOptions,
  type HttpReply,
  type OutgoingHttpRequest,
} from "./http_exchange.ts";
import type { HttpHeaders } from "./http_headers.ts";
import type { NodeHttpExchange } from "./node_exchange.ts";
import type { ProxyEnvironment } from "./proxy_choice.ts";
import { decideRedirection, describeHttpStatus } from "./redirection.ts";

export interface HttpClientOptions {
  readonly clock: Clock;
  /** The variables that name proxies. */
  readonly env: ProxyEnvironment;
  /** Called for each new connection; the authorities of the system, and no certificate, when left out. */
  readonly tls?: (() => TlsOptions) | undefined;
  /** The real one when left out. */
  readonly exchange?: HttpExchange | undefined;
}

export interface HttpSendOptions {
  /** Time limit of the whole exchange, with its redirections and the body of the response. Milliseconds. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Allows an earlier connection: cheaper, but the server may be about to close it. */
  readonly mayReuse?: boolean;
  /** Whether a redirection is followed, as `decideRedirection` takes it; none is when left out. */
  readonly mayFollow?: (status: number) => boolean | null;
}

export interface BackendResponse {
  readonly kind: "responded";
  readonly status: number;
  readonly headers: HttpHeaders;
  /** The status and what belongs to it, as the end of a sentence. */
  readonly how: string;
  /** The bytes as they were sent. Throws an error with a reason if it is cut off, cannot be read, or is late. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Ends the time limit, and the connection if the body was not read: called in any case. */
  done(): void;
}

export type HttpSendResult =
  | BackendResponse
  | { readonly kind: "timed_out"; readonly why: string }
  /** `isMalformed`: there was a response, and it will not be better next time. */
  | { readonly kind: "failed"; readonly why: string; readonly isMalformed: boolean };

export class HttpClient implements Disposable {
  readonly #options: HttpClientOptions;
  #node: Promise<NodeHttpExchange> | null = null;

  constructor(options: HttpClientOptions) {
    this.#options = options;
  }

  /** Resolves when the status has arrived. Never rejects. */
  async send(request: OutgoingHttpRequest, options: HttpSendOptions): Promise<HttpSendResult> {
    const { timeoutMs, signal } = options;
    let late: Error | null = null;
    const reason = () => late = new Error(`it did not end within ${formatDuration(timeoutMs)}`);
    const deadline = deadlineAfter(this.#options.clock, timeoutMs, { signal, reason });
    try {
      return await this.#sendWithin(request, options, deadline);
    } catch (error) {
      deadline.cancel();
      if (late !== null && deadline.signal.reason === late) {
        const why = error === late ? ` within ${formatDuration(timeoutMs)}` : `: ${errorMessage(error)}`;
        return { kind: "timed_out", why: `got no response${why}` };
      }
      const isMalformed = error instanceof HttpExchangeError && error.isMalformed;
      return {
        kind: "failed",
        why: isMalformed ? error.message : `could not be sent: ${errorMessage(error)}`,
        isMalformed,
      };
    }
  }

  /** Closes the connections that are kept for further requests. */
  [Symbol.dispose](): void {
    void this.#node?.then((node) => node.close(), () => {});
  }

  async #sendWithin(first: OutgoingHttpRequest, options: HttpSendOptions, deadline: Deadline): Promise<HttpSendResult> {
    const { mayReuse = false, mayFollow = () => false } = options;
    let request = first;
    let isSameHost = true;
    for (let count = 0;; count++) {
      const reply = await this.#exchange(request, { signal: deadline.signal, mayReuse, isSameHost }).catch((error) => {
        throw count === 0 ? error : redirectedError(error, request);
      });
      const next = decideRedirection(reply, request, { count, mayFollow: mayFollow(reply.status) });
      if (next.kind === "stays") return responded(reply, next.why, deadline);
      reply.abandon();
      request = next.request;
      isSameHost &&= next.isSameHost;
    }
  }

  async #exchange(request: OutgoingHttpRequest, options: HttpExchangeOptions): Promise<HttpReply> {
    const { exchange, env, tls = null } = this.#options;
    if (exchange !== undefined) return await exchange(request, options);
    this.#node ??= import("./node_exchange.ts").then(({ NodeHttpExchange }) => new NodeHttpExchange({ env, tls }));
    return await (await this.#node).send(request, options);
  }
}

/** The user has not written the address where the request went. */
function redirectedError(error: unknown, { origin, path }: OutgoingHttpRequest): HttpExchangeError {
  const { isMalformed = false } = error instanceof HttpExchangeError ? error : {};
  const why = `redirected to ${printable(origin + path)}: ${errorMessage(error)}`;
  return new HttpExchangeError(why, { cause: error, isMalformed });
}

function responded(reply: HttpReply, why: string | null, deadline: Deadline): BackendResponse {
  const { status, headers, proxy, body, abandon } = reply;
  return {
    kind: "responded",
    status,
    headers,
    body,
    how: `${describeHttpStatus({ status, headers, why })}${proxy === null ? "" : ` through ${proxy}`}`,
    done: () => {
      deadline.cancel();
      abandon();
    },
  };
}
