/**
 * Splits the bytes of a ZooKeeper connection into frames and passes them to a listener: first the handshake, then the
 * link that carries requests.
 */
import type { Connection, ConnectionHandlers } from "./connection.ts";
import { JuteFrameDecoder } from "../wire/length_frame.ts";

/**
 * The longest frame that a client accepts from a server, in bytes. It exceeds jute.maxbuffer, which limits only
 * requests: a list of 100,000 children is longer. It is small enough to detect other protocols: their first bytes, read
 * as a length, are a greater number.
 */
const replyBytesMax = 64 << 20;

export interface FrameStreamListener {
  /** Receives a frame as a view that is valid only during the call. An exception ends the connection. */
  onFrame(frame: Uint8Array): void;
  /** Called after all frames of a chunk, with the chunk's size in bytes. */
  onChunkEnd(bytes: number): void;
  /** Called once when the connection has ended. Not called after `destroy`. */
  onClosed(error: Error | null): void;
}

export class FrameStream implements ConnectionHandlers {
  readonly #decoder: JuteFrameDecoder;
  #connection: Connection | null = null;
  #listener: FrameStreamListener;
  #failure: Error | null = null;
  #over = false;

  constructor(listener: FrameStreamListener) {
    this.#decoder = new JuteFrameDecoder(replyBytesMax);
    this.#listener = listener;
  }

  attach(connection: Connection): void {
    this.#connection = connection;
  }

  listen(listener: FrameStreamListener): void {
    this.#listener = listener;
    if (this.#over) queueMicrotask(() => listener.onClosed(this.#failure));
  }

  send(bytes: Uint8Array): void {
    this.#connection?.write(bytes);
  }

  pause(): void {
    this.#connection?.pause();
  }

  resume(): void {
    this.#connection?.resume();
  }

  /** Closes immediately, without calling the listener. */
  destroy(): void {
    this.#over = true;
    this.#connection?.destroy();
  }

  onData(chunk: Uint8Array): void {
    if (this.#over) return;
    try {
      for (const frame of this.#decoder.push(chunk)) {
        this.#listener.onFrame(frame);
        if (this.#over) return;
      }
      this.#listener.onChunkEnd(chunk.byteLength);
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error));
      this.#connection?.destroy();
      this.onClosed(null);
    }
  }

  onClosed(error: Error | null): void {
    if (this.#over) return;
    this.#over = true;
    this.#failure ??= error;
    this.#listener.onClosed(this.#failure);
  }
}
