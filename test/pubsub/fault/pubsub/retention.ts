/**
 * Servers of a campaign that give messages up: so little stays that readers who lag, fall over or were away are passed
 * over.
 */

export interface Retention {
  /** For `baton pubsub server`. */
  readonly words: readonly string[];
  /** After so long a message may be gone, in milliseconds; Infinity: only newer ones push it out. */
  readonly expiresAfterMs: number;
}

/** A topic of the full dose has some hundred messages a second, of 170 bytes. */
export const retentions = {
  messages: { words: ["--retain-messages", "300"], expiresAfterMs: Infinity },
  size: { words: ["--retain-size", "64KiB"], expiresAfterMs: Infinity },
  age: { words: ["--retain-age", "2s"], expiresAfterMs: 2000 },
} as const satisfies Record<string, Retention>;
