/**
 * Joins two connections: bytes from one side go to the other, as fast as that side reads. Each direction ends
 * separately.
 */
import type { Connection, ConnectionHandlers } from "./connection.ts";

/** Bytes of one direction that may wait in this process before its sender must wait. */
export const waitingBytesMax = 256 * 1024;

/** One side of a pair. Created before its connection and before the other side exist. */
export class SpliceEnd implements ConnectionHandlers {
  readonly #onClosed: () => void;
  #connection: Connection | null = null;
  #other: SpliceEnd | null = null;
  /** Bytes that arrived before the sides were joined. */
  #early: Uint8Array[] = [];
  #hasEnded = false;
  #isClosed = false;

  constructor(onClosed: () => void = () => {}) {
    this.#onClosed = onClosed;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  attach(connection: Connection): void {
    this.#connection = connection;
  }

  /** Joins the two sides, which both have their connection. */
  join(other: SpliceEnd): void {
    this.#other = other;
    other.#other = this;
    for (const end of [this, other]) {
      for (const chunk of end.#early.splice(0)) end.#forward(chunk);
      if (end.#hasEnded) end.onEnded();
      end.#connection?.resume();
    }
  }

  onData(chunk: Uint8Array): void {
    const own = chunk.slice(); // the chunk is only valid during the call
    if (this.#other === null) this.#early.push(own);
    else this.#forward(own);
  }

  onDrained(): void {
    this.#otherConnection()?.resume();
  }

  onEnded(): void {
    this.#hasEnded = true;
    this.#otherConnection()?.end();
  }

  onClosed(error: Error | null): void {
    this.#isClosed = true;
    const peer = this.#otherConnection();
    // A failed connection must not look like an orderly end to the other side.
    if (error === null) peer?.end();
    else peer?.destroy();
    // Resume the other side: its end can only be detected by reading.
    peer?.resume();
    this.#onClosed();
  }

  destroy(): void {
    this.#connection?.destroy();
  }

  /** The other side's connection. */
  #otherConnection(): Connection | null {
    return this.#other === null ? null : this.#other.#connection;
  }

  #forward(bytes: Uint8Array): void {
    const peer = this.#otherConnection();
    if (peer === null) return;
    peer.write(bytes);
    if (peer.bufferedBytes > waitingBytesMax) this.#connection?.pause();
  }
}
