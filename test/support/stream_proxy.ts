/**
 * A TCP connection that can be cut, or swallow everything without an end: what is between two sockets when a cable is
 * pulled.
 */
import net from "node:net";

export class StreamProxy {
  readonly port: number;
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();
  /** Nothing gets through, neither bytes nor ends; what is sent meanwhile is lost. */
  isHole = false;
  connections = 0;

  /** Listens on a free port of 127.0.0.1 and passes on to `targetPort`. */
  static async start(targetPort: number): Promise<StreamProxy> {
    const server = net.createServer({ allowHalfOpen: true });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new StreamProxy(server, targetPort);
  }

  private constructor(server: net.Server, targetPort: number) {
    this.#server = server;
    this.port = (server.address() as net.AddressInfo).port;
    server.on("connection", (near) => {
      this.connections++;
      const far = net.connect({ port: targetPort, host: "127.0.0.1", allowHalfOpen: true });
      this.#join(near, far);
      this.#join(far, near);
    });
  }

  get endpoint(): string {
    return `tcp://127.0.0.1:${this.port}`;
  }

  /** Resets every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #join(from: net.Socket, to: net.Socket): void {
    this.#sockets.add(from);
    from.on("data", (chunk: Uint8Array) => this.isHole || to.write(chunk));
    from.on("end", () => this.isHole || to.end());
    from.on("error", () => {});
    from.on("close", () => {
      this.#sockets.delete(from);
      if (!this.isHole) to.destroy();
    });
  }
}
