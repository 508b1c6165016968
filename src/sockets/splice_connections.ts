/** Joins two connections: what one side sends goes to the other, no faster than that one reads, each direction with its own end. */
import type { Connection, ConnectionHandlers } from "./connection.ts";

/** What one direction may have waiting in this process before its sender is held back. */
export const waitingBytesMax = 256 * 1024;

/** One side of a pair. Made before its connection is there, and before the other side is. */
export class SpliceEnd implements ConnectionHandlers {
  readonly #onClosed: () => void;
  #connection: Connection | null = null;
  #other: SpliceEnd | null = null;
  /** What came before there was another side: a connection that was paused may have had some on the way. */
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

  /** From now on bytes flow between the two, which both have their connection. */
  join(other: SpliceEnd): void {
    this.#other = other;
    other.#other = this;
    for (const end of [this, other]) {
      for (const chunk of end.#early.splice(0)) end.#pass(chunk);
      if (end.#hasEnded) end.ended();
      end.#connection?.resume();
    }
  }

  data(chunk: Uint8Array): void {
    const own = chunk.slice(); // it is lent for the length of this call
    if (this.#other === null) this.#early.push(own);
    else this.#pass(own);
  }

  drained(): void {
    this.#peer()?.resume();
  }

  ended(): void {
    this.#hasEnded = true;
    this.#peer()?.end();
  }

  closed(error: Error | null): void {
    this.#isClosed = true;
    const peer = this.#peer();
    // A broken connection must not look to the other side like one that was ended.
    if (error === null) peer?.end();
    else peer?.destroy();
    // Nothing is held back for this side any more: the other one's end can only be heard by reading up to it.
    peer?.resume();
    this.#onClosed();
  }

  destroy(): void {
    this.#connection?.destroy();
  }

  /** The other side's connection. */
  #peer(): Connection | null {
    return this.#other === null ? null : this.#other.#connection;
  }

  #pass(bytes: Uint8Array): void {
    const peer = this.#peer();
    if (peer === null) return;
    peer.write(bytes);
    if (peer.bufferedBytes > waitingBytesMax) this.#connection?.pause();
  }
}
