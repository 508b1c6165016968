/** What servers have told of themselves (PERIODIC): how many topics each serves, and when it was heard of last. */
import type { Clock } from "../../support/clock.ts";

export interface ServerLoad {
  readonly topics: number;
  readonly reportedMs: number;
}

/** Servers that are remembered; who was silent for longest is forgotten first. */
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

  /** By server id. */
  get all(): ReadonlyMap<string, ServerLoad> {
    return this.#loads;
  }
}
