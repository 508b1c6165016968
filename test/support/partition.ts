/** The network between the servers of an ensemble, which can be cut in two without a word to anybody: bytes vanish. */
import { connect, createServer, type Server, type Socket } from "node:net";

export class Partition {
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  #isolated: number | null = null;

  /** For BackendOptions. */
  readonly portBetween = async (from: number, to: number, port: number): Promise<number> => {
    const server = createServer((near) => {
      const far = connect(port, "127.0.0.1");
      this.#carry(near, far, () => from === this.#isolated || to === this.#isolated);
      this.#carry(far, near, () => from === this.#isolated || to === this.#isolated);
    });
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
    this.#servers.push(server);
    return (server.address() as { port: number }).port;
  };

  /** From now on this server, counted from 0, and the others hear nothing of each other. */
  isolate(node: number): void {
    this.#isolated = node;
  }

  close(): void {
    for (const server of this.#servers) server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #carry(from: Socket, to: Socket, isCut: () => boolean): void {
    this.#sockets.add(from);
    from.on("data", (chunk: Uint8Array) => {
      if (!isCut()) to.write(chunk);
    });
    from.on("error", () => {});
    from.on("close", () => {
      this.#sockets.delete(from);
      if (!isCut()) to.destroy();
    });
  }
}
