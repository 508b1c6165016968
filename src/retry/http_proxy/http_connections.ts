/**
 * The connections of a server, at most so many. One more takes the place of the connection that has been without a request for
 * longest, so that silent and half-open connections do not keep others out. Closes connections; opens none.
 */
import type { IncomingMessage } from "node:http";

type Socket = IncomingMessage["socket"];

export class HttpConnections {
  readonly #max: number;
  /** Requests in progress of each connection; the one whose last request ended first comes first. */
  readonly #open = new Map<Socket, number>();
  readonly #makeRoom: () => boolean;

  /** `makeRoom`: gives up a request that is not arriving any longer; false: there is none. */
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
