/** Waits of one contender: for a watch to fire, or for a pause to end. `stop` ends them all. */
import type { ZooKeeperSession } from "../zookeeper/zookeeper.ts";
import { backoffMs } from "../support/backoff.ts";
import type { Clock } from "../support/clock.ts";
import { Event } from "../support/event.ts";

/** A watch and the number of the connection it was armed on. */
export interface ArmedWatch {
  readonly event: Event;
  readonly connections: number;
}

const retryWait = { firstMs: 20, maxMs: 500 };

export class AttemptWaits {
  readonly #session: ZooKeeperSession;
  readonly #clock: Clock;
  #isStopped = false;
  #event: Event | null = null;

  constructor(session: ZooKeeperSession, clock: Clock) {
    this.#session = session;
    this.#clock = clock;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Ends the current wait. Later waits end immediately; pauses still take their time. */
  stop(): void {
    this.#isStopped = true;
    this.#event?.set();
  }

  /** Returns a new watch. The caller arms it before it sends the request that sets the watch on the server. */
  arm(): ArmedWatch {
    return { event: new Event(), connections: this.#session.connections };
  }

  /** True when the watch fired; false when its connection is lost, or after `stop`. */
  async waitFor({ event, connections }: ArmedWatch): Promise<boolean> {
    let changed = true;
    const giveUp = () => {
      changed = false;
      event.set();
    };
    const check = () => {
      if (this.#session.connections !== connections || this.#session.state === "ended") giveUp();
    };
    const off = this.#session.subscribe((change) => change === "state" && check());
    this.#event = event;
    if (this.#isStopped) giveUp();
    check();
    await event.wait();
    off();
    this.#event = null;
    return changed && !this.#isStopped;
  }

  /** Waits for the back-off time, which grows with the number of failures. */
  async pause(failures: number): Promise<void> {
    const event = new Event();
    if (!this.#isStopped) this.#event = event;
    const cancel = this.#clock.after(backoffMs(failures, retryWait), event.set);
    await event.wait();
    cancel();
  }
}
