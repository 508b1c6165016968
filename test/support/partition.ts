/** The network between the servers of an ensemble, which can be cut in two without a word to anybody: bytes vanish. */
import { connect, createServer, type Server, type Socket } from "node:net";

export class Partition {
  readonly #servers: Server[] = [];
  /** Each with the two servers that it is between. */
  readonly #sockets = new Map<Socket, readonly [number, number]>();
  #isolated: number | null = null;

  /** For BackendOptions. */
  readonly portBetween = async (from: number, to: number, port: number): Promise<number> => {
    const server = createServer((near) => {
      const far = connect(port, "127.0.0.1");
      this.#carry(near, far, [from, to]);
      this.#carry(far, near, [from, to]);
    });
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
    this.#servers.push(server);
    return (server.address() as { port: number }).port;
  };

  /** From now on this server, counted from 0, and the others hear nothing of each other. */
  isolate(node: number): void {
    this.#isolated = node;
  }

  /** They hear of each other again, over new connections: what the old ones swallowed is lost. */
  heal(): void {
    const torn = [...this.#sockets].filter(([, between]) => this.#isCut(between));
    this.#isolated = null;
    for (const [socket] of torn) socket.destroy();
  }

  close(): void {
    for (const server of this.#servers) server.close();
    for (const socket of this.#sockets.keys()) socket.destroy();
  }

  #isCut(between: readonly [number, number]): boolean {
    return this.#isolated !== null && between.includes(this.#isolated);
  }

  #carry(from: Socket, to: Socket, between: readonly [number, number]): void {
    const isCut = () => this.#isCut(between);
    this.#sockets.set(from, between);
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
