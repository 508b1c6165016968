/** What a history does not keep of what is promised. */

/** The promises of the design, each by a name of its own. */
export const invariants = {
  lost: "a message that was answered OK did not reach a subscriber",
  "all or none": "an unknown put reached some subscribers and not all",
  duplicated: "a message that was had came again",
  "stored twice": "a message has two ids",
  unexpected: "a message that nobody has put came to a subscriber",
  corrupted: "a message is not what was put",
  "fail delivered": "a put that definitely failed was delivered",
  "before subscription": "a message from before the subscription came to the subscriber",
  "old backlog revived": "a new subscription began before its time",
  "after unsubscribe": "a message came to who had unsubscribed",
  "missed untold": "a subscriber was passed over by retention, and not told by how much",
  "given up too early": "retention gave up messages that it had to keep",
  "left out by a seek": "a seek to the start left out a message that was there",
  "subscription lost": "a subscriber was told that it is not subscribed",
  "publisher order": "messages of one publisher are not in their order",
  gap: "a message was stored behind one of its publisher that had definitely failed",
  "subscribers' order": "a subscriber had messages in another order than that of their ids",
  "real-time order": "a put that returned before another one began has the greater id",
  "id reused": "two messages have one id",
  "same last": "the same last was answered by another next message",
  hidden: "a get that began after a put had returned said that there is no message",
  "not marked": "a message that was handed out before came again without the mark",
  "one owner": "two servers owned a topic in one epoch, or one answered that did not own it",
  "handoff": "a topic's content has changed on its way",
  "loss named": "a loss was named though every commit waited for a standby",
  "after healing": "an operation failed though everything was healed",
  baseline: "memory, descriptors or disk did not come back",
} as const;

export type Invariant = keyof typeof invariants;

export interface Violation {
  readonly invariant: Invariant;
  readonly count: number;
  /** The first that was met, for people. */
  readonly first: string;
}

export class Findings {
  readonly #found = new Map<Invariant, { count: number; first: string }>();

  add(invariant: Invariant, example: () => string): void {
    const found = this.#found.get(invariant);
    if (found === undefined) this.#found.set(invariant, { count: 1, first: example() });
    else found.count++;
  }

  count(...names: readonly Invariant[]): number {
    return names.reduce((sum, name) => sum + (this.#found.get(name)?.count ?? 0), 0);
  }

  /** In the order of the invariants. */
  all(): Violation[] {
    const names = Object.keys(invariants) as Invariant[];
    return names.flatMap((invariant) => {
      const found = this.#found.get(invariant);
      return found === undefined ? [] : [{ invariant, ...found }];
    });
  }
}
