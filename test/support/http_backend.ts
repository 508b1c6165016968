/** A backend that a test tells how to answer, and that remembers what it was sent. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
  readonly atMs: number;
}

export type Answer = (request: Received, response: ServerResponse, count: number) => void;

export class HttpBackend implements AsyncDisposable {
  readonly received: Received[] = [];
  readonly #server: Server;
  answer: Answer;
  port = 0;

  constructor(answer: Answer = (_, response) => response.end("ok")) {
    this.answer = answer;
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const received = {
          method: request.method ?? "",
          url: request.url ?? "",
          headers: request.headers,
          body: Buffer.concat(chunks).toString(),
          atMs: performance.now(),
        };
        this.received.push(received);
        this.answer(received, response, this.received.length);
      });
    });
  }

  /** At any free port, or again at the one that it had. */
  async up(): Promise<this> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(this.port, "127.0.0.1", () => resolve());
    });
    this.port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  async down(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.down();
  }
}
