/**
 * One server as a proxy reaches it: a DEALER with one connection, the requests that wait for it and those that it has.
 * A connection that is lost takes its socket with it, so that nothing of it goes out late by the next one.
 */
import { setImmediate } from "node:timers";
import { DealerSocket } from "../../zeromq/dealer_socket.ts";
import type { SocketOptions } from "../../zeromq/socket_options.ts";
import { messageOf } from "../../errors.ts";
import { backoffMs } from "../../support/backoff.ts";
import type { Clock } from "../../support/clock.ts";
import type { CachedClock } from "../../support/cached_clock.ts";
import { encodeMessage } from "../../wire/pubsub/encode_message.ts";
import { socketLimits } from "../../wire/pubsub/message_limits.ts";
import type { ProxyLimits } from "./proxy_limits.ts";
import type { ProxyClient, ProxyRequest } from "./proxy_request.ts";
import { FairQueue } from "./fair_queue.ts";
import type { Announcement } from "../ownership/announcements.ts";

export interface ServerLinkHost {
  /** The proxy's, as servers are told it. */
  readonly id: string;
  readonly clock: Clock;
  readonly cachedClock: CachedClock;
  readonly limits: Pick<ProxyLimits, "windowPerServer" | "windowBytesPerServer">;
  readonly socketOptions: SocketOptions;
  /** An answer has come; `frames` are those behind the envelope. */
  onResponse(request: ProxyRequest, frames: Uint8Array[]): void;
  /** An answer that nobody waits for any more. */
  onLateResponse(): void;
  /** The connection was lost, and with it the answers to these. */
  onLost(requests: readonly ProxyRequest[], link: ServerLink): void;
  /** No connection could be made; it is tried again. */
  onUnreachable(link: ServerLink, reason: Error): void;
  onConnected(link: ServerLink): void;
  /** The socket does not take it, now or ever. */
  onUnsendable(request: ProxyRequest, why: string): void;
}

interface SentRequest {
  /** Null when nobody waits for the answer any more. */
  request: ProxyRequest | null;
  readonly sentMs: number;
  /** Zero for one that may wait at the server: it takes nothing of the window. */
  readonly windowCount: number;
  readonly windowBytes: number;
}

/** A connection that lasted for less is one of a series, between which the waits grow. */
const stableMsMin = 1000;
const reconnectDelay = { firstMs: 50, maxMs: 2000 };
/** An answer that is so late does not come: its place in the window is given to others. */
const lateMsMax = 30_000;
/** How soon a socket without room is tried again when no answer comes, in milliseconds. */
const roomMs = 20;
/** Waiting for room is this class's business; the socket has as much as the window and what long polls add. */
const sendHighWater = 100_000;

/** So much that has come in one turn is enough for the server to begin with: it works on it while the rest is read here. */
const sendNowAbove = { requests: 64, bytes: 64 << 10 };

const delimiter = new Uint8Array(0);

export class ServerLink {
  readonly id: string;
  readonly endpoint: string;
  /** Not null from the moment when it reaches nobody; ends the wait for whether that has to be told. */
  cancelProblemReport: (() => void) | null = null;
  readonly #host: ServerLinkHost;
  readonly #waiting = new FairQueue<ProxyClient, ProxyRequest>();
  readonly #sent = new Map<number, SentRequest>();
  #socket: DealerSocket | null = null;
  #isConnected = false;
  #connectedMs = 0;
  #failures = 0;
  #nextNumber = 0;
  #windowCount = 0;
  #windowBytes = 0;
  #cancelRetry: (() => void) | null = null;
  #cancelRoom: (() => void) | null = null;
  #isClosed = false;
  #isPumpDue = false;
  /** What has come since requests were last sent. */
  #unsentCount = 0;
  #unsentBytes = 0;

  constructor(id: string, endpoint: string, host: ServerLinkHost) {
    this.id = id;
    this.endpoint = endpoint;
    this.#host = host;
    this.#open();
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Requests that wait here to be sent. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Requests that the server has, those included whose answer nobody waits for. */
  get sent(): number {
    return this.#sent.size;
  }

  /** Nothing is under way here. */
  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#sent.size === 0;
  }

  /**
   * Sends it when it is its turn, and not before all connections that have something were read, unless that is much: what
   * arrives together goes to the server in one write, which the server then makes durable by one flush.
   */
  enqueue(request: ProxyRequest): void {
    request.location = { kind: "queued", link: this, place: this.#waiting.push(request.client, request) };
    this.#unsentCount++;
    this.#unsentBytes += request.bytes;
    if (this.#unsentCount >= sendNowAbove.requests || this.#unsentBytes >= sendNowAbove.bytes) return this.#pump();
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    setImmediate(() => {
      this.#isPumpDue = false;
      this.#pump();
    });
  }

  /** Nobody waits for it any more. */
  drop(request: ProxyRequest): void {
    const { location } = request;
    if (location.kind === "queued") this.#waiting.remove(location.place);
    if (location.kind !== "sent") return;
    const sent = this.#sent.get(location.number);
    if (sent === undefined) return;
    // Its place in the window stays taken: a silent server gets no more than that.
    if (sent.windowCount > 0) sent.request = null;
    else {
      this.#sent.delete(location.number);
      this.#cancel(location.number);
    }
  }

  /** A get that waits there would keep its place for as long as it wanted to wait. What cannot be sent now is not worth keeping. */
  #cancel(number: number): void {
    if (!this.#isConnected || this.#isClosed) return;
    this.#socket?.trySend([frameOf(number), delimiter, ...encodeMessage({ name: "CANCEL", sender: this.#host.id })]);
  }

  /** Takes out what was not sent, in order. */
  takeWaiting(): ProxyRequest[] {
    return this.#waiting.drain();
  }

  /** What was sent is lost with it; `lost` is not called. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#isConnected = false;
    this.cancelProblemReport?.();
    this.#cancelRetry?.();
    this.#cancelRoom?.();
    this.#sent.clear();
    await this.#socket?.close({ lingerMs: 0 });
  }

  #open(): void {
    const socket = new DealerSocket({
      limits: socketLimits,
      ...this.#host.socketOptions,
      sendHighWater,
      reconnect: { minMs: reconnectDelay.firstMs, maxMs: reconnectDelay.maxMs },
      onEvent: (event) => {
        if (socket !== this.#socket) return;
        if (event.kind === "connected") this.#connected();
        // Not from within the socket: it has not ended what it is doing.
        else if (event.kind === "disconnected") queueMicrotask(() => this.#lose(socket));
        else if (event.kind !== "connectionRefused") this.#host.onUnreachable(this, event.reason);
      },
    });
    this.#socket = socket;
    void this.#read(socket);
    socket.connect(this.endpoint);
  }

  #connected(): void {
    this.#isConnected = true;
    this.#connectedMs = this.#host.clock.now();
    queueMicrotask(() => {
      this.#host.onConnected(this);
      this.#pump();
    });
  }

  #lose(socket: DealerSocket): void {
    if (socket !== this.#socket || this.#isClosed) return;
    // What has arrived before the end counts.
    this.#take(socket.receiveReady());
    this.#isConnected = false;
    this.#socket = null;
    void socket.close({ lingerMs: 0 });
    const lost: ProxyRequest[] = [];
    for (const { request } of this.#sent.values()) if (request !== null) lost.push(request);
    this.#sent.clear();
    this.#windowCount = this.#windowBytes = 0;
    const isSound = this.#host.clock.now() - this.#connectedMs >= stableMsMin;
    this.#failures = isSound ? 0 : this.#failures + 1;
    const waitMs = isSound ? 0 : backoffMs(this.#failures, reconnectDelay);
    this.#cancelRetry = this.#host.clock.after(waitMs, () => this.#open());
    this.#host.onLost(lost, this);
  }

  async #read(socket: DealerSocket): Promise<void> {
    for await (const batch of socket.batches()) {
      if (socket !== this.#socket) return;
      this.#take(batch);
      this.#pump();
    }
  }

  #take(batch: readonly Uint8Array[][]): void {
    for (const message of batch) {
      const [id, empty] = message;
      const number = id?.byteLength === 4 && empty?.byteLength === 0 ? numberIn(id) : -1;
      const sent = this.#sent.get(number);
      if (sent === undefined) {
        this.#host.onLateResponse();
        continue;
      }
      this.#settle(number, sent);
      if (sent.request === null) this.#host.onLateResponse();
      else this.#host.onResponse(sent.request, message.slice(2));
    }
  }

  #settle(number: number, sent: SentRequest): void {
    this.#sent.delete(number);
    this.#windowCount -= sent.windowCount;
    this.#windowBytes -= sent.windowBytes;
  }

  /** Sends what may be sent now. */
  #pump(): void {
    this.#unsentCount = this.#unsentBytes = 0;
    const socket = this.#socket;
    if (socket === null || !this.#isConnected || this.#isClosed) return;
    for (let request = this.#waiting.peek(); request !== null; request = this.#waiting.peek()) {
      if (!this.#hasRoom(request)) {
        this.#forgetLate();
        if (!this.#hasRoom(request)) return this.#retryWhenRoom(roomMs * 10);
      }
      const number = this.#nextNumber;
      try {
        if (!socket.trySend([frameOf(number), delimiter, ...request.frames])) return this.#retryWhenRoom(roomMs);
      } catch (thrown) {
        this.#waiting.shift();
        this.#host.onUnsendable(request, messageOf(thrown));
        continue;
      }
      this.#nextNumber = (number + 1) >>> 0;
      this.#waiting.shift();
      this.#recordSent(number, request);
    }
  }

  #recordSent(number: number, request: ProxyRequest): void {
    const takesRoom = !request.traits.mayWait;
    const sent: SentRequest = {
      request,
      sentMs: this.#host.cachedClock.now(),
      windowCount: takesRoom ? 1 : 0,
      windowBytes: takesRoom ? request.bytes : 0,
    };
    this.#windowCount += sent.windowCount;
    this.#windowBytes += sent.windowBytes;
    this.#sent.set(number, sent);
    request.tries++;
    request.location = { kind: "sent", link: this, number };
  }

  #hasRoom({ traits }: ProxyRequest): boolean {
    if (traits.mayWait) return true;
    const { windowPerServer, windowBytesPerServer } = this.#host.limits;
    return this.#windowCount < windowPerServer && this.#windowBytes < windowBytesPerServer;
  }

  /** In the order in which they were sent, up to the first that is not late or still waited for. */
  #forgetLate(): void {
    const beforeMs = this.#host.clock.now() - lateMsMax;
    for (const [number, sent] of this.#sent) {
      if (sent.sentMs > beforeMs) return;
      if (sent.request === null) this.#settle(number, sent);
    }
  }

  #retryWhenRoom(delayMs: number): void {
    this.#cancelRoom ??= this.#host.clock.after(delayMs, () => {
      this.#cancelRoom = null;
      this.#pump();
    });
  }
}

/** Frames are cut from a piece: four bytes each are too little to ask for memory. */
const frameBlockBytes = 4096;
let frameBlock = new Uint8Array(0);
let frameBlockUsed = 0;

function frameOf(number: number): Uint8Array {
  if (frameBlockUsed === frameBlock.byteLength) {
    frameBlock = new Uint8Array(frameBlockBytes);
    frameBlockUsed = 0;
  }
  const at = frameBlockUsed;
  frameBlockUsed += 4;
  frameBlock[at] = number >>> 24;
  frameBlock[at + 1] = number >>> 16;
  frameBlock[at + 2] = number >>> 8;
  frameBlock[at + 3] = number;
  return frameBlock.subarray(at, at + 4);
}

function numberIn(frame: Uint8Array): number {
  const [a = 0, b = 0, c = 0, d = 0] = frame;
  return ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
}

export class ServerLinks implements Iterable<ServerLink> {
  readonly #byEndpoint = new Map<string, ServerLink>();
  readonly #make: (id: string, endpoint: string) => ServerLink;

  constructor(make: (id: string, endpoint: string) => ServerLink) {
    this.#make = make;
  }

  get(id: string, endpoint: string): ServerLink {
    let link = this.#byEndpoint.get(endpoint);
    if (link === undefined) this.#byEndpoint.set(endpoint, link = this.#make(id, endpoint));
    return link;
  }

  /**
   * Gives up links to servers that are not there any more and owe no answer, and returns those whose waiting requests have
   * to go elsewhere. A server that has only lost its session may still answer what it has.
   */
  keepOnly(servers: ReadonlyMap<string, Announcement>): ServerLink[] {
    const there = new Set(Array.from(servers.values(), ({ endpoint }) => endpoint));
    const gone = [...this.#byEndpoint.values()].filter(({ endpoint }) => !there.has(endpoint));
    for (const link of gone) {
      if (!link.isIdle) continue;
      this.#byEndpoint.delete(link.endpoint);
      void link.close();
    }
    return gone.filter((link) => !link.isIdle);
  }

  [Symbol.iterator](): Iterator<ServerLink> {
    return this.#byEndpoint.values();
  }

  async close(): Promise<void> {
    const links = [...this.#byEndpoint.values()];
    this.#byEndpoint.clear();
    await Promise.all(links.map((link) => link.close()));
  }
}
