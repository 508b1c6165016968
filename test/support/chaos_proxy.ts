/**
 * A bad network between a client and a server, on TCP or on a unix socket: cut, black hole, half-open, slow, refusing;
 * and, because it knows ZooKeeper's frames, the loss of one chosen request or reply. A hole does to the bytes what TCP
 * does: they wait, and arrive when it heals. Also the end of a connection is not seen through a hole.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Address } from "../../src/base/sockets/connection.ts";
import { type FrameInfo, FrameObserver } from "./frame_observer.ts";

export type Direction = "requests" | "replies";

/** What to do with the nth frame of a direction. */
export interface FrameFault {
  readonly direction: Direction;
  /** 0 is the first that passes from now on, of all connections together. */
  readonly nth: number;
  /**
   * drop: it does not arrive, and all connections are cut. tear: half of it arrives, and the end of its connection
   * behind that. hold: it and what follows wait until `heal()`.
   */
  readonly action: "drop" | "tear" | "hold";
  /** Which frames count; without it all but pings and watch events. */
  readonly matching?: (frame: FrameInfo) => boolean;
}

interface ArmedFault extends FrameFault {
  passed: number;
  readonly happened: (frame: FrameInfo) => void;
}

export class ChaosProxy {
  readonly address: Address;
  /** Frames that arrived at the other side, pings and watch events counted apart. */
  readonly counts = { connections: 0, requests: 0, replies: 0, pings: 0, events: 0 };
  readonly #server: Server;
  readonly #target: Address;
  /** Of the unix socket. */
  readonly #folder: string | null;
  readonly #links = new Set<Link>();
  readonly #holes = new Set<Direction>();
  readonly #faults = new Set<ArmedFault>();
  #refusing = false;
  #delayMs = 0;

  /** Listens on a free port of 127.0.0.1, or on a unix socket. */
  static async start(target: Address, { over = "tcp" }: { over?: "tcp" | "unix" } = {}): Promise<ChaosProxy> {
    const folder = over === "unix" ? mkdtempSync(join(tmpdir(), "baton-proxy-")) : null;
    const path = join(folder ?? "", "proxy.sock");
    const server = createServer({ allowHalfOpen: true });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      if (over === "unix") server.listen(path, resolve);
      else server.listen(0, "127.0.0.1", resolve);
    });
    const address: Address = over === "unix"
      ? { kind: "unix", path }
      : { kind: "tcp", host: "127.0.0.1", port: (server.address() as { port: number }).port };
    return new ChaosProxy(server, { address, target, folder });
  }

  private constructor(server: Server, place: { address: Address; target: Address; folder: string | null }) {
    this.address = place.address;
    this.#target = place.target;
    this.#folder = place.folder;
    this.#server = server;
    server.on("connection", (client: Socket) => this.#accept(client));
  }

  /** As for `--servers`. */
  get servers(): string {
    return this.address.kind === "unix" ? `unix:${this.address.path}` : `${this.address.host}:${this.address.port}`;
  }

  /** Open connections. */
  get connections(): number {
    return this.#links.size;
  }

  /** Resets every connection, both ways. New ones are accepted. */
  cut(): void {
    for (const link of this.#links) link.reset();
  }

  /** Nothing passes any more, in both directions or in one (half-open). New connections open and hear nothing. */
  blackHole(direction: Direction | "both" = "both"): void {
    if (direction !== "replies") this.#holes.add("requests");
    if (direction !== "requests") this.#holes.add("replies");
  }

  /** Resets every new connection at once, until `accept()` or `heal()`. */
  refuse(): void {
    this.#refusing = true;
  }

  /** Takes new connections again; all else stays as it is. */
  accept(): void {
    this.#refusing = false;
  }

  /** Each chunk arrives so many milliseconds late. */
  delay(milliseconds: number): void {
    this.#delayMs = milliseconds;
  }

  /** Ends every hole, hold, delay and refusal, and disarms the frame faults; what waited arrives. */
  heal(): void {
    this.#holes.clear();
    this.#faults.clear();
    this.#refusing = false;
    this.#delayMs = 0;
    for (const link of this.#links) link.flush();
  }

  /** Arms one fault; the promise is fulfilled with the frame when it has happened. Several can be armed. */
  onFrame(fault: FrameFault): Promise<FrameInfo> {
    return new Promise((happened) => this.#faults.add({ ...fault, passed: 0, happened }));
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cut();
    await closed;
    if (this.#folder !== null) rmSync(this.#folder, { recursive: true, force: true });
  }

  #accept(client: Socket): void {
    this.counts.connections++;
    if (this.#refusing) {
      client.on("error", () => {});
      client.resetAndDestroy();
      return;
    }
    const link: Link = new Link(client, this.#target, {
      blocked: (direction) => this.#holes.has(direction),
      delayMs: () => this.#delayMs,
      judge: (direction, frame) => this.#judge(link, direction, frame),
      passed: (frame) => this.#count(frame),
      closed: () => this.#links.delete(link),
    });
    this.#links.add(link);
  }

  /** Whether the frame may go on its way. */
  #judge(link: Link, direction: Direction, frame: FrameInfo): boolean {
    for (const fault of this.#faults) {
      const counts = fault.matching ?? ordinary;
      if (fault.direction !== direction || !counts(frame)) continue;
      if (fault.passed++ < fault.nth) continue;
      this.#faults.delete(fault);
      if (fault.action === "drop") this.cut();
      else if (fault.action === "tear") link.tear(direction);
      else this.#holes.add(direction);
      fault.happened(frame);
      return false;
    }
    return true;
  }

  #count(frame: FrameInfo): void {
    if (frame.operation === "ping") this.counts.pings++;
    else if (frame.kind === "event") this.counts.events++;
    else this.counts[frame.kind === "request" ? "requests" : "replies"]++;
  }
}

/** Pings come when time passes, events when others act: counting them would make a test depend on both. */
const ordinary = (frame: FrameInfo) => frame.operation !== "ping" && frame.kind !== "event";

interface LinkOwner {
  blocked(direction: Direction): boolean;
  delayMs(): number;
  judge(direction: Direction, frame: FrameInfo): boolean;
  passed(frame: FrameInfo): void;
  closed(): void;
}

/** What waits to be handed on: a frame (or bytes that are none), or the end of the stream. */
type Parcel = { bytes: Uint8Array; info: FrameInfo | null } | "end";

/** One connection: the client's socket, the server's, and what is on its way between them. */
class Link {
  readonly #owner: LinkOwner;
  readonly #sockets: Record<Direction, Socket>;
  readonly #waiting: Record<Direction, Parcel[]> = { requests: [], replies: [] };
  #open = true;

  constructor(client: Socket, target: Address, owner: LinkOwner) {
    this.#owner = owner;
    const server = target.kind === "unix"
      ? connect({ path: target.path, allowHalfOpen: true })
      : connect({ host: target.host, port: target.port, allowHalfOpen: true });
    this.#sockets = { requests: server, replies: client }; // each direction's destination
    const observer = new FrameObserver();
    this.#carry("requests", client, (chunk) => observer.requests(chunk));
    this.#carry("replies", server, (chunk) => observer.replies(chunk));
  }

  /** RST to both sides. */
  reset(): void {
    if (!this.#open) return;
    this.#open = false;
    for (const socket of Object.values(this.#sockets)) socket.resetAndDestroy();
    this.#owner.closed();
  }

  /** The first half of what is next in this direction, and then the end of both. */
  tear(direction: Direction): void {
    const next = this.#waiting[direction][0];
    if (!this.#open || next === undefined || next === "end") return;
    this.#open = false;
    this.#sockets[direction].end(next.bytes.subarray(0, next.bytes.byteLength >> 1));
    this.#sockets[direction === "requests" ? "replies" : "requests"].resetAndDestroy();
    this.#owner.closed();
  }

  /** Hands on what waits, as far as it may go. */
  flush(): void {
    for (const direction of ["requests", "replies"] as const) this.#handOn(direction);
  }

  #carry(direction: Direction, source: Socket, cut: (chunk: Uint8Array) => Exclude<Parcel, "end">[]): void {
    const arrived = (parcels: Parcel[]) => {
      const arrive = () => {
        this.#waiting[direction].push(...parcels);
        this.#handOn(direction);
      };
      const delayMs = this.#owner.delayMs();
      if (delayMs > 0) setTimeout(arrive, delayMs);
      else arrive();
    };
    source.on("data", (chunk: Uint8Array) => arrived(cut(new Uint8Array(chunk))));
    source.on("end", () => arrived(["end"]));
    source.on("error", () => this.#broken(direction));
    source.on("close", () => this.#broken(direction));
  }

  /** One side is gone without an orderly end: the other side hears of it, unless a hole is in between. */
  #broken(direction: Direction): void {
    if (this.#open && !this.#owner.blocked(direction)) this.reset();
  }

  #handOn(direction: Direction): void {
    const waiting = this.#waiting[direction];
    while (this.#open && waiting[0] !== undefined && !this.#owner.blocked(direction)) {
      const parcel = waiting[0];
      if (parcel === "end") {
        waiting.shift();
        this.#sockets[direction].end();
        continue;
      }
      if (parcel.info !== null && !this.#owner.judge(direction, parcel.info)) return;
      waiting.shift();
      this.#sockets[direction].write(parcel.bytes);
      if (parcel.info !== null) this.#owner.passed(parcel.info);
    }
    const [source, destination] = direction === "requests"
      ? [this.#sockets.replies, this.#sockets.requests]
      : [this.#sockets.requests, this.#sockets.replies];
    if (source.destroyed && !destination.destroyed && waiting.length === 0) this.#broken(direction);
  }
}
