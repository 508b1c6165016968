/** A connection as a stream of frames. Who listens changes once: the handshake first, then the link. */
import type { Connection, ConnectionHandlers } from "./connection.ts";
import { JuteFrameDecoder } from "../wire/jute/jute_frame.ts";

/**
 * The longest frame taken from a server. Servers limit what they are sent, not what they answer: the names of 100,000
 * children take several times their jute.maxbuffer. Whatever is no ZooKeeper server is still found out by its first bytes:
 * read as a length, four characters of text come to more than this, and so does a record of TLS.
 */
const replyBytesMax = 64 << 20;

export interface FrameListener {
  /** One frame; a view that is valid for the call. What it throws ends the connection. */
  frame(frame: Uint8Array): void;
  /** All frames that came together have been handed over. */
  chunkEnd(): void;
  /** The connection is over. Called once; not after `destroy`. */
  closed(error: Error | null): void;
}

export class FrameStream implements ConnectionHandlers {
  readonly #decoder: JuteFrameDecoder;
  #connection: Connection | null = null;
  #listener: FrameListener;
  #failure: Error | null = null;
  #over = false;

  constructor(listener: FrameListener) {
    this.#decoder = new JuteFrameDecoder(replyBytesMax);
    this.#listener = listener;
  }

  /** The connection whose handlers this is. */
  attach(connection: Connection): void {
    this.#connection = connection;
  }

  listen(listener: FrameListener): void {
    this.#listener = listener;
    if (this.#over) queueMicrotask(() => listener.closed(this.#failure));
  }

  send(bytes: Uint8Array): void {
    this.#connection?.write(bytes);
  }

  /** Closes at once; nobody is told. */
  destroy(): void {
    this.#over = true;
    this.#connection?.destroy();
  }

  data(chunk: Uint8Array): void {
    if (this.#over) return;
    try {
      for (const frame of this.#decoder.push(chunk)) {
        this.#listener.frame(frame);
        if (this.#over) return;
      }
      this.#listener.chunkEnd();
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error));
      this.#connection?.destroy();
      this.closed(null);
    }
  }

  closed(error: Error | null): void {
    if (this.#over) return;
    this.#over = true;
    this.#failure ??= error;
    this.#listener.closed(this.#failure);
  }
}
