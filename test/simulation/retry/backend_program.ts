/** A model of a service that messages are sent to by HTTP, and of `fetch`: one line of JSON there, one back, on a connection of their own. */
import type { ConnectionHandlers } from "../../../src/sockets/connection.ts";
import type { SimNetwork } from "../world/sim_network.ts";
import type { SimProcess, SimProgram } from "../world/sim_process.ts";
import { systemError } from "../world/sim_socket.ts";

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

/** What a process has in place of `fetch`. Rejects as the real one: with the reason of the signal, or an error of the network. */
export function simulatedFetch(process: SimProcess, network: SimNetwork): typeof fetch {
  const request = async (url: string, { headers, body, signal }: RequestInit): Promise<Response> => {
    const { hostname: host, port, pathname } = new URL(url);
    const pairs = headers as [string, string][];
    const id = pairs.find(([name]) => name.toLowerCase() === "idempotency-key")?.[1] ?? "";
    const answered = Promise.withResolvers<BackendResponseLine>();
    const handlers: ConnectionHandlers = {
      onData: lineReader((line) => answered.resolve(JSON.parse(line) as BackendResponseLine)),
      onClosed: (error) => answered.reject(error ?? systemError("ECONNRESET", "the connection was closed")),
    };
    const address = { kind: "tcp", host, port: Number(port) } as const;
    const connection = await network.dial(process)(
      address,
      handlers,
      signal === null ? {} : { signal: signal as AbortSignal },
    );
    const onAbort = () => {
      answered.reject(signal?.reason);
      connection.destroy();
    };
    signal?.addEventListener("abort", onAbort);
    try {
      signal?.throwIfAborted();
      const text = body === undefined ? pathname.slice(1) : new TextDecoder().decode(body as Uint8Array);
      connection.write(encoded({ id, body: text }));
      const { status, retryAfter } = await answered.promise;
      const responseHeaders = new Headers(retryAfter === null ? {} : { "retry-after": String(retryAfter) });
      return { status, headers: responseHeaders, body: null } as unknown as Response;
    } finally {
      signal?.removeEventListener("abort", onAbort);
      answered.promise.catch(() => {});
      connection.end();
    }
  };
  return request as unknown as typeof fetch;
}
