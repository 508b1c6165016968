/** Passes the response of a backend to a client as it came, except for headers of the connection. */
import type { ServerResponse } from "node:http";
import { errorMessage } from "../../base/errors.ts";
import { headerValue, type HttpHeaders, replaceHeaders } from "../../base/http/http_headers.ts";
import { onAbort } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { forwardedHeaders } from "../targets/backend_request.ts";

/** Time in which a client has to take what was written. Milliseconds. */
const takeMsMax = 60_000;

interface BackendReply {
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Returns why the response is not complete; null: it is. Then the client has got what came, and its connection is
 * closed without the end of the body. A client that has left ends it silently.
 */
export async function passResponse(
  response: ServerResponse,
  { status, headers, body }: BackendReply,
  { method, added, clock }: { readonly method: string; readonly added: HttpHeaders; readonly clock: Clock },
): Promise<string | null> {
  const closed = new AbortController();
  response.once("close", () => closed.abort());
  const passed = passedHeaders(status, headers);
  response.writeHead(status, replaceHeaders(passed, added).flat());
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
 * The headers of the message, and the length of the body if the backend has sent it. What no header may have becomes a
 * "?", or is left out.
 */
function passedHeaders(status: number, headers: HttpHeaders): HttpHeaders {
  const length = headerValue(headers, "content-length");
  const isChunked = headerValue(headers, "transfer-encoding") !== null;
  const keepsLength = length !== null && /^\d+$/.test(length) && !isChunked && status !== 204;
  const valid = forwardedHeaders(headers).filter(([name]) => /^[!#$%&'*+.^_`|~\w-]+$/.test(name))
    .map(([name, value]) => [name, value.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, "?")] as const);
  return [...valid, ...(keepsLength ? [["Content-Length", length] as const] : [])];
}

/**
 * Sends what was written, and closes the connection without the end of the body: so the client notices that something
 * is missing.
 */
function cutOff(response: ServerResponse, hasLength: boolean, clock: Clock): void {
  const { socket, req } = response;
  if (socket === null) return void response.destroy();
  const cancel = clock.startTimer(takeMsMax, () => response.destroy());
  response.once("close", cancel);
  // Headers that were not sent yet go out with this.
  response.flushHeaders();
  // A client of HTTP/1.0 takes the end of the connection for that of the body, unless it knows the length.
  const isFramed = req.httpVersion !== "1.0" || hasLength;
  if (isFramed) socket.end(() => response.destroy());
  else socket.write("", () => socket.resetAndDestroy());
}

/**
 * Resolves when the client has taken what was written, or the connection is closed. A client that takes nothing loses
 * it.
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
