/**
 * A bad network between ZeroMQ sockets, on TCP, that knows where a message begins and ends: it can lose, delay and
 * reorder whole messages, lose bytes in one direction, cut, and it remembers requests, for somebody to send them again
 * much later. Owns its listener and its connections.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { type ZmtpUnit, ZmtpUnits } from "./zmtp_units.ts";

export type Direction = "requests" | "replies";

/**
 * hole: as TCP has it, all waits until it is healed. drop: messages vanish. shuffle: each message is late by up to so
 * many ms.
 */
export type Impairment = { readonly kind: "hole" | "drop" } | { readonly kind: "shuffle"; readonly ms: number };

/** Held for one connection and direction while a hole is there; more is lost with the connection. */
const heldBytesMax = 32 << 20;
/** Requests that are remembered. */
const rememberedMax = 4000;
const rememberedBytesMax = 64 << 10;

export class ZmtpRelay {
  readonly #server: Server;
  readonly #targetPort: number;
  readonly #random: () => number;
  readonly #links = new Set<Link>();
  #remembered: Uint8Array[][] = [];
  #seen = 0;
  /** Hears each request as it passes. */
  tap: ((frames: readonly Uint8Array[]) => void) | null = null;
  /** Of new connections, too. */
  readonly #impaired = new Map<Direction, Impairment>();

  /** From a free port of 127.0.0.1 to `targetPort`. */
  static async start(targetPort: number, random: () => number): Promise<ZmtpRelay> {
    const server = createServer({ allowHalfOpen: true });
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
    return new ZmtpRelay(server, targetPort, random);
  }

  private constructor(server: Server, targetPort: number, random: () => number) {
    this.#server = server;
    this.#targetPort = targetPort;
    this.#random = random;
    server.on("connection", (near) => {
      const link: Link = new Link(near, connect({ host: "127.0.0.1", port: targetPort, allowHalfOpen: true }), {
        random,
        request: (frames) => {
          this.tap?.(frames);
          this.#remember(frames);
        },
        closed: () => this.#links.delete(link),
      });
      for (const [direction, impairment] of this.#impaired) link.impair(direction, impairment);
      this.#links.add(link);
    });
  }

  get endpoint(): string {
    return `tcp://127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  /** Past the relay. */
  get target(): string {
    return `tcp://127.0.0.1:${this.#targetPort}`;
  }

  get connections(): number {
    return this.#links.size;
  }

  /** Requests that have passed, some of all times. */
  get remembered(): readonly (readonly Uint8Array[])[] {
    return this.#remembered;
  }

  /** Resets each connection, or each with this probability. */
  cut(share = 1): void {
    for (const link of [...this.#links]) if (this.#random() < share) link.reset();
  }

  /** All connections that there are and that come. */
  impair(direction: Direction, impairment: Impairment): void {
    this.#impaired.set(direction, impairment);
    for (const link of this.#links) link.impair(direction, impairment);
  }

  heal(): void {
    this.#impaired.clear();
    for (const link of [...this.#links]) link.heal();
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cut();
    await closed;
  }

  /** A sample of all that passed: each has the same chance. Source: reservoir sampling. */
  #remember(frames: readonly Uint8Array[]): void {
    if (frames.reduce((sum, { byteLength }) => sum + byteLength, 0) > rememberedBytesMax) return;
    this.#seen++;
    const place = this.#remembered.length < rememberedMax
      ? this.#remembered.length
      : Math.floor(this.#random() * this.#seen);
    if (place < rememberedMax) this.#remembered[place] = frames.map((frame) => frame.slice());
  }
}

interface LinkOwner {
  readonly random: () => number;
  readonly request: (frames: readonly Uint8Array[]) => void;
  readonly closed: () => void;
}

/** One connection: near is who dialled, far is the target. */
class Link {
  readonly #owner: LinkOwner;
  readonly #sockets: Record<Direction, Socket>;
  readonly #impaired = new Map<Direction, Impairment>();
  readonly #held: Record<Direction, (Uint8Array | "end")[]> = { requests: [], replies: [] };
  #heldBytes = 0;
  #isOpen = true;

  constructor(near: Socket, far: Socket, owner: LinkOwner) {
    this.#owner = owner;
    this.#sockets = { requests: far, replies: near }; // each direction's destination
    for (const socket of [near, far]) socket.setNoDelay(true);
    this.#carry("requests", near);
    this.#carry("replies", far);
  }

  impair(direction: Direction, impairment: Impairment): void {
    this.#impaired.set(direction, impairment);
  }

  heal(): void {
    this.#impaired.clear();
    for (const direction of ["requests", "replies"] as const) {
      for (const held of this.#held[direction].splice(0)) this.#write(direction, held);
    }
    this.#heldBytes = 0;
    const { requests, replies } = this.#sockets;
    if (requests.destroyed || replies.destroyed) this.reset();
  }

  reset(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const socket of Object.values(this.#sockets)) socket.resetAndDestroy();
    this.#owner.closed();
  }

  #carry(direction: Direction, source: Socket): void {
    const units = new ZmtpUnits();
    source.on("data", (chunk: Uint8Array) => {
      for (const unit of units.push(chunk)) {
        if (direction === "requests" && unit.frames !== null) this.#owner.request(unit.frames);
        this.#pass(direction, unit);
      }
    });
    source.on("end", () => this.#write(direction, "end"));
    source.on("error", () => this.#broken(direction));
    source.on("close", () => this.#broken(direction));
    this.#sockets[direction].on("drain", () => source.resume());
  }

  #pass(direction: Direction, { bytes, frames }: ZmtpUnit): void {
    const impairment = this.#impaired.get(direction);
    if (frames !== null && impairment?.kind === "drop") return;
    if (frames !== null && impairment?.kind === "shuffle") {
      systemClock().startTimer(this.#owner.random() * impairment.ms, () => this.#write(direction, bytes));
    } else this.#write(direction, bytes);
  }

  #write(direction: Direction, what: Uint8Array | "end"): void {
    if (!this.#isOpen) return;
    if (this.#impaired.get(direction)?.kind === "hole") {
      this.#held[direction].push(what);
      this.#heldBytes += what === "end" ? 0 : what.byteLength;
      if (this.#heldBytes > heldBytesMax) this.reset();
      return;
    }
    const socket = this.#sockets[direction];
    if (what === "end") return void socket.end();
    const source = this.#sockets[direction === "requests" ? "replies" : "requests"];
    if (!socket.destroyed && !socket.write(what)) source.pause();
  }

  /** The other side hears of it, unless a hole is in between. */
  #broken(direction: Direction): void {
    if (this.#impaired.get(direction)?.kind !== "hole") this.reset();
  }
}
