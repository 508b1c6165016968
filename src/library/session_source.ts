/** Session of a library object: the caller's own, or one that is opened when it is needed. */
import { connect, type ConnectOptions } from "../zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../zookeeper/zookeeper.ts";
import { abortable } from "../support/abort.ts";

/** A session that belongs to the caller, or the options to open one. */
export type SessionPlace = ZooKeeper | ConnectOptions;

export class SessionSource {
  readonly #place: SessionPlace;
  readonly #closed = new AbortController();
  #own: Promise<ZooKeeper> | null = null;

  constructor(place: SessionPlace) {
    this.#place = place;
  }

  /** True if a session that has ended is replaced by another. */
  get reopens(): boolean {
    return !("session" in this.#place);
  }

  /**
   * Returns the session. If this object opened it and it has ended, opens another one. Concurrent calls share one connection.
   * Rejects as `connect` does, or with the signal's reason.
   */
  async get(signal?: AbortSignal): Promise<ZooKeeper> {
    if ("session" in this.#place) return this.#place;
    const { signal: given } = this.#place;
    const signals = given === undefined ? [this.#closed.signal] : [this.#closed.signal, given];
    const own = this.#own ??= connect({ ...this.#place, signal: AbortSignal.any(signals) });
    try {
      const zk = await abortable(own, signal);
      if (!zk.session.ended.aborted) return zk;
    } catch (thrown) {
      if (!signal?.aborted && this.#own === own) this.#own = null;
      throw thrown;
    }
    if (this.#own === own) this.#own = null;
    return await this.get(signal);
  }

  /** Ends a session that this object opened. Calls that wait for a session reject with `reason`. */
  async close(reason: unknown): Promise<void> {
    this.#closed.abort(reason);
    const own = await this.#own?.catch(() => null);
    await own?.close();
  }
}
