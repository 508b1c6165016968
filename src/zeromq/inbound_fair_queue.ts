/** Takes messages from many peers, one of each in turn. RFC 28: "fair-queuing". */

/** Waiting messages of one peer. */
export interface Inbox {
  readonly length: number;
  shift(): Uint8Array[] | undefined;
}

export class InboundFairQueue<I extends Inbox> {
  /** Inboxes with messages, in the order in which they are served. */
  readonly #ring: I[] = [];
  #at = 0;
  #last: I | null = null;

  /** The inbox of the message that the last `take` returned. */
  get last(): I | null {
    return this.#last;
  }

  /** Adds an inbox that was empty and has a message now. */
  add(inbox: I): void {
    this.#ring.push(inbox);
  }

  /** Returns the first inbox with messages that matches. */
  find(isMeant: (inbox: I) => boolean): I | undefined {
    return this.#ring.find(isMeant);
  }

  /** Replaces one inbox with another, in the same position. */
  replace(before: I, next: I): void {
    const index = this.#ring.indexOf(before);
    if (index >= 0) this.#ring[index] = next;
  }

  take(): Uint8Array[] | undefined {
    const inbox = this.#ring[this.#at];
    if (inbox === undefined) return undefined;
    const message = inbox.shift();
    if (inbox.length === 0) this.#ring.splice(this.#at, 1);
    else this.#at++;
    if (this.#at >= this.#ring.length) this.#at = 0;
    this.#last = inbox;
    return message;
  }

  clear(): void {
    this.#ring.length = 0;
    this.#at = 0;
  }
}
