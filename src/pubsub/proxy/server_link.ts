/**
 * A proxy's link to one server: a DEALER socket with one connection, the queue of requests, and the requests in flight.
 * When the connection is lost, the link closes the socket, so that no request is sent late on the next connection.
 */
import { DealerSocket } from "../../protocols/zeromq/dealer_socket.ts";
import type { ZeroMqSocketOptions } from "../../protocols/zeromq/socket_options.ts";
import { errorMessage } from "../../base/errors.ts";
import { backoffMs, serverBackoff } from "../../base/support/backoff.ts";
import type { Clock } from "../../base/support/clock.ts";
import type { CachedClock } from "../../base/support/cached_clock.ts";
import { readU32, writeU32 } from "../../base/wire/bytes.ts";
import { encodePubsubMessage } from "../wire/encode_message.ts";
import { pubsubSocketLimits } from "../wire/message_limits.ts";
import type { ProxyLimits } from "./proxy_limits.ts";
import type { ProxyRequest, ProxyRequestClient } from "./proxy_request.ts";
import { FairQueue } from "./fair_queue.ts";
import type { ProcessAnnouncement } from "../ownership/process_announcement.ts";

export interface ServerLinkHost {
  /** The proxy's ID, which servers get as the sender. */
  readonly id: string;
  readonly clock: Clock;
  readonly cachedClock: CachedClock;
  readonly limits: Pick<ProxyLimits, "windowPerServer" | "windowBytesPerServer">;
  readonly socketOptions: ZeroMqSocketOptions;
  /** Called when a response has arrived; `frames` are the frames after the envelope. */
  onResponse(request: ProxyRequest, frames: Uint8Array[]): void;
  onLateResponse(): void;
  /** Called when the connection was lost before these requests had responses. */
  onLost(requests: readonly ProxyRequest[], link: ServerLink): void;
  /** Called when no connection could be made; the link tries again. */
  onUnreachable(link: ServerLink, reason: Error): void;
  onConnected(link: ServerLink): void;
  onUnsendable(request: ProxyRequest, why: string): void;
}

interface SentRequest {
  /** The request; null after it has ended. */
  request: ProxyRequest | null;
  readonly sentMs: number;
  /**
   * The number of requests that this one counts for in the window: 0 for a request that may wait at the server,
   * otherwise 1.
   */
  readonly windowCount: number;
  readonly windowBytes: number;
}

/**
 * If a connection lasts shorter than this, in milliseconds, it counts as a failure, and the next connection is delayed
 * longer.
 */
const stableMsMin = 1000;
/**
 * If the response to an ended request is missing, how long the request keeps its part of the window, in milliseconds.
 */
const lateMsMax = 30_000;
/** How long to wait before trying a full socket again if no response arrives, in milliseconds. */
const fullSocketRetryMs = 20;
/**
 * The limit of the socket itself. It only has to exceed the window plus waiting gets, because this class limits the
 * requests.
 */
const sendHighWater = 100_000;

/**
 * If this much has arrived in one turn of the event loop, the link sends it immediately: the server can then work while
 * the proxy reads the rest.
 */
const sendNowAbove = { requests: 64, bytes: 64 << 10 };

const delimiter = new Uint8Array(0);

export class ServerLink {
  readonly id: string;
  readonly endpoint: string;
  /** The function that cancels the pending report of a problem. Set while the server is unreachable. */
  cancelProblemReport: (() => void) | null = null;
  readonly #host: ServerLinkHost;
  readonly #waiting = new FairQueue<ProxyRequestClient, ProxyRequest>();
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
  /** How many requests and bytes have arrived since the queue was last sent. */
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

  get waitingCount(): number {
    return this.#waiting.length;
  }

  /** Requests in flight at the server, including those that the proxy has already ended. */
  get sentCount(): number {
    return this.#sent.size;
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#sent.size === 0;
  }

  /**
   * Queues the request. Requests that arrive together then go to the server in one write, and the server makes them
   * durable with one flush. While other requests are in flight, the queue is sent after all readable connections were
   * read, or earlier if much has arrived. Otherwise the request is sent together with the other requests that have
   * arrived on its own connection.
   */
  enqueue(request: ProxyRequest): void {
    request.location = { kind: "queued", link: this, place: this.#waiting.push(request.client, request) };
    this.#unsentCount++;
    this.#unsentBytes += request.bytes;
    if (this.#unsentCount >= sendNowAbove.requests || this.#unsentBytes >= sendNowAbove.bytes) {
      return this.#sendWaiting();
    }
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    const sendLater = this.#windowCount > 0 ? setImmediate : queueMicrotask;
    sendLater(() => {
      this.#isPumpDue = false;
      this.#sendWaiting();
    });
  }

  drop(request: ProxyRequest): void {
    const { location } = request;
    if (location.kind === "queued") this.#waiting.remove(location.place);
    if (location.kind !== "sent") return;
    const sent = this.#sent.get(location.number);
    if (sent === undefined) return;
    // The request keeps its part of the window. A server that does not respond thus gets only one window of requests.
    if (sent.windowCount > 0) sent.request = null;
    else {
      this.#sent.delete(location.number);
      this.#cancelGet(location.number);
    }
  }

  /**
   * Tells the server to cancel a get, which would otherwise wait there until its time has passed. Does nothing if this
   * message cannot be sent now.
   */
  #cancelGet(number: number): void {
    if (!this.#isConnected || this.#isClosed) return;
    this.#socket?.trySend([
      encodeNumberFrame(number),
      delimiter,
      ...encodePubsubMessage({ name: "CANCEL", sender: this.#host.id }),
    ]);
  }

  /** Removes the requests that were not sent, in order. */
  takeWaiting(): ProxyRequest[] {
    return this.#waiting.takeAll();
  }

  /** Closes the link. Requests in flight are dropped; `onLost` is not called. */
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
      limits: pubsubSocketLimits,
      ...this.#host.socketOptions,
      sendHighWater,
      reconnect: { minMs: serverBackoff.firstMs, maxMs: serverBackoff.maxMs },
      onEvent: (event) => {
        if (socket !== this.#socket) return;
        if (event.kind === "connected") this.#handleConnected();
        // Waits until the socket has finished its event handler.
        else if (event.kind === "disconnected") queueMicrotask(() => this.#handleLoss(socket));
        else if (event.kind !== "connectionRefused") this.#host.onUnreachable(this, event.reason);
      },
    });
    this.#socket = socket;
    void this.#read(socket);
    socket.connect(this.endpoint);
  }

  #handleConnected(): void {
    this.#isConnected = true;
    this.#connectedMs = this.#host.clock.now();
    queueMicrotask(() => {
      this.#host.onConnected(this);
      this.#sendWaiting();
    });
  }

  #handleLoss(socket: DealerSocket): void {
    if (socket !== this.#socket || this.#isClosed) return;
    // Responses that arrived before the connection ended are valid.
    this.#handleResponses(socket.receiveReady());
    this.#isConnected = false;
    this.#socket = null;
    void socket.close({ lingerMs: 0 });
    const lost: ProxyRequest[] = [];
    for (const { request } of this.#sent.values()) if (request !== null) lost.push(request);
    this.#sent.clear();
    this.#windowCount = this.#windowBytes = 0;
    const isSound = this.#host.clock.now() - this.#connectedMs >= stableMsMin;
    this.#failures = isSound ? 0 : this.#failures + 1;
    const waitMs = isSound ? 0 : backoffMs(this.#failures, serverBackoff);
    this.#cancelRetry = this.#host.clock.startTimer(waitMs, () => this.#open());
    this.#host.onLost(lost, this);
  }

  async #read(socket: DealerSocket): Promise<void> {
    for await (const batch of socket.batches()) {
      if (socket !== this.#socket) return;
      this.#handleResponses(batch);
      this.#sendWaiting();
    }
  }

  #handleResponses(batch: readonly Uint8Array[][]): void {
    for (const message of batch) {
      const [id, empty] = message;
      const number = id?.byteLength === 4 && empty?.byteLength === 0 ? readU32(id, 0) : -1;
      const sent = this.#sent.get(number);
      if (sent === undefined) {
        this.#host.onLateResponse();
        continue;
      }
      this.#releaseWindow(number, sent);
      if (sent.request === null) this.#host.onLateResponse();
      else this.#host.onResponse(sent.request, message.slice(2));
    }
  }

  #releaseWindow(number: number, sent: SentRequest): void {
    this.#sent.delete(number);
    this.#windowCount -= sent.windowCount;
    this.#windowBytes -= sent.windowBytes;
  }

  /** Sends as many queued requests as the window allows. */
  #sendWaiting(): void {
    this.#unsentCount = this.#unsentBytes = 0;
    const socket = this.#socket;
    if (socket === null || !this.#isConnected || this.#isClosed) return;
    for (let request = this.#waiting.peek(); request !== null; request = this.#waiting.peek()) {
      if (!this.#hasRoom(request)) {
        this.#forgetLate();
        if (!this.#hasRoom(request)) return this.#retryWhenRoom(fullSocketRetryMs * 10);
      }
      const number = this.#nextNumber;
      try {
        if (!socket.trySend([encodeNumberFrame(number), delimiter, ...request.frames])) {
          return this.#retryWhenRoom(fullSocketRetryMs);
        }
      } catch (thrown) {
        this.#waiting.shift();
        this.#host.onUnsendable(request, errorMessage(thrown));
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

  /** Frees the parts of the window that ended requests still have, if their responses are late. */
  #forgetLate(): void {
    const beforeMs = this.#host.clock.now() - lateMsMax;
    for (const [number, sent] of this.#sent) {
      if (sent.sentMs > beforeMs) return;
      if (sent.request === null) this.#releaseWindow(number, sent);
    }
  }

  #retryWhenRoom(delayMs: number): void {
    this.#cancelRoom ??= this.#host.clock.startTimer(delayMs, () => {
      this.#cancelRoom = null;
      this.#sendWaiting();
    });
  }
}

function encodeNumberFrame(number: number): Uint8Array {
  const frame = new Uint8Array(4);
  writeU32(frame, 0, number);
  return frame;
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
   * Closes idle links to servers that have left. Returns the other links to such servers: their queued requests have to
   * go elsewhere. These links stay open, because a server that has only lost its session may still respond.
   */
  keepOnly(servers: ReadonlyMap<string, ProcessAnnouncement>): ServerLink[] {
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
