/**
 * One end of a ZMTP connection by hand: any octets out, and what came in. Shares nothing with the product's codec. NULL
 * only (RFC 23 and 37).
 */
import { connect, createServer, type Socket } from "node:net";
import { eventually } from "../eventually.ts";

/** A frame as it came. */
export interface RawFrame {
  readonly flags: number;
  readonly body: Buffer;
}

export const flag = { more: 1, long: 2, command: 4 } as const;

/** RFC 37, "Greeting". */
export function greeting({ major = 3, minor = 1, mechanism = "NULL", asServer = 0 } = {}): Buffer {
  const bytes = Buffer.alloc(64);
  bytes[0] = 0xff;
  bytes[9] = 0x7f;
  bytes[10] = major;
  bytes[11] = minor;
  bytes.write(mechanism, 12, "latin1");
  bytes[32] = asServer;
  return bytes;
}

/** A frame with a length of one octet. */
export function shortFrame(flags: number, body: string | Buffer): Buffer {
  const octets = Buffer.from(body as string, "latin1");
  return Buffer.concat([Buffer.from([flags, octets.length]), octets]);
}

/** A frame with a length of eight octets, whatever the body's size. */
export function longFrame(flags: number, body: string | Buffer): Buffer {
  const octets = Buffer.from(body as string, "latin1");
  const header = Buffer.alloc(9);
  header[0] = flags | flag.long;
  header.writeBigUInt64BE(BigInt(octets.length), 1);
  return Buffer.concat([header, octets]);
}

export function command(name: string, data: string | Buffer = ""): Buffer {
  const body = Buffer.concat([Buffer.from([name.length]), Buffer.from(name + data.toString("latin1"), "latin1")]);
  return shortFrame(flag.command, body);
}

export function ready(properties: Readonly<Record<string, string>>): Buffer {
  const parts = Object.entries(properties).map(([name, value]) => {
    const size = Buffer.alloc(4);
    size.writeUInt32BE(value.length);
    return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), size, Buffer.from(value, "latin1")]);
  });
  return command("READY", Buffer.concat(parts));
}

export class RawZmtp {
  readonly #socket: Socket;
  #received = Buffer.alloc(0);
  #closed = false;

  /** To a bound tcp endpoint. */
  static async connect(endpoint: string): Promise<RawZmtp> {
    const socket = connect(Number(endpoint.slice(endpoint.lastIndexOf(":") + 1)), "127.0.0.1");
    await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    return new RawZmtp(socket);
  }

  /** Listens, and hands over the first peer that connects; it serves no other one. */
  static async listen(): Promise<{ endpoint: string; accepted: Promise<RawZmtp> }> {
    const server = createServer();
    const accepted = new Promise<RawZmtp>((resolve) =>
      server.once("connection", (socket) => {
        server.close();
        resolve(new RawZmtp(socket));
      })
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return { endpoint: `tcp://127.0.0.1:${(server.address() as { port: number }).port}`, accepted };
  }

  private constructor(socket: Socket) {
    this.#socket = socket.setNoDelay(true);
    socket.on("data", (chunk: Uint8Array) => this.#received = Buffer.concat([this.#received, chunk]));
    socket.on("error", () => {}); // close follows
    socket.on("close", () => this.#closed = true);
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Everything that came, the greeting included. */
  get received(): Buffer {
    return this.#received;
  }

  /** The whole frames behind the greeting. */
  get frames(): RawFrame[] {
    const frames: RawFrame[] = [];
    for (let at = 64; at + 2 <= this.#received.length;) {
      const flags = this.#received.readUInt8(at);
      const isLong = (flags & flag.long) !== 0;
      const headerBytes = isLong ? 9 : 2;
      if (at + headerBytes > this.#received.length) break;
      const size = isLong ? Number(this.#received.readBigUInt64BE(at + 1)) : this.#received.readUInt8(at + 1);
      const end = at + headerBytes + size;
      if (end > this.#received.length) break;
      frames.push({ flags, body: this.#received.subarray(at + headerBytes, end) });
      at = end;
    }
    return frames;
  }

  /** The commands that came, as text of octets: the name's length, the name, the data. */
  get commands(): string[] {
    return this.frames.filter(({ flags }) => (flags & flag.command) !== 0).map(({ body }) => body.toString("latin1"));
  }

  /** The messages that came. */
  get messages(): string[][] {
    const messages: string[][] = [];
    let open: string[] = [];
    for (const { flags, body } of this.frames) {
      if ((flags & flag.command) !== 0) continue;
      open.push(body.toString("latin1"));
      if ((flags & flag.more) !== 0) continue;
      messages.push(open);
      open = [];
    }
    return messages;
  }

  write(...parts: Uint8Array[]): void {
    this.#socket.write(Buffer.concat(parts));
  }

  /** Greets as a DEALER without an identity. */
  async shakeHands({ minor = 1, socketType = "DEALER" } = {}): Promise<void> {
    this.write(greeting({ minor }), ready({ "Socket-Type": socketType, Identity: "" }));
    await this.hearsReady();
  }

  /** Nothing but the own READY may be sent before: libzmq drops it. */
  async hearsReady(): Promise<void> {
    await this.hears(() => this.commands.some((text) => text.startsWith("\x05READY")), "READY");
  }

  async hears(condition: () => boolean, what: string): Promise<void> {
    await eventually(condition, { withinMs: 10_000, what: `a peer to say ${what}` });
  }

  async isDropped(): Promise<void> {
    await eventually(() => this.#closed, { withinMs: 10_000, what: "the peer to close the connection" });
  }

  close(): Promise<void> {
    this.#socket.destroy();
    return Promise.resolve();
  }
}
