/** Reports of servers about themselves (PERIODIC): how many topics each one serves, and when it last reported. */
import type { Clock } from "../../support/clock.ts";

export interface ServerLoad {
  readonly topics: number;
  readonly reportedMs: number;
}

/** Maximum number of servers; the one that has been silent for the longest time is removed first. */
const serversMax = 1000;

export class ServerLoads {
  readonly #clock: Clock;
  readonly #loads = new Map<string, ServerLoad>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  report(server: string, topics: number): void {
    this.#loads.delete(server);
    this.#loads.set(server, { topics, reportedMs: this.#clock.now() });
    const [oldest] = this.#loads.keys();
    if (this.#loads.size > serversMax && oldest !== undefined) this.#loads.delete(oldest);
  }

  /** Reports by server ID. */
  get all(): ReadonlyMap<string, ServerLoad> {
    return this.#loads;
  }
}
