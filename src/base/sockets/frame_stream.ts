/** A connection as a stream of frames. Its listener changes once: first the handshake, then the link. */
import type { Connection, ConnectionHandlers } from "./connection.ts";
import { JuteFrameDecoder } from "../wire/length_frame.ts";

/**
 * The longest frame accepted from a server. Servers limit requests, not responses: the names of 100,000 children take
 * several times jute.maxbuffer. Servers of other protocols are still recognized by their first bytes: text and TLS
 * records, read as a length, exceed this.
 */
const replyBytesMax = 64 << 20;

export interface FrameStreamListener {
  /** Receives a frame, a view that is valid during the call. An exception ends the connection. */
  onFrame(frame: Uint8Array): void;
  /** Called after all frames of a chunk, with the chunk's size in bytes. */
  onChunkEnd(bytes: number): void;
  /** The connection has ended. Called once; not after `destroy`. */
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

  /** Sets the connection of this stream. */
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

  /** Stops reading until `resume`. */
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
