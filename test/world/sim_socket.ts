/** One end of a simulated connection. Bytes arrive in their order, in chunks of any size, or not at all. */
import type { Connection, ConnectionHandlers } from "../../src/base/sockets/connection.ts";
import type { Chance } from "./chance.ts";
import type { SimMachine, SimProcess } from "./sim_process.ts";
import type { SimNetwork } from "./sim_network.ts";

/** What a kernel takes from a process without the peer having read it. */
const sendBufferBytes = 64 << 10;

type Segment = { readonly kind: "data"; readonly bytes: Uint8Array } | { readonly kind: "fin" | "rst" };

/** An error of the system, as dial and connections report it. */
export function systemError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

export class SimSocket implements Connection {
  readonly id: number;
  readonly peer: string;
  readonly process: SimProcess;
  readonly #life: number;
  readonly #network: SimNetwork;
  readonly #chance: Chance;
  peerSocket: SimSocket | null = null;
  #handlers: ConnectionHandlers | null = null;
  /** The own end is closed: nothing is sent or read, and the kernel answers what arrives with a reset. */
  #isClosed = false;
  /** Closed by the process itself: it gets no more data. */
  #isDestroyed = false;
  #isEnding = false;
  #isPaused = false;
  /** Chunks that have arrived and that the process has not read. */
  #unread: Uint8Array[] = [];
  #isReadScheduled = false;
  #unsentBytes = 0;
  /** The time of the last arrival: later segments arrive later. */
  #lastArrivalMs = 0;
  /** Segments that wait for the route to be healed. */
  #held: Segment[] = [];
  #isHeld = false;

  constructor(network: SimNetwork, process: SimProcess, peer: string) {
    this.#network = network;
    this.process = process;
    this.#life = process.life;
    this.peer = peer;
    this.id = network.world.counts.get("sockets") ?? 0;
    network.world.count("sockets");
    this.#chance = network.world.chance.fork(`socket ${this.id}`);
    network.sockets.add(this);
    process.whenDead((how) => this.#processDied(how));
  }

  get machine(): SimMachine {
    return this.process.machine;
  }

  get bufferedBytes(): number {
    return Math.max(0, this.#unsentBytes - sendBufferBytes);
  }

  join(peer: SimSocket): void {
    this.peerSocket = peer;
  }

  setHandlers(handlers: ConnectionHandlers): void {
    this.#handlers = handlers;
    if (this.#isClosed) queueMicrotask(() => handlers.onClosed(null));
  }

  write(bytes: Uint8Array): void {
    if (this.#isClosed || this.#isEnding) return;
    this.#unsentBytes += bytes.byteLength;
    let rest = new Uint8Array(bytes); // `slice` of a Buffer would be a view of the sender's memory
    while (rest.byteLength > 1 && this.#chance.is(0.08)) {
      const length = this.#chance.whole(1, rest.byteLength - 1);
      this.#send({ kind: "data", bytes: rest.subarray(0, length) });
      rest = rest.subarray(length);
    }
    this.#send({ kind: "data", bytes: rest });
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#scheduleRead();
  }

  end(): void {
    if (this.#isClosed || this.#isEnding) return;
    this.#isEnding = true;
    this.#send({ kind: "fin" });
  }

  destroy(): void {
    this.#isDestroyed = true;
    if (this.#isClosed) return;
    this.#close();
    this.#send({ kind: this.#chance.is(0.5) ? "rst" : "fin" });
    this.#report(null);
  }

  /** The peer was accepted by a server. A socket that was closed meanwhile answers with a reset. */
  accepted(): void {
    const { peerSocket } = this;
    if (this.#isClosed && peerSocket !== null) peerSocket.#resetByPeer(this);
  }

  /** The connection breaks at this end; the other end is not told. */
  break(): void {
    if (this.#isClosed) return;
    this.#close();
    this.#report(systemError("ECONNRESET", "read ECONNRESET"));
  }

  #processDied(how: "killed" | "lost"): void {
    const wasClosed = this.#isClosed;
    this.#close();
    this.#handlers = null;
    if (how === "killed" && !wasClosed) this.#send({ kind: this.#chance.is(0.5) ? "rst" : "fin" });
  }

  #close(): void {
    this.#isClosed = true;
    this.#unread = [];
    this.#network.sockets.delete(this);
  }

  /** Reports the end in a turn of its own. */
  #report(error: Error | null): void {
    this.#atProcess(() => {
      const handlers = this.#handlers;
      this.#handlers = null;
      handlers?.onClosed(error);
    });
  }

  #atProcess(work: () => void): void {
    if (this.process.life === this.#life) this.process.schedule("network", 0, work);
  }

  #send(segment: Segment): void {
    const { peerSocket: peer } = this;
    if (peer === null) return;
    const { world } = this.#network;
    const route = this.#network.route(this.machine, peer.machine);
    const atMs = Math.max(world.nowMs + this.#network.delayMs(route), this.#lastArrivalMs + 0.001);
    this.#lastArrivalMs = atMs;
    world.after(atMs - world.nowMs, () => {
      if (route.cuts === 0 && !this.#isHeld) return peer.#receive(segment, this);
      if (segment.kind === "rst") return world.count("effect cut"); // a reset is not sent again
      this.#held.push(segment);
      if (this.#isHeld) return;
      this.#isHeld = true;
      this.#network.hold(route, () => this.#sendHeld());
    });
  }

  #sendHeld(): void {
    const { peerSocket: peer } = this;
    if (peer === null) return;
    const route = this.#network.route(this.machine, peer.machine);
    if (route.cuts > 0) return this.#network.hold(route, () => this.#sendHeld());
    this.#isHeld = false;
    for (const segment of this.#held.splice(0)) peer.#receive(segment, this);
  }

  /** A segment has arrived at this machine. */
  #receive(segment: Segment, from: SimSocket): void {
    if (!this.machine.isUp) return;
    if (this.#isClosed) {
      if (segment.kind === "data") from.#resetByPeer(this);
      return;
    }
    const { world } = this.#network;
    if (segment.kind !== "data") {
      this.#isClosed = true;
      this.#network.sockets.delete(this);
      if (segment.kind === "fin") this.#send({ kind: "fin" });
      // A reset discards what the process has not read.
      if (segment.kind === "rst" && this.#chance.is(0.5)) this.#unread = [];
      const error = segment.kind === "rst" ? systemError("ECONNRESET", "read ECONNRESET") : null;
      this.#readAll();
      return this.#report(error);
    }
    world.trace.bytes(segment.bytes);
    const last = this.#unread.at(-1);
    if (last !== undefined && this.#chance.is(0.5)) this.#unread[this.#unread.length - 1] = joined(last, segment.bytes);
    else this.#unread.push(segment.bytes);
    from.#taken(segment.bytes.byteLength);
    this.#scheduleRead();
  }

  /** The peer's kernel does not know this connection. */
  #resetByPeer(peer: SimSocket): void {
    this.#network.travel(peer.machine, this.machine, () => this.break());
  }

  #taken(bytes: number): void {
    const before = this.bufferedBytes;
    this.#unsentBytes -= bytes;
    if (before > 0 && this.bufferedBytes === 0) this.#atProcess(() => this.#handlers?.onDrained?.());
  }

  #scheduleRead(): void {
    if (this.#isPaused || this.#isReadScheduled || this.#unread.length === 0) return;
    this.#isReadScheduled = true;
    this.#atProcess(() => {
      this.#isReadScheduled = false;
      if (this.#isPaused) return;
      const chunk = this.#unread.shift();
      if (chunk !== undefined) this.#deliver(chunk);
      this.#scheduleRead();
    });
  }

  /** Delivers what is left before the end is reported. */
  #readAll(): void {
    for (const chunk of this.#unread.splice(0)) this.#atProcess(() => this.#deliver(chunk));
  }

  #deliver(chunk: Uint8Array): void {
    if (this.#isDestroyed) return;
    this.#handlers?.onData(chunk);
    chunk.fill(0xee); // a receiver that keeps a view of the chunk reads nonsense
  }
}

function joined(left: Uint8Array, right: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(left.byteLength + right.byteLength);
  bytes.set(left);
  bytes.set(right, left.byteLength);
  return bytes;
}
