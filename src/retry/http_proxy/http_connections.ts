/**
 * The connections of a server, up to a maximum. Another connection replaces the one that has had no request for longest, so that silent
 * and half-open connections do not block others. Closes connections; opens none.
 */
import type { IncomingMessage } from "node:http";

type Socket = IncomingMessage["socket"];

export class HttpConnections {
  readonly #max: number;
  /** Number of requests in progress of each connection, ordered by the end of the last request. */
  readonly #open = new Map<Socket, number>();
  readonly #makeRoom: () => boolean;

  /** `makeRoom`: abandons a request that has stopped arriving; false: there is none. */
  constructor(max: number, makeRoom: () => boolean) {
    this.#max = max;
    this.#makeRoom = makeRoom;
  }

  get size(): number {
    return this.#open.size;
  }

  add(socket: Socket): void {
    if (this.#open.size >= this.#max && !this.#closeIdle() && !this.#makeRoom()) return void socket.destroy();
    this.#open.set(socket, 0);
    socket.once("close", () => this.#open.delete(socket));
  }

  requestBegan(socket: Socket): void {
    const requests = this.#open.get(socket);
    if (requests !== undefined) this.#open.set(socket, requests + 1);
  }

  requestEnded(socket: Socket): void {
    const requests = this.#open.get(socket);
    if (requests === undefined) return;
    this.#open.delete(socket);
    this.#open.set(socket, requests - 1);
  }

  #closeIdle(): boolean {
    for (const [socket, requests] of this.#open) {
      if (requests > 0) continue;
      this.#open.delete(socket);
      socket.destroy();
      return true;
    }
    return false;
  }
}
