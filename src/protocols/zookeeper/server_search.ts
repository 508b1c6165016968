/** Searches for a server that accepts a session: tries all servers in rounds, with pauses between them. */
import { type Backoff, backoffMs } from "../../base/support/backoff.ts";
import type { Clock } from "../../base/support/clock.ts";
import {
  type ConnectRoundOptions,
  type ConnectRoundOutcome,
  ServerConnectReport,
  type ZooKeeperConnector,
} from "./connector.ts";
import type { SessionRequest } from "./establish.ts";
import { ZooKeeperError } from "./zookeeper_error.ts";

/** The parameters of one round. They may change between rounds, because the session may move to another server. */
export interface ServerSearchRound extends Pick<ConnectRoundOptions, "attemptMs" | "staggerMs" | "except"> {
  readonly sessionRequest: SessionRequest;
  readonly backoff: Backoff;
}

/**
 * The final result of a search: a server accepted the session, the servers do not know the session, or they rejected
 * the credentials.
 */
export type ServerSearchResult =
  | Extract<ConnectRoundOutcome, { kind: "accepted" | "expired" }>
  | { readonly kind: "refused"; readonly error: ZooKeeperError };

export interface ServerSearchOwner {
  /** Returns the parameters of the next round. `attempt` is the number of failed rounds of this search. */
  nextRound(attempt: number): ServerSearchRound;
  /** Called at the end of the search, but not if `stop` has ended it. */
  onSearchEnded(finding: ServerSearchResult): void;
}

export class ServerSearch {
  readonly #connector: ZooKeeperConnector;
  readonly #clock: Clock;
  readonly #owner: ServerSearchOwner;
  #running: AbortController | null = null;
  #acceptedMs = -Infinity;
  /** The number of consecutive connections that ended soon after a server had accepted the session. */
  #shortConnections = 0;
  #endPause: () => void = () => {};
  /** The failures of the search; null while no search is running. */
  #report: ServerConnectReport | null = null;

  constructor(
    owner: ServerSearchOwner,
    { connector, clock }: { readonly connector: ZooKeeperConnector; readonly clock: Clock },
  ) {
    this.#owner = owner;
    this.#connector = connector;
    this.#clock = clock;
  }

  /** Starts the search. If the search is already running, ends its current pause. */
  start(): void {
    this.#endPause();
    if (this.#running !== null) return;
    const running = new AbortController();
    this.#running = running;
    this.#run(running.signal).catch((error) => {
      if (!running.signal.aborted) throw error;
    });
  }

  /** Returns why each server could not be reached, as " (…)" for a message; empty if no search is running. */
  describe(): string {
    const why = this.#report?.describe(this.#clock.now()) ?? "";
    return why === "" ? "" : ` (${why})`;
  }

  stop(): void {
    this.#running?.abort(new Error("the search is over"));
    this.#running = null;
    this.#report = null;
    this.#endPause();
  }

  async #run(signal: AbortSignal): Promise<void> {
    await this.#pauseAfterShortConnections();
    if (signal.aborted) return;
    const report = new ServerConnectReport();
    this.#report = report;
    for (let attempt = 0;; attempt++) {
      const { sessionRequest, backoff, ...limits } = this.#owner.nextRound(attempt);
      const outcome = await this.#connector.tryEachServer(sessionRequest, { ...limits, report, signal });
      if (signal.aborted) {
        if (outcome.kind === "accepted") outcome.established.stream.destroy();
        return;
      }
      const finding = resultOf(outcome);
      if (finding !== null) {
        this.#running = null;
        this.#report = null;
        this.#acceptedMs = this.#clock.now();
        return this.#owner.onSearchEnded(finding);
      }
      await this.#pause(backoffMs(attempt, backoff));
      if (signal.aborted) return;
    }
  }

  /**
   * Pauses after the second short connection. A server may close every connection soon after accepting it, for example
   * because it refuses a watch; a single short connection may be chance.
   */
  #pauseAfterShortConnections(): Promise<void> {
    const { backoff } = this.#owner.nextRound(0);
    this.#shortConnections = this.#clock.now() - this.#acceptedMs < backoff.maxMs ? this.#shortConnections + 1 : 0;
    return this.#shortConnections < 2 ? Promise.resolve() : this.#pause(backoffMs(this.#shortConnections - 2, backoff));
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.startTimer(delayMs, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }
}

/**
 * Returns the final result of the search; null if another round may end differently. A local server that could not be
 * started may start in the next round.
 */
function resultOf(outcome: ConnectRoundOutcome): ServerSearchResult | null {
  if (outcome.kind === "failed") return null;
  if (outcome.kind !== "refused") return outcome;
  return outcome.error instanceof ZooKeeperError ? { kind: "refused", error: outcome.error } : null;
}
