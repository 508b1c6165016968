/** TLS with a certificate of the test's choice, in front of a server that speaks without: bytes pass as they are. */
import { connect, type Socket } from "node:net";
import { createServer, type Server } from "node:tls";

export class TlsFront {
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  /** Listens on a free port of 127.0.0.1; `cert` and `key` are PEM texts. */
  static async start(targetPort: number, tls: { readonly cert: string; readonly key: string }): Promise<TlsFront> {
    const server = createServer(tls);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new TlsFront(server, targetPort);
  }

  private constructor(server: Server, targetPort: number) {
    this.#server = server;
    this.port = (server.address() as { port: number }).port;
    server.on("tlsClientError", () => {});
    server.on("secureConnection", (near) => {
      const far = connect(targetPort, "127.0.0.1");
      for (const [from, to] of [[near, far], [far, near]] as const) {
        this.#sockets.add(from);
        from.on("data", (chunk: Uint8Array) => to.write(chunk));
        from.on("error", () => {});
        from.on("close", () => {
          this.#sockets.delete(from);
          to.destroy();
        });
      }
    });
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
