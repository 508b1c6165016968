/** A connection over a node:net or node:tls socket. */
import type { Socket } from "node:net";
import type { Connection, ConnectionHandlers } from "./connection.ts";

export class NodeConnection implements Connection {
  readonly peer: string;
  readonly #socket: Socket;
  readonly #handlers: ConnectionHandlers;
  readonly #afterWrite: (() => void) | undefined;

  /** `socket` must be open, and nothing may have been read from it. */
  constructor(socket: Socket, peer: string, handlers: (connection: Connection) => ConnectionHandlers) {
    this.peer = peer;
    this.#socket = socket;
    this.#handlers = handlers(this);
    const { onDrained } = this.#handlers;
    this.#afterWrite = onDrained === undefined ? undefined : () => {
      if (socket.writableLength === 0 && !socket.destroyed) this.#handlers.onDrained?.();
    };
    let failure: Error | null = null;
    socket.setNoDelay(true);
    socket.on("error", (error) => failure = error);
    socket.on("end", () => this.#handlers.onEnded?.());
    socket.on("close", () => this.#handlers.onClosed(failure));
    // Converts the Buffer to a Uint8Array, because `slice` of a Buffer makes no copy, and the memory of the Buffer is
    // reused.
    socket.on("data", ({ buffer, byteOffset, byteLength }: Uint8Array) => {
      this.#handlers.onData(new Uint8Array(buffer, byteOffset, byteLength));
    });
  }

  get bufferedBytes(): number {
    return this.#socket.writableLength;
  }

  write(bytes: Uint8Array): void {
    if (this.#socket.writable) this.#socket.write(bytes, this.#afterWrite);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  end(): void {
    this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
