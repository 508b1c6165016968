/** Looks for a server that takes a session, round after round until there is one. Owns its attempts and the pauses between them. */
import { backoffMs, type BackoffOptions } from "../support/backoff.ts";
import type { Clock } from "../support/clock.ts";
import type { Connector, RoundOptions, RoundOutcome } from "./connector.ts";
import type { SessionRequest } from "./establish.ts";
import { ZooKeeperError } from "./zookeeper_error.ts";

/** What one round asks for and goes by: the session may have been given other servers since the last one. */
export interface ServerSearchRound extends Pick<RoundOptions, "attemptMs" | "staggerMs" | "except"> {
  readonly sessionRequest: SessionRequest;
  /** The wait after it when it fails. */
  readonly backoff: BackoffOptions;
}

/** What another round would not change: a server took the session, the servers do not know it any more or refuse the credentials. */
export type SearchResult =
  | Extract<RoundOutcome, { kind: "accepted" | "expired" }>
  | { readonly kind: "refused"; readonly error: ZooKeeperError };

export interface ServerSearchOwner {
  /** `attempt` counts the rounds of this search in vain, from 0. */
  nextRound(attempt: number): ServerSearchRound;
  /** The search is over. Not called after `stop`. */
  found(finding: SearchResult): void;
}

export class ServerSearch {
  readonly #connector: Connector;
  readonly #clock: Clock;
  readonly #owner: ServerSearchOwner;
  #running: AbortController | null = null;
  #acceptedMs = -Infinity;
  /** Servers in a row that took the session and lost it again at once. */
  #shortConnections = 0;
  #endPause: () => void = () => {};

  constructor(
    owner: ServerSearchOwner,
    { connector, clock }: { readonly connector: Connector; readonly clock: Clock },
  ) {
    this.#owner = owner;
    this.#connector = connector;
    this.#clock = clock;
  }

  /** Begins, or goes on at once when it is under way and pauses. */
  start(): void {
    this.#endPause();
    if (this.#running !== null) return;
    const running = new AbortController();
    this.#running = running;
    this.#run(running.signal).catch((error) => {
      if (!running.signal.aborted) throw error;
    });
  }

  stop(): void {
    this.#running?.abort(new Error("the search is over"));
    this.#running = null;
    this.#endPause();
  }

  async #run(signal: AbortSignal): Promise<void> {
    await this.#pauseAfterShortConnections();
    if (signal.aborted) return;
    for (let attempt = 0;; attempt++) {
      const { sessionRequest, backoff, ...limits } = this.#owner.nextRound(attempt);
      const outcome = await this.#connector.round(sessionRequest, { ...limits, signal });
      if (signal.aborted) {
        if (outcome.kind === "accepted") outcome.established.stream.destroy();
        return;
      }
      const finding = resultOf(outcome);
      if (finding !== null) {
        this.#running = null;
        this.#acceptedMs = this.#clock.now();
        return this.#owner.found(finding);
      }
      await this.#pause(backoffMs(attempt, backoff));
      if (signal.aborted) return;
    }
  }

  /**
   * What a server says may end every connection as soon as it is made: a watch it does not take back, an answer that cannot be
   * read. Once may be chance; from then on whoever accepts at once is not asked again at once.
   */
  #pauseAfterShortConnections(): Promise<void> {
    const { backoff } = this.#owner.nextRound(0);
    this.#shortConnections = this.#clock.now() - this.#acceptedMs < backoff.maxMs ? this.#shortConnections + 1 : 0;
    return this.#shortConnections < 2 ? Promise.resolve() : this.#pause(backoffMs(this.#shortConnections - 2, backoff));
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(delayMs, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }
}

/** Null when another round may end otherwise. A local server that could not be started may be by the next one. */
function resultOf(outcome: RoundOutcome): SearchResult | null {
  if (outcome.kind === "failed") return null;
  if (outcome.kind !== "refused") return outcome;
  return outcome.error instanceof ZooKeeperError ? { kind: "refused", error: outcome.error } : null;
}
