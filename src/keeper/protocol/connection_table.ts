/** Who is connected, since when, and whether there is room for one more. Decides who has to go; closes nobody. */
import { Holdings } from "./memory_budget.ts";
import type { KeeperLimits } from "../state/keeper_limits.ts";

type CrowdLimits = Pick<
  KeeperLimits,
  "connectionsMax" | "connectionsPerAddressMax" | "heldBytesMax" | "unsentBytesAllMax"
>;

interface AtAddress<Connection> {
  /** Connections without a session, the oldest first. */
  readonly strangers: Set<Connection>;
  /** Connections with a session. */
  sessions: number;
}

interface Entry<Connection> {
  /** Null for a unix socket, whose users' addresses are all alike. */
  readonly at: AtAddress<Connection> | null;
  readonly address: string | null;
  hasSession: boolean;
}

export class Crowd<Connection> {
  readonly #limits: CrowdLimits;
  /** All, those that are being closed included. */
  readonly #entries = new Map<Connection, Entry<Connection>>();
  readonly #addresses = new Map<string, AtAddress<Connection>>();
  /** Those that have not opened a session and are not being closed, and since when, the oldest first. */
  readonly #strangers = new Map<Connection, number>();
  #sessions = 0;
  readonly #withExcess = new Set<AtAddress<Connection>>();
  readonly #input: Holdings<Connection>;
  readonly #output: Holdings<Connection>;

  constructor(limits: CrowdLimits) {
    this.#limits = limits;
    this.#input = new Holdings(limits.heldBytesMax);
    this.#output = new Holdings(limits.unsentBytesAllMax);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** What all of them make the keeper hold. */
  get heldBytes(): number {
    return this.#input.total;
  }

  get unsentBytes(): number {
    return this.#output.total;
  }

  /** Whether an address has too many connections: `takeExcess` gives those that have to go. */
  get hasExcess(): boolean {
    return this.#withExcess.size > 0;
  }

  [Symbol.iterator](): IterableIterator<Connection> {
    return this.#entries.keys();
  }

  /**
   * Takes one more in. Gives the one that has to be closed for it immediately: there are too many in all, and it is the oldest
   * without a session, which is the new one when all others have one. Null when there is room.
   */
  came(connection: Connection, from: { readonly address: string | null; readonly nowMs: number }): Connection | null {
    const { address, nowMs } = from;
    const at = address === null ? null : this.#addresses.get(address) ?? { strangers: new Set(), sessions: 0 };
    this.#entries.set(connection, { at, address, hasSession: false });
    this.#strangers.set(connection, nowMs);
    if (address !== null && at !== null) {
      this.#addresses.set(address, at);
      at.strangers.add(connection);
      if (this.#excessAt(at) > 0) this.#withExcess.add(at);
    }
    if (this.#strangers.size + this.#sessions <= this.#limits.connectionsMax) return null;
    const [oldest = connection] = this.#strangers.keys();
    this.#leaves(oldest);
    return oldest;
  }

  /**
   * Of addresses that have too many connections the oldest without a session, to be closed. To be asked when what the latest have
   * sent was looked at: a flood can bring more of them at a time than one address may have, and a good client is among them.
   */
  takeExcess(): Connection[] {
    const gone: Connection[] = [];
    for (const at of this.#withExcess) gone.push(...[...at.strangers].slice(0, this.#excessAt(at)));
    this.#withExcess.clear();
    for (const connection of gone) this.#leaves(connection);
    return gone;
  }

  /** Whether its address may have one more session; one that it takes over from `before` is none more. */
  hasRoom(connection: Connection, before: Connection | undefined): boolean {
    const at = this.#entries.get(connection)?.at ?? null;
    const isMove = before !== undefined && this.#entries.get(before)?.at === at;
    return at === null || at.sessions - Number(isMove) < this.#limits.connectionsPerAddressMax;
  }

  /** It has a session now. */
  known(connection: Connection): void {
    const entry = this.#entries.get(connection);
    if (entry === undefined || entry.hasSession) return;
    this.#leaves(connection);
    entry.hasSession = true;
    this.#sessions++;
    if (entry.at !== null) entry.at.sessions++;
  }

  left(connection: Connection): void {
    const entry = this.#entries.get(connection);
    if (entry === undefined) return;
    this.#leaves(connection);
    this.#entries.delete(connection);
    this.hold(connection, 0, 0);
    const { at, address, hasSession } = entry;
    if (hasSession) this.#sessions--;
    if (at === null || address === null) return;
    if (hasSession) at.sessions--;
    if (at.sessions + at.strangers.size === 0 && this.#addresses.get(address) === at) this.#addresses.delete(address);
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

  #excessAt({ strangers, sessions }: AtAddress<Connection>): number {
    return Math.max(0, strangers.size + sessions - this.#limits.connectionsPerAddressMax);
  }

  /** It is no stranger any more: it has a session, or is being closed, which may take a moment in which others come. */
  #leaves(connection: Connection): void {
    this.#strangers.delete(connection);
    this.#entries.get(connection)?.at?.strangers.delete(connection);
  }
}
