/**
 * A TCP proxy between two ZeroMQ sockets that reads along: which commands passed, in each direction. It can stop
 * passing bytes on, as a network or a peer that went silent does, and cut. Its parser is its own, and knows only what
 * is not encrypted: a greeting of 64 octets, then frames (RFC 37, "Framing").
 */
import { connect, createServer, type Server, type Socket } from "node:net";

/** From the side that connects to the side that binds, or back. */
export type Direction = "up" | "down";

export class ZmtpTap {
  readonly #server: Server;
  readonly #links = new Set<readonly [Socket, Socket]>();
  readonly #commands: Record<Direction, string[]> = { up: [], down: [] };
  readonly #silent = new Set<Direction>();
  #connections = 0;

  /** In front of a bound tcp endpoint. */
  static async start(target: string): Promise<ZmtpTap> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new ZmtpTap(server, Number(target.slice(target.lastIndexOf(":") + 1)));
  }

  private constructor(server: Server, port: number) {
    this.#server = server;
    server.on("connection", (near: Socket) => {
      this.#connections++;
      const far = connect(port, "127.0.0.1");
      const link = [near, far] as const;
      this.#links.add(link);
      this.#carry("up", near, far);
      this.#carry("down", far, near);
      for (const socket of link) {
        socket.on("error", () => {}); // close follows
        socket.on("close", () => {
          this.#links.delete(link);
          for (const each of link) each.destroy();
        });
      }
    });
  }

  get endpoint(): string {
    return `tcp://127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  /** Connections so far. */
  get connections(): number {
    return this.#connections;
  }

  /** The names of the commands that passed, such as "READY", "PING", "PONG". */
  commands(direction: Direction): readonly string[] {
    return this.#commands[direction];
  }

  /** Bytes are taken and not passed on, in the given directions, on this and later connections. */
  silence(...directions: Direction[]): void {
    for (const direction of directions) this.#silent.add(direction);
  }

  /** Passes on what comes from now on; connections that were silenced are cut, since bytes of theirs are lost. */
  heal(): void {
    this.#silent.clear();
    this.cut();
  }

  cut(): void {
    for (const link of this.#links) for (const socket of link) socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cut();
    await closed;
  }

  #carry(direction: Direction, from: Socket, to: Socket): void {
    const heard = commandReader((name) => this.#commands[direction].push(name));
    from.on("data", (chunk: Uint8Array) => {
      if (this.#silent.has(direction)) return;
      heard(chunk);
      to.write(chunk);
    });
  }
}

const greetingBytes = 64;

/** Bytes in, names of commands out. */
function commandReader(found: (name: string) => void): (chunk: Uint8Array) => void {
  let rest = Buffer.alloc(0);
  let skip = greetingBytes;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const skipped = Math.min(skip, rest.length);
      rest = rest.subarray(skipped);
      skip -= skipped;
      const isLong = ((rest[0] ?? 0) & 2) !== 0;
      const headerBytes = isLong ? 9 : 2;
      // A command's name is at most 255 octets behind the octet with its length.
      if (skip > 0 || rest.length < headerBytes) return;
      const bodyBytes = isLong ? Number(rest.readBigUInt64BE(1)) : rest.readUInt8(1);
      const isCommand = ((rest[0] ?? 0) & 4) !== 0;
      if (isCommand) {
        const nameBytes = rest[headerBytes];
        if (nameBytes === undefined || rest.length < headerBytes + 1 + nameBytes) return;
        found(rest.toString("latin1", headerBytes + 1, headerBytes + 1 + nameBytes));
      }
      skip = headerBytes + bodyBytes;
    }
  };
}
