/**
 * The client for all outgoing HTTP: sends one request within a time limit, follows allowed redirections, and describes
 * failures. The client returns a response when its status and headers have arrived; reading the body may still fail.
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
  /** The environment variables, which may name proxies. */
  readonly env: ProxyEnvironment;
  /**
   * Returns the TLS options of each new connection. By default, trusts the system's authorities and shows no
   * certificate.
   */
  readonly tls?: (() => TlsOptions) | undefined;
  readonly exchange?: HttpExchange | undefined;
}

export interface HttpSendOptions {
  /** The time limit of the whole exchange, including redirections and the response's body, in milliseconds. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /**
   * Allows reuse of an earlier connection, which saves time. The request fails if the server closes that connection at
   * the same moment.
   */
  readonly mayReuse?: boolean;
  /**
   * Says whether to follow a redirection with this status; see `decideRedirection`. By default, no redirection is
   * followed.
   */
  readonly mayFollow?: (status: number) => boolean | null;
}

export interface HttpClientResponse {
  readonly kind: "responded";
  readonly status: number;
  readonly headers: HttpHeaders;
  /** Describes the status for a message: "got status 404 through the proxy …". */
  readonly how: string;
  /** Yields the bytes as the server sent them. Throws an error if the body is cut off, unreadable or late. */
  readonly body: AsyncIterable<Uint8Array>;
  /**
   * Ends the time limit, and closes the connection if the body was not read. The caller must call this function for
   * every response.
   */
  done(): void;
}

export type HttpSendResult =
  | HttpClientResponse
  | { readonly kind: "timed_out"; readonly why: string }
  /** `isMalformed`: the server responded with something that is not HTTP; a retry would not help. */
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

/**
 * Adds the address to the message of an error, because a redirection chose the address and the user does not know it.
 */
function redirectedError(error: unknown, { origin, path }: OutgoingHttpRequest): HttpExchangeError {
  const { isMalformed = false } = error instanceof HttpExchangeError ? error : {};
  const why = `redirected to ${printable(origin + path)}: ${errorMessage(error)}`;
  return new HttpExchangeError(why, { cause: error, isMalformed });
}

function responded(reply: HttpReply, why: string | null, deadline: Deadline): HttpClientResponse {
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
