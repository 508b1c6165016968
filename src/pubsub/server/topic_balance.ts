/**
 * Gives topics of a shared store to servers that have fewer topics. For example, a server that has died and come back
 * has lost all its topics. Moving a topic within a store copies no data. Owns its timer.
 */
import type { Clock } from "../../base/support/clock.ts";
import { chooseServerForTopic } from "../ownership/topic_router.ts";

export interface TopicBalanceOptions {
  readonly server: string;
  readonly clock: Clock;
  readonly everyMs: number;
  /**
   * Returns the number of topics of each server that shares the store and takes topics; empty if there is no session.
   */
  readonly counts: () => Promise<ReadonlyMap<string, number>>;
  readonly topics: () => Iterable<string>;
  readonly handOff: (topics: readonly string[], to: string) => Promise<void>;
}

const movesMax = 200;

export class TopicBalance implements Disposable {
  readonly #options: TopicBalanceOptions;
  #cancel: () => void = () => {};
  #isEnded = false;

  constructor(options: TopicBalanceOptions) {
    this.#options = options;
    this.#schedule();
  }

  [Symbol.dispose](): void {
    this.#isEnded = true;
    this.#cancel();
  }

  #schedule(): void {
    if (this.#isEnded) return;
    const { clock, everyMs } = this.#options;
    this.#cancel = clock.startTimer(everyMs, () => {
      // A check fails if the session has ended or the database does not respond. The next check then does the same
      // work.
      this.#check().catch(() => {}).finally(() => this.#schedule());
    });
  }

  async #check(): Promise<void> {
    const { server, counts, topics, handOff } = this.#options;
    const share = decideTopicsToGiveAway(await counts(), server);
    if (share === null || this.#isEnded) return;
    await handOff([...topics()].slice(0, share.count), share.to);
  }
}

/**
 * Decides how many topics a server gives to which other server; null if none. Only a server with clearly more topics
 * than its share gives topics away: topics then do not move back and forth. Pure.
 */
export function decideTopicsToGiveAway(
  counts: ReadonlyMap<string, number>,
  server: string,
): { readonly to: string; readonly count: number } | null {
  const own = counts.get(server);
  if (own === undefined || counts.size < 2) return null;
  const mean = [...counts.values()].reduce((sum, count) => sum + count, 0) / counts.size;
  if (own <= 1.25 * mean + 2) return null;
  const to = chooseServerForTopic(counts) ?? server;
  const lacking = Math.ceil(mean - (counts.get(to) ?? 0));
  return { to, count: Math.max(1, Math.min(movesMax, Math.floor(own - mean), lacking)) };
}
