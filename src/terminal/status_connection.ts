/** A connection of the status page: reads the header of one request, sends one response, and closes. Owns the connection. */
import type { Connection, ConnectionHandlers } from "../sockets/connection.ts";
import type { Clock } from "../support/clock.ts";

export interface StatusRequest {
  readonly method: string;
  /** The path without the query string. */
  readonly path: string;
}

export interface StatusResponse {
  readonly status: keyof typeof reasons;
  readonly type: string;
  readonly text: string;
}

export interface StatusConnectionOptions {
  readonly clock: Clock;
  /** Never rejects. */
  readonly respond: (request: StatusRequest) => Promise<StatusResponse>;
  /** Called once, when the connection is closed. */
  readonly closed: () => void;
}

export const plainText = "text/plain; charset=utf-8";

const reasons = {
  200: "OK",
  400: "Bad Request",
  404: "Not Found",
  405: "Method Not Allowed",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  503: "Service Unavailable",
};

const headerBytesMax = 16 << 10;
/** The maximum time to receive a request header, and to send a response. */
const phaseMsMax = 5000;
/** The maximum time to create a response, which is the timeout of Prometheus. */
const responseMsMax = 10_000;

export class StatusConnection implements ConnectionHandlers {
  readonly #connection: Connection;
  readonly #options: StatusConnectionOptions;
  #header = "";
  #hasRequest = false;
  #hasEnded = false;
  #isClosed = false;
  #cancelDeadline: () => void;

  constructor(connection: Connection, options: StatusConnectionOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#cancelDeadline = options.clock.startTimer(phaseMsMax, () => this.destroy());
  }

  /** Whether a request header has arrived. */
  get hasRequest(): boolean {
    return this.#hasRequest;
  }

  destroy(): void {
    this.#connection.destroy();
  }

  onData(chunk: Uint8Array): void {
    if (this.#hasRequest) return; // the body is ignored
    this.#header += Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString("latin1");
    const isTooLong = this.#header.length > headerBytesMax;
    if (!isTooLong && !/\r?\n\r?\n/.test(this.#header)) return;
    this.#hasRequest = true;
    if (!isTooLong) return this.#respond();
    this.#send({ status: 431, type: plainText, text: `The request is longer than ${headerBytesMax} bytes\n` }, false);
  }

  onEnded(): void {
    if (!this.#hasRequest) return this.destroy();
    this.#hasEnded = true;
  }

  onClosed(): void {
    this.#isClosed = true;
    this.#cancelDeadline();
    this.#options.closed();
  }

  #respond(): void {
    const [, method, target] = /^([A-Z]+) (\S+) HTTP\/1\.[01]\r?\n/.exec(this.#header) ?? [];
    this.#header = "";
    if (method === undefined || target === undefined) {
      return this.#send({ status: 400, type: plainText, text: "Not an HTTP/1 request\n" }, false);
    }
    this.#cancelDeadline();
    this.#cancelDeadline = this.#options.clock.startTimer(responseMsMax, () => this.destroy());
    const path = target.replace(/\?.*$/s, "");
    void this.#options.respond({ method, path }).then((response) => this.#send(response, method === "HEAD"));
  }

  #send({ status, type, text }: StatusResponse, isHead: boolean): void {
    if (this.#isClosed) return;
    const body = Buffer.from(text);
    const head =
      `HTTP/1.1 ${status} ${reasons[status]}\r\ncontent-type: ${type}\r\ncontent-length: ${body.byteLength}\r\n` +
      "cache-control: no-store\r\nconnection: close\r\n\r\n";
    this.#connection.write(Buffer.concat([Buffer.from(head), isHead ? Buffer.alloc(0) : body]));
    this.#connection.end();
    this.#cancelDeadline();
    // The client closes after its remaining data. Closing with unread data could lose the response.
    this.#cancelDeadline = this.#options.clock.startTimer(
      this.#hasEnded ? phaseMsMax / 5 : phaseMsMax,
      () => this.destroy(),
    );
  }
}
