/**
 * A server that answers with bytes, which need not be HTTP, and closes the connection. It remembers what it was sent.
 */
import net, { type AddressInfo } from "node:net";

/**
 * What is written, in parts, and what happens then: "end" closes in order, "reset" breaks the connection, "open" leaves
 * it.
 */
export interface RawAnswer {
  readonly parts: readonly string[];
  readonly then?: "end" | "reset" | "open";
}

export class RawBackend implements AsyncDisposable {
  /** The heads and bodies of the requests, as Latin-1. */
  readonly received: string[] = [];
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();
  connections = 0;

  /** `answer`: called when a request has arrived completely. */
  constructor(answer: (request: string, count: number) => RawAnswer) {
    this.#server = net.createServer({ allowHalfOpen: true }, (socket) => {
      this.connections++;
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.#sockets.delete(socket));
      let text = "";
      socket.on("data", (chunk) => {
        text += chunk.toString("latin1");
        const [head = "", body] = text.split(/\r\n\r\n(.*)/s);
        if (body === undefined || body.length < Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)) return;
        this.received.push(text);
        const { parts, then = "end" } = answer(text, this.received.length);
        text = "";
        for (const part of parts) socket.write(Buffer.from(part, "latin1"));
        if (then === "end") socket.end();
        if (then === "reset") socket.resetAndDestroy();
      });
    });
  }

  port = 0;

  async up(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

/** A response whose Content-Length is that of its body, unless `headers` have one. */
export function rawResponse(status: number | string, body = "", headers: readonly string[] = []): string {
  const hasLength = headers.some((line) => /^(content-length|transfer-encoding):/i.test(line));
  const length = hasLength ? [] : [`Content-Length: ${body.length}`];
  return [`HTTP/1.1 ${status} Reason`, ...headers, ...length, "", body].join("\r\n");
}
