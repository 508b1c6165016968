/** Takes messages from many peers, one of each in turn. RFC 28: "fair-queuing". */
import type { Peer } from "./zeromq_peer.ts";

export class InboundFairQueue {
  /** Peers with messages, in the order in which they are served. */
  readonly #ring: Peer[] = [];
  #at = 0;
  #last: Peer | null = null;

  /** The peer whose message the last `take` returned. */
  get last(): Peer | null {
    return this.#last;
  }

  /** Adds a peer that had no message and has one now. */
  add(peer: Peer): void {
    this.#ring.push(peer);
  }

  /** Returns the first peer with messages that matches. */
  find(isMeant: (peer: Peer) => boolean): Peer | undefined {
    return this.#ring.find(isMeant);
  }

  /** Replaces one peer with another, in the same position. */
  replace(before: Peer, next: Peer): void {
    const index = this.#ring.indexOf(before);
    if (index >= 0) this.#ring[index] = next;
  }

  take(): Uint8Array[] | undefined {
    const peer = this.#ring[this.#at];
    if (peer === undefined) return undefined;
    const message = peer.shift();
    if (peer.length === 0) this.#ring.splice(this.#at, 1);
    else this.#at++;
    if (this.#at >= this.#ring.length) this.#at = 0;
    this.#last = peer;
    return message;
  }

  clear(): void {
    this.#ring.length = 0;
    this.#at = 0;
  }
}
