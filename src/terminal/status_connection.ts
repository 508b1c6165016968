/** One connection to a status page: the head of one request in, one response out, then the end. Owns the connection. */
import type { Connection, ConnectionHandlers } from "../sockets/connection.ts";
import type { Clock } from "../support/clock.ts";

export interface StatusRequest {
  readonly method: string;
  /** Without what follows a question mark. */
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

const headBytesMax = 16 << 10;
/** For the head of a request to arrive, and again for the response to be taken. */
const phaseMsMax = 5000;
/** For the response to be made: as long as Prometheus waits. */
const responseMsMax = 10_000;

export class StatusConnection implements ConnectionHandlers {
  readonly #connection: Connection;
  readonly #options: StatusConnectionOptions;
  #head = "";
  #hasRequest = false;
  #hasEnded = false;
  #isClosed = false;
  #cancelDeadline: () => void;

  constructor(connection: Connection, options: StatusConnectionOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#cancelDeadline = options.clock.after(phaseMsMax, () => this.destroy());
  }

  /** The head of a request has arrived. */
  get hasRequest(): boolean {
    return this.#hasRequest;
  }

  destroy(): void {
    this.#connection.destroy();
  }

  data(chunk: Uint8Array): void {
    if (this.#hasRequest) return; // a body that nobody reads
    this.#head += Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString("latin1");
    if (/\r?\n\r?\n/.test(this.#head)) return this.#answer();
    if (this.#head.length <= headBytesMax) return;
    this.#hasRequest = true;
    this.#send({ status: 431, type: plainText, text: `The request is longer than ${headBytesMax} bytes\n` }, false);
  }

  ended(): void {
    if (!this.#hasRequest) return this.destroy();
    this.#hasEnded = true;
  }

  closed(): void {
    this.#isClosed = true;
    this.#cancelDeadline();
    this.#options.closed();
  }

  #answer(): void {
    this.#hasRequest = true;
    if (this.#head.length > headBytesMax) {
      return this.#send(
        { status: 431, type: plainText, text: `The request is longer than ${headBytesMax} bytes\n` },
        false,
      );
    }
    const [, method, target] = /^([A-Z]+) (\S+) HTTP\/1\.[01]\r?\n/.exec(this.#head) ?? [];
    this.#head = "";
    if (method === undefined || target === undefined) {
      return this.#send({ status: 400, type: plainText, text: "This is no HTTP/1 request\n" }, false);
    }
    this.#cancelDeadline();
    this.#cancelDeadline = this.#options.clock.after(responseMsMax, () => this.destroy());
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
    // The other side closes too, after what it still had to send; with what it sends unread the response could be lost.
    this.#cancelDeadline = this.#options.clock.after(
      this.#hasEnded ? phaseMsMax / 5 : phaseMsMax,
      () => this.destroy(),
    );
  }
}
