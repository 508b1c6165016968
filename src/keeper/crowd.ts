/** Who is connected, since when, and whether there is room for one more. Decides who has to go; closes nobody. */
import { Holdings } from "./holdings.ts";
import type { KeeperLimits } from "./limits.ts";

type CrowdLimits = Pick<
  KeeperLimits,
  "connectionsMax" | "connectionsPerAddressMax" | "heldBytesMax" | "unsentBytesAllMax"
>;

export class Crowd<Connection> {
  readonly #limits: CrowdLimits;
  /** Where each comes from; null for a unix socket, whose users' addresses are all alike. */
  readonly #addresses = new Map<Connection, string | null>();
  readonly #perAddress = new Map<string, number>();
  /** Those that have not opened a session, and since when, the oldest first. */
  readonly #strangers = new Map<Connection, number>();
  readonly #input: Holdings<Connection>;
  readonly #output: Holdings<Connection>;

  constructor(limits: CrowdLimits) {
    this.#limits = limits;
    this.#input = new Holdings(limits.heldBytesMax);
    this.#output = new Holdings(limits.unsentBytesAllMax);
  }

  get size(): number {
    return this.#addresses.size;
  }

  /** What all of them make the keeper hold. */
  get heldBytes(): number {
    return this.#input.total;
  }

  get unsentBytes(): number {
    return this.#output.total;
  }

  [Symbol.iterator](): IterableIterator<Connection> {
    return this.#addresses.keys();
  }

  /** Takes one more in. Gives who has to go for that, which may be the new one; null when there is room. */
  came(connection: Connection, from: { readonly address: string | null; readonly nowMs: number }): Connection | null {
    const { address, nowMs } = from;
    this.#addresses.set(connection, address);
    this.#strangers.set(connection, nowMs);
    if (address !== null) {
      const count = (this.#perAddress.get(address) ?? 0) + 1;
      this.#perAddress.set(address, count);
      if (count > this.#limits.connectionsPerAddressMax) return connection;
    }
    if (this.size <= this.#limits.connectionsMax) return null;
    const [oldest = connection] = this.#strangers.keys();
    this.#strangers.delete(oldest); // it may take a moment to leave, and another come meanwhile
    return oldest;
  }

  /** It has a session now. */
  known(connection: Connection): void {
    this.#strangers.delete(connection);
  }

  left(connection: Connection): void {
    const address = this.#addresses.get(connection);
    if (!this.#addresses.delete(connection)) return;
    this.#strangers.delete(connection);
    this.hold(connection, 0, 0);
    if (address === null || address === undefined) return;
    const count = (this.#perAddress.get(address) ?? 0) - 1;
    if (count > 0) this.#perAddress.set(address, count);
    else this.#perAddress.delete(address);
  }

  /** Those that came before and have not opened a session. */
  strangersSince(beforeMs: number): Connection[] {
    const silent: Connection[] = [];
    for (const [connection, sinceMs] of this.#strangers) {
      if (sinceMs >= beforeMs) break;
      silent.push(connection);
    }
    return silent;
  }

  /** What one connection makes the keeper hold. Gives those that have to go. */
  hold(connection: Connection, inputBytes: number, outputBytes: number): Connection[] {
    return [...this.#input.hold(connection, inputBytes), ...this.#output.hold(connection, outputBytes)];
  }
}
