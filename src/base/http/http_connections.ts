/** The connections of an HTTP listener: how many there are, and how long each may be without a complete request. */
import type { IncomingMessage } from "node:http";
import { onAbort, TaskScope } from "../support/abort.ts";
import type { Clock } from "../support/clock.ts";
import { Event } from "../support/event.ts";

type Socket = IncomingMessage["socket"];

export interface HttpConnectionLimits {
  /** Maximum number of connections. One more replaces the one that has had no request for longest. */
  readonly connectionsMax: number;
  /** Time for the head of the first request of a connection. Milliseconds. */
  readonly headMsMax: number;
  /** Time between a response and the complete head of the next request. Milliseconds. */
  readonly idleMsMax: number;
  /** Maximum number of requests that one connection may have in progress (pipelining). */
  readonly pipelinedMax: number;
}

interface OpenConnection {
  requests: number;
  cancelTimer: () => void;
}

export class HttpConnections {
  readonly #limits: HttpConnectionLimits;
  readonly #clock: Clock;
  /** Connections, ordered by the end of their last request. */
  readonly #open = new Map<Socket, OpenConnection>();
  readonly #makeRoom: () => boolean;
  #requests = 0;
  #onIdle: (() => void) | null = null;
  #isStopped = false;

  /** `makeRoom`: abandons a request that has stopped arriving; false: there is none. */
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
   * Counts a request whose head has arrived. False: it is not counted; the connection had too many requests, or is
   * closed.
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

  /** Counts a request that was counted before, and whose response has been sent or was abandoned. */
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
    const idle = new Event();
    this.#onIdle = idle.set;
    using _end = new TaskScope(onAbort(signal, idle.set));
    await idle.wait();
  }

  /** Closes the connections without a request, and each other one after its last response. */
  stop(): void {
    this.#isStopped = true;
    while (this.#closeOldestIdle());
  }

  /** Closes all connections. */
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

  /** Forgets the connection first, as closing may take a moment. */
  #close(socket: Socket): void {
    this.#forget(socket);
    socket.destroy();
  }

  #forget(socket: Socket): void {
    this.#open.get(socket)?.cancelTimer();
    this.#open.delete(socket);
  }
}
