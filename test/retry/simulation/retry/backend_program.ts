/**
 * A model of a service that messages are sent to by HTTP, and of its client: one line of JSON there, one back, on a
 * connection of their own.
 */
import type { HttpExchange } from "../../../../src/base/http/http_exchange.ts";
import { type HttpHeaders, httpHeaderValue } from "../../../../src/base/http/http_headers.ts";
import type { ConnectionHandlers } from "../../../../src/base/sockets/connection.ts";
import { onAbort, throwIfAborted } from "../../../../src/base/support/abort.ts";
import type { SimNetwork } from "../../../world/sim_network.ts";
import type { SimProcess, SimProgram } from "../../../world/sim_process.ts";
import { systemError } from "../../../world/sim_socket.ts";

export const backendHost = "10.0.0.9";
export const backendPort = 9000;

export interface BackendRequestLine {
  /** Its Idempotency-Key: the id of the message, unless it has one of its own. */
  readonly id: string;
  readonly body: string;
}

export interface BackendResponseLine {
  readonly status: number;
  readonly retryAfter: number | null;
}

/** What the service does with a request. */
export interface BackendAct {
  /** Null: it never responds. */
  readonly response: BackendResponseLine | null;
  readonly afterMs: number;
  /** The connection is closed in place of a response. */
  readonly loses: boolean;
}

/** Gives the lines of a stream. */
export function lineReader(onLine: (line: string) => void): (chunk: Uint8Array) => void {
  const decoder = new TextDecoder();
  let text = "";
  return (chunk) => {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      onLine(text.slice(0, end));
      text = text.slice(end + 1);
    }
  };
}

export const encoded = (value: unknown) => new TextEncoder().encode(`${JSON.stringify(value)}\n`);

/** `act` decides; it is called when the request has arrived, and its effect is immediate. */
export function backendProgram(network: SimNetwork, act: (request: BackendRequestLine) => BackendAct): SimProgram {
  return async (process) => {
    await network.listen(process)({ kind: "tcp", host: backendHost, port: backendPort }, (connection) => {
      const onData = lineReader((line) => {
        const { response, afterMs, loses } = act(JSON.parse(line) as BackendRequestLine);
        if (response === null && !loses) return;
        process.startTimer(afterMs, () => {
          if (response === null) return connection.destroy();
          connection.write(encoded(response));
          connection.end();
        });
      });
      return { onData, onClosed: () => {} };
    });
  };
}

/**
 * What the client of a process sends with. Rejects as the real one: with the reason of the signal, or an error of the
 * network.
 */
export function simulatedExchange(process: SimProcess, network: SimNetwork): HttpExchange {
  return async ({ origin, path, headers, body }, { signal }) => {
    const { hostname: host, port } = new URL(origin);
    const id = httpHeaderValue(headers, "idempotency-key") ?? "";
    const answered = Promise.withResolvers<BackendResponseLine>();
    const handlers: ConnectionHandlers = {
      onData: lineReader((line) => answered.resolve(JSON.parse(line) as BackendResponseLine)),
      onClosed: (error) => answered.reject(error ?? systemError("ECONNRESET", "the connection was closed")),
    };
    const connection = await network.dial(process)({ kind: "tcp", host, port: Number(port) }, handlers, { signal });
    const off = onAbort(signal, (reason) => {
      answered.reject(reason);
      connection.destroy();
    });
    try {
      throwIfAborted(signal);
      const text = body.byteLength === 0 ? path.slice(1) : new TextDecoder().decode(body);
      connection.write(encoded({ id, body: text }));
      const { status, retryAfter } = await answered.promise;
      const head: HttpHeaders = retryAfter === null ? [] : [["retry-after", String(retryAfter)]];
      return { status, headers: head, proxy: null, body: emptyBody(), abandon: () => {} };
    } finally {
      off();
      answered.promise.catch(() => {});
      connection.end();
    }
  };
}

async function* emptyBody(): AsyncGenerator<Uint8Array> {}
