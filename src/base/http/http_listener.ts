/**
 * Listens for HTTP/1.1 on TCP or a unix socket, with or without TLS. Owns the listening socket and its connections, and
 * limits their number and time. Passes on requests as node:http has them; serve_http.ts has a simpler interface. Time
 * limits use a `Clock`, because the limits that runtimes have differ.
 */
import { rmSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Address, formatAddress, type TlsSource } from "../sockets/connection.ts";
import type { SocketServer } from "../sockets/tls_server.ts";
import { takeListenAddress } from "../sockets/take_address.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import { CleanupScope, onAbort } from "../support/abort.ts";
import { OneTimeEvent } from "../support/event.ts";

export interface HttpListenerLimits extends HttpConnectionLimits {
  /** The most bytes that a request's first line and headers may have together. */
  readonly headBytesMax: number;
}

/**
 * Limits for a server with few clients. The idle time exceeds the scrape interval of monitoring systems.
 */
export const httpListenerLimitsDefault: HttpListenerLimits = {
  connectionsMax: 64,
  headMsMax: 5000,
  idleMsMax: 75_000,
  pipelinedMax: 16,
  headBytesMax: 16 << 10,
};

export interface HttpListenerOptions {
  /**
   * Sends or destroys the response. Must limit its own time and never reject. A request counts as in progress until
   * this function resolves and the response is closed.
   */
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /**
   * Uses TLS with this certificate and key. With `ca`, clients must have a certificate that this authority has signed.
   */
  readonly tls?: TlsSource | undefined;
  readonly limits?: Partial<HttpListenerLimits> | undefined;
  readonly clock?: Clock | undefined;
  /**
   * Called when all connections are busy. Abandons a request of which no further bytes arrive, and returns true;
   * returns false if there is no such request.
   */
  readonly makeRoom?: (() => boolean) | undefined;
  /**
   * If true, the listener responds even to a client that has closed its sending direction after the request. The
   * listener then cannot detect that the client has left.
   */
  readonly halfOpen?: boolean | undefined;
  /** The caller's action, for an error message: "serve /metrics on :80". */
  readonly action?: string | undefined;
}

/** Listens on `address`. Rejects with CANNOT_CREATE. */
export async function listenHttp(address: Address, options: HttpListenerOptions): Promise<HttpListener> {
  const limits = { ...httpListenerLimitsDefault, ...options.limits };
  const { onRequest, tls, clock = systemClock(), makeRoom, action = `listen at ${formatAddress(address)}` } = options;
  const connections = new HttpConnections(limits, clock, makeRoom);
  const { headBytesMax: maxHeaderSize } = limits;
  const { createServer } = await import("node:http");
  // Turns the runtimes' own time limits off, because `HttpConnections` and `onRequest` limit the time.
  const plain = { maxHeaderSize, headersTimeout: 0, requestTimeout: 0, keepAliveTimeout: 0 };
  const http = createServer(plain, (request, response) => {
    const { socket } = request;
    if (!connections.countRequestStart(socket)) return;
    const closed = new Promise<void>((resolve) => response.once("close", () => resolve()));
    void Promise.all([onRequest(request, response), closed]).then(() => connections.countRequestEnd(socket));
  });
  http.on("connection", (socket) => connections.add(socket));
  http.on("clientError", refuseRequest);
  http.on("connect", (_, socket) => respondAndClose(socket, "501 Not Implemented", "There are no tunnels here\n"));
  // An undocumented property of Node.js, which Bun and Deno support too.
  Object.assign(http, { httpAllowHalfOpen: options.halfOpen === true });
  const server: SocketServer = tls === undefined
    ? http
    : (await import("../sockets/tls_server.ts")).createTlsServer(tls, {
      handshakeMsMax: limits.headMsMax,
      handshakesMax: limits.connectionsMax,
    }, (socket) => http.emit("connection", socket));
  await takeListenAddress(address, () => bind(server, address), { action });
  const bound = server.address();
  const actual: Address = address.kind === "tcp" && bound !== null && typeof bound === "object"
    ? { ...address, port: bound.port }
    : address;
  return new HttpListener(server, connections, actual);
}

export class HttpListener implements AsyncDisposable {
  /** The actual address: port 0 is replaced by the port that the system chose. */
  readonly address: Address;
  readonly #server: SocketServer;
  readonly #connections: HttpConnections;

  constructor(server: SocketServer, connections: HttpConnections, address: Address) {
    this.#server = server;
    this.#connections = connections;
    this.address = address;
  }

  /** Accepts no new connections, and closes each open connection after its last response. */
  stop(): void {
    this.#server.close();
    this.#connections.stop();
  }

  /** Resolves when no request is in progress, or the signal aborts. */
  idle(signal: AbortSignal): Promise<void> {
    return this.#connections.idle(signal);
  }

  /** Closes the listener and all connections immediately, and removes a unix socket. */
  close(): Promise<void> {
    this.stop();
    this.#connections.destroy();
    if (this.address.kind === "unix") rmSync(this.address.path, { force: true });
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function bind(server: SocketServer, address: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    const ready = () => {
      server.off("error", reject);
      server.on("error", () => {}); // an error here means that one connection could not be accepted
      resolve();
    };
    if (address.kind === "unix") server.listen(address.path, ready);
    else server.listen(address.port, address.host, ready);
  });
}

interface ClosableSocket {
  readonly writable: boolean;
  end(text: string): unknown;
  destroy(): unknown;
}

/** Responds to bytes that are not a valid HTTP request. */
function refuseRequest(error: Error, socket: ClosableSocket): void {
  const code = "code" in error ? error.code : "";
  if (code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const [status, why] = code === "HPE_HEADER_OVERFLOW"
    ? ["431 Request Header Fields Too Large", "The head of the request is too long\n"]
    : ["400 Bad Request", "Not an HTTP/1.1 request\n"];
  respondAndClose(socket, status, why);
}

function respondAndClose(socket: Pick<ClosableSocket, "end">, status: string, why: string): void {
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: ${why.length}\r\n` +
      `connection: close\r\n\r\n${why}`,
  );
}

type Socket = IncomingMessage["socket"];

export interface HttpConnectionLimits {
  /** The most open connections. One more connection replaces the connection that has been idle for the longest time. */
  readonly connectionsMax: number;
  /** How long the first request's head (first line and headers) may take to arrive on a connection, in milliseconds. */
  readonly headMsMax: number;
  /** How long a connection may take, after a response, to send the head of the next request, in milliseconds. */
  readonly idleMsMax: number;
  /** The most requests that one connection may have in progress (pipelining). */
  readonly pipelinedMax: number;
}

interface OpenConnection {
  requests: number;
  cancelTimer: () => void;
}

/** Counts and limits the open connections, and closes those that send no complete request head in time. */
export class HttpConnections {
  readonly #limits: HttpConnectionLimits;
  readonly #clock: Clock;
  /** Connections, ordered by the end of their last request. */
  readonly #open = new Map<Socket, OpenConnection>();
  readonly #makeRoom: () => boolean;
  #requests = 0;
  #onIdle: (() => void) | null = null;
  #isStopped = false;

  constructor(limits: HttpConnectionLimits, clock: Clock, makeRoom: () => boolean = () => false) {
    this.#limits = limits;
    this.#clock = clock;
    this.#makeRoom = makeRoom;
  }

  get size(): number {
    return this.#open.size;
  }

  add(socket: Socket): void {
    const { connectionsMax, headMsMax } = this.#limits;
    const hasRoom = this.#open.size < connectionsMax || this.#closeOldestIdle() || this.#makeRoom();
    if (!hasRoom || this.#isStopped) return void socket.destroy();
    this.#open.set(socket, { requests: 0, cancelTimer: this.#closeAfter(socket, headMsMax) });
    socket.once("close", () => this.#forget(socket));
  }

  /**
   * Counts a request whose head has arrived. Returns false, and does not count the request, if the connection is closed
   * or has too many requests.
   */
  countRequestStart(socket: Socket): boolean {
    const connection = this.#open.get(socket);
    if (connection === undefined) return false;
    connection.cancelTimer();
    if (connection.requests === this.#limits.pipelinedMax) {
      socket.destroy();
      return false;
    }
    connection.requests++;
    this.#requests++;
    return true;
  }

  /** Records that a counted request is over: its response was sent or abandoned. */
  countRequestEnd(socket: Socket): void {
    if (--this.#requests === 0) this.#onIdle?.();
    const connection = this.#open.get(socket);
    if (connection === undefined) return;
    connection.requests--;
    this.#open.delete(socket);
    this.#open.set(socket, connection);
    if (connection.requests > 0) return;
    if (this.#isStopped) socket.destroy();
    else connection.cancelTimer = this.#closeAfter(socket, this.#limits.idleMsMax);
  }

  /** Resolves when no request is in progress, or the signal aborts. */
  async idle(signal: AbortSignal): Promise<void> {
    if (this.#requests === 0 || signal.aborted) return;
    const idle = new OneTimeEvent();
    this.#onIdle = idle.set;
    using _end = new CleanupScope(onAbort(signal, idle.set));
    await idle.wait();
  }

  /** Closes idle connections immediately, and busy connections after their last response. */
  stop(): void {
    this.#isStopped = true;
    while (this.#closeOldestIdle());
  }

  destroy(): void {
    this.#isStopped = true;
    for (const socket of [...this.#open.keys()]) this.#close(socket);
  }

  #closeOldestIdle(): boolean {
    for (const [socket, { requests }] of this.#open) {
      if (requests > 0) continue;
      this.#close(socket);
      return true;
    }
    return false;
  }

  #closeAfter(socket: Socket, ms: number): () => void {
    return this.#clock.startTimer(ms, () => this.#close(socket));
  }

  /** Removes the connection from the map before closing it, because closing may take a moment. */
  #close(socket: Socket): void {
    this.#forget(socket);
    socket.destroy();
  }

  #forget(socket: Socket): void {
    this.#open.get(socket)?.cancelTimer();
    this.#open.delete(socket);
  }
}
