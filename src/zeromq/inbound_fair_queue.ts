/** Messages from many peers, one of each in turn. RFC 28: "fair-queuing". */

/** Where the messages of one peer wait. */
export interface Inbox {
  readonly length: number;
  shift(): Uint8Array[] | undefined;
}

export class FairQueue<I extends Inbox> {
  /** Inboxes with messages, in the order of their turns. */
  readonly #ring: I[] = [];
  #at = 0;
  #last: I | null = null;

  get isEmpty(): boolean {
    return this.#ring.length === 0;
  }

  /** Whose message the last `take` gave. */
  get last(): I | null {
    return this.#last;
  }

  /** An inbox that was empty has a message. */
  add(inbox: I): void {
    this.#ring.push(inbox);
  }

  /** The first inbox with messages that is meant. */
  find(isMeant: (inbox: I) => boolean): I | undefined {
    return this.#ring.find(isMeant);
  }

  /** Gives the turn of one inbox to another. */
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
