/** How an attempt at a lock waits: for a watch, for a pause to be over; and how all of that is ended at once. */
import type { ZooKeeperSession } from "../zookeeper/zookeeper.ts";
import { backoffMs } from "../support/backoff.ts";
import type { Clock } from "../support/clock.ts";
import { Event } from "../support/event.ts";

/** A watch, and the connection it was armed on. */
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

  /** Ends what is being waited for; nothing is waited for any more but pauses. */
  stop(): void {
    this.#isStopped = true;
    this.#event?.set();
  }

  /** To be armed before the request that sets the watch. */
  arm(): ArmedWatch {
    return { event: new Event(), connections: this.#session.connections };
  }

  /** True when the event was set; false when the connection it was armed on is gone, or everything is to stop. */
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

  /** Longer with each failure. */
  async pause(failures: number): Promise<void> {
    const event = new Event();
    if (!this.#isStopped) this.#event = event;
    const cancel = this.#clock.after(backoffMs(failures, retryWait), event.set);
    await event.wait();
    cancel();
  }
}
