/**
 * What `serve` has in place of a listener of HTTP, just above the wire: a line of JSON with the head of a request, one
 * with its body, and one back, on a connection of their own. Requests and responses have what the proxy uses of those
 * of node:http.
 */
import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { pairRawHttpHeaders } from "../../../../src/base/http/http_headers.ts";
import type { HttpListener, HttpListenerOptions } from "../../../../src/base/http/http_listener.ts";
import type { Address, Connection } from "../../../../src/base/sockets/connection.ts";
import { onAbort } from "../../../../src/base/support/abort.ts";
import type { SimNetwork } from "../../../world/sim_network.ts";
import type { SimProcess } from "../../../world/sim_process.ts";
import { encoded, lineReader } from "./backend_program.ts";

export interface RequestHead {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export interface ResponseLine {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The listener of one process. */
export function simulatedListen(process: SimProcess, network: SimNetwork) {
  return async (address: Address, { onRequest }: HttpListenerOptions): Promise<
    Pick<HttpListener, "address" | "stop" | "idle" | "close">
  > => {
    const open = new Set<Connection>();
    let inProgress = 0;
    let whenIdle: () => void = () => {};
    const listener = await network.listen(process)(address, (connection) => {
      open.add(connection);
      let request: SimRequest | null = null;
      let response: SimResponse | null = null;
      return {
        onData: lineReader((line) => {
          if (request !== null) return request.receive(process, JSON.parse(line) as string);
          request = new SimRequest(JSON.parse(line) as RequestHead);
          response = new SimResponse(connection);
          const closed = new Promise<void>((resolve) => response?.once("close", () => resolve()));
          inProgress++;
          const handled = onRequest(
            request as unknown as IncomingMessage,
            response as unknown as ServerResponse,
          );
          void Promise.all([handled, closed]).then(() => {
            if (--inProgress === 0) whenIdle();
          });
        }),
        onClosed: () => {
          open.delete(connection);
          request?.close();
          response?.close();
        },
      };
    });
    const stop = () => void listener.close();
    return {
      address,
      stop,
      idle: (signal) =>
        new Promise((resolve) => {
          if (inProgress === 0) return resolve();
          const off = onAbort(signal, () => resolve());
          whenIdle = () => {
            off();
            resolve();
          };
        }),
      close: () => {
        stop();
        for (const connection of open) connection.destroy();
        return Promise.resolve();
      },
    };
  };
}

class SimRequest extends EventEmitter {
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  #isPaused = false;
  #isOver = false;
  #rest: (() => void) | null = null;

  constructor({ method, path, headers }: RequestHead) {
    super();
    this.method = method;
    this.url = path;
    this.rawHeaders = headers.flat();
    this.headers = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]));
  }

  /** The body has arrived. It is read in a turn of its own, as from a socket. */
  receive(process: SimProcess, body: string): void {
    process.schedule("network", 0, () => {
      const read = () => {
        this.#isOver = true;
        if (body !== "") this.emit("data", Buffer.from(body));
        this.emit("end");
      };
      if (this.#isPaused) this.#rest = read;
      else if (!this.#isOver) read();
    });
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    const rest = this.#rest;
    this.#rest = null;
    rest?.();
  }

  close(): void {
    this.#isOver = true;
    this.emit("close");
  }
}

class SimResponse extends EventEmitter {
  readonly #connection: Connection;
  readonly #headers: Record<string, string> = {};
  statusCode = 200;
  headersSent = false;
  destroyed = false;

  constructor(connection: Connection) {
    super();
    this.#connection = connection;
  }

  setHeader(name: string, value: string | number | readonly string[]): void {
    this.#headers[name.toLowerCase()] = String(value);
  }

  /** `headers`: by their names, or names and values in turn. */
  writeHead(status: number, headers: Readonly<Record<string, string | number>> | readonly string[]): void {
    this.statusCode = status;
    const pairs = Array.isArray(headers) ? pairRawHttpHeaders(headers) : Object.entries(headers);
    for (const [name, value] of pairs) this.setHeader(name, value);
  }

  end(body = ""): void {
    if (this.headersSent || this.destroyed) return;
    this.headersSent = true;
    const line: ResponseLine = { status: this.statusCode, headers: this.#headers, body };
    this.#connection.write(encoded(line));
    this.#connection.end();
    this.close();
  }

  destroy(): void {
    this.#connection.destroy();
    this.close();
  }

  close(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit("close");
  }
}
