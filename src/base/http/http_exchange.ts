/** The interface of one HTTP request and its response. http_client.ts adds redirections and time limits. */
import type { HttpHeaders } from "./http_headers.ts";
import type { HttpRequestTarget } from "./request_target.ts";

export interface OutgoingHttpRequest extends HttpRequestTarget {
  readonly method: string;
  readonly headers: HttpHeaders;
  readonly body: Uint8Array;
}

export interface HttpReply {
  /** The status that the server sent, even if HTTP does not define this number. */
  readonly status: number;
  /** The headers as the server sent them, including repeated ones. */
  readonly headers: HttpHeaders;
  /** The name of the proxy that carried the request, or null if there was none. */
  readonly proxy: string | null;
  /** Yields the body, without decompressing it; can be read only once. Throws if the body is cut off or unreadable. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Closes the connection if the body was not read to its end. */
  abandon(): void;
}

export interface HttpExchangeOptions {
  /** Aborts the exchange. The promise then rejects, or the body throws, with the signal's reason. */
  readonly signal: AbortSignal;
  /**
   * Allows reuse of an earlier connection, which saves time. The request fails if the server closes that connection at
   * the same moment.
   */
  readonly mayReuse: boolean;
  /** False after a redirection to another host. That host must not see the client certificate. */
  readonly isSameHost: boolean;
}

/** Sends a request. Rejects with an HttpExchangeError if there is no response, or with the signal's reason. */
export type HttpExchange = (request: OutgoingHttpRequest, options: HttpExchangeOptions) => Promise<HttpReply>;

/** The error of a request without a readable response. */
export class HttpExchangeError extends Error {
  /** True if the response was not HTTP, or its status was not a number of three digits. */
  readonly isMalformed: boolean;

  constructor(message: string, { cause, isMalformed = false }: { cause?: unknown; isMalformed?: boolean } = {}) {
    super(message, { cause });
    this.name = "HttpExchangeError";
    this.isMalformed = isMalformed;
  }
}
