/** The interface of one HTTP request and its response, below redirections, time limits and the words for failures. */
import type { HttpHeaders } from "./http_headers.ts";
import type { HttpRequestTarget } from "./request_target.ts";

export interface OutgoingHttpRequest extends HttpRequestTarget {
  readonly method: string;
  readonly headers: HttpHeaders;
  readonly body: Uint8Array;
}

/** A response whose status and headers have arrived. */
export interface HttpReply {
  /** The number that the server sent, even if HTTP does not define it. */
  readonly status: number;
  /** The headers as the server sent them, including repeated ones. */
  readonly headers: HttpHeaders;
  /** The name of the proxy that carried the request, or null if there was none. */
  readonly proxy: string | null;
  /** Yields the body once, as the server sent it (not unpacked). Throws if it is cut off or unreadable. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Closes the connection if the body was not read to its end. */
  abandon(): void;
}

export interface HttpExchangeOptions {
  /** Ends the exchange: the promise, or the body, ends with its reason. */
  readonly signal: AbortSignal;
  /**
   * Allows an earlier connection, which is cheaper. Such a connection may break; then the request fails as on a new
   * one.
   */
  readonly mayReuse: boolean;
  /** A client certificate is shown only to the host that it is meant for. */
  readonly isSameHost: boolean;
}

/** Sends a request. Rejects with an HttpExchangeError, or with the signal's reason, if there is no response. */
export type HttpExchange = (request: OutgoingHttpRequest, options: HttpExchangeOptions) => Promise<HttpReply>;

/** No understandable response has arrived. */
export class HttpExchangeError extends Error {
  /** The host has responded with something that is not HTTP, or with a status that is no number of three digits. */
  readonly isMalformed: boolean;

  constructor(message: string, { cause, isMalformed = false }: { cause?: unknown; isMalformed?: boolean } = {}) {
    super(message, { cause });
    this.name = "HttpExchangeError";
    this.isMalformed = isMalformed;
  }
}
