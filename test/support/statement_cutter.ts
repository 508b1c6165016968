/**
 * A TCP proxy for PostgreSQL's protocol that cuts the connection at a chosen moment of a statement: when it is sent,
 * before the database has it; when the database has executed it and its result is on the way. A cut towards the
 * database may also leave the statement there.
 */
import { connect, createServer, type Server, type Socket } from "node:net";

/**
 * `before`: the statement does not reach the database. `sent`: it reaches the database, and the connection is cut
 * immediately. `after`: the result of the statement is dropped, and the connection is cut.
 */
export type StatementCut = "before" | "sent" | "after";

export class StatementCutter implements AsyncDisposable {
  readonly port: number;
  readonly #server: Server;
  #target: { readonly host: string; readonly port: number };
  readonly #sockets = new Set<Socket>();
  #armed: { readonly cut: StatementCut; readonly marker: string } | null = null;
  cuts = 0;
  #isHeld = false;

  /** No statement has been cut since `arm`. */
  get isArmed(): boolean {
    return this.#armed !== null;
  }

  private constructor(server: Server, target: { readonly host: string; readonly port: number }) {
    this.#server = server;
    this.#target = target;
    this.port = (server.address() as { port: number }).port;
    server.on("connection", (client: Socket) => this.#accept(client));
  }

  static async start(target: { readonly host: string; readonly port: number }): Promise<StatementCutter> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, "127.0.0.1", resolve);
    });
    return new StatementCutter(server, target);
  }

  /**
   * Cuts the connection of the next statement whose messages contain this text, such as the name of the prepared
   * statement.
   */
  arm(cut: StatementCut, marker: string): void {
    this.#armed = { cut, marker };
  }

  /** Cuts nothing more. */
  disarm(): void {
    this.#armed = null;
  }

  /** Cuts all connections. Returns how many there were. */
  cutAll(): number {
    const count = this.#sockets.size / 2;
    for (const socket of this.#sockets) socket.destroy();
    return count;
  }

  /** Passes nothing on, in either direction, and closes nothing: a network that has failed. */
  hold(): void {
    this.#isHeld = true;
    for (const socket of this.#sockets) socket.pause();
  }

  release(): void {
    this.#isHeld = false;
    for (const socket of this.#sockets) socket.resume();
  }

  /** New connections go to another database. */
  retarget(target: { readonly host: string; readonly port: number }): void {
    this.#target = target;
    this.cutAll();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(client: Socket): void {
    const server = connect(this.#target);
    let dropsResult = false;
    const end = () => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on("error", end);
      socket.on("close", () => {
        this.#sockets.delete(socket);
        end();
      });
      if (this.#isHeld) socket.pause();
    }
    client.on("data", (bytes: Buffer) => {
      const armed = this.#armed;
      if (armed === null || !bytes.includes(armed.marker)) return void server.write(bytes);
      this.#armed = null;
      this.cuts++;
      if (armed.cut === "before") return end();
      if (armed.cut === "after") {
        dropsResult = true;
        return void server.write(bytes);
      }
      server.write(bytes, () => {
        client.destroy();
        server.end();
      });
    });
    server.on("data", (bytes: Buffer) => {
      if (dropsResult) return end();
      client.write(bytes);
    });
  }
}
