/** A connection over one of Bun's sockets. */
import type { Socket, SocketHandler } from "bun";
import type { Connection, ConnectionHandlers } from "./connection.ts";

export class BunConnection implements Connection {
  readonly peer: string;
  #socket: Socket<BunConnection> | null = null;
  #handlers: ConnectionHandlers | null = null;
  /** Chunks that the kernel has not taken; the first chunk may be the rest of a larger one. */
  #unsent: Uint8Array[] = [];
  #unsentBytes = 0;
  #ending = false;
  #closed = false;

  constructor(peer: string) {
    this.peer = peer;
  }

  get bufferedBytes(): number {
    return this.#unsentBytes;
  }

  write(bytes: Uint8Array): void {
    if (this.#closed || this.#ending || this.#socket === null) return;
    if (this.#unsentBytes === 0) bytes = bytes.subarray(this.#writeSome(this.#socket, bytes));
    if (bytes.byteLength === 0) return;
    this.#unsent.push(bytes);
    this.#unsentBytes += bytes.byteLength;
  }

  pause(): void {
    if (!this.#closed) this.#socket?.pause();
  }

  resume(): void {
    if (!this.#closed) this.#socket?.resume();
  }

  end(): void {
    if (this.#ending) return;
    this.#ending = true;
    if (this.#unsentBytes === 0) this.#socket?.shutdown();
  }

  destroy(): void {
    this.#unsent = [];
    this.#unsentBytes = 0;
    if (!this.#closed) this.#socket?.terminate();
  }

  setHandlers(handlers: ConnectionHandlers): void {
    this.#handlers = handlers;
    if (this.#closed) queueMicrotask(() => handlers.onClosed(null)); // the peer has already closed
  }

  /** Bun's handlers call the methods below. */
  onOpen(socket: Socket<BunConnection>): void {
    this.#socket = socket;
    socket.setNoDelay(true);
  }

  onData(chunk: Uint8Array): void {
    this.#handlers?.onData(chunk);
  }

  onEnded(): void {
    this.#handlers?.onEnded?.();
  }

  onDrained(socket: Socket<BunConnection>): void {
    if (this.#unsentBytes === 0) return;
    let sent = 0;
    for (const bytes of this.#unsent) {
      const taken = this.#writeSome(socket, bytes);
      this.#unsentBytes -= taken;
      if (taken < bytes.byteLength) {
        this.#unsent[sent] = bytes.subarray(taken);
        break;
      }
      sent++;
    }
    this.#unsent = this.#unsent.slice(sent);
    if (this.#unsentBytes > 0) return;
    if (this.#ending) socket.shutdown();
    this.#handlers?.onDrained?.();
  }

  onClosed(error: Error | null): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#unsent = [];
    this.#unsentBytes = 0;
    this.#handlers?.onClosed(error);
  }

  /**
   * Writes bytes. Returns how many bytes the kernel took. For a socket that is closing, Bun returns -1 and calls the
   * `close` handler later.
   */
  #writeSome(socket: Socket<BunConnection>, bytes: Uint8Array): number {
    return Math.max(0, socket.write(bytes));
  }
}

/** Handlers that pass each event of a socket to its connection. The connection is stored as the socket's data. */
export const bunSocketHandlers: SocketHandler<BunConnection> = {
  binaryType: "uint8array",
  open: (socket) => socket.data.onOpen(socket),
  data: (socket, chunk) => socket.data.onData(chunk),
  drain: (socket) => socket.data.onDrained(socket),
  close: (socket, error) => socket.data.onClosed(error ?? null),
  error: (socket, error) => socket.data.onClosed(error),
};

/** The handlers of connections whose two directions end separately. */
export const bunHalfOpenSocketHandlers: SocketHandler<BunConnection> = {
  ...bunSocketHandlers,
  end: (socket) => socket.data.onEnded(),
};
