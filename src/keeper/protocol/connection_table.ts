/** Who is connected, since when, and whether there is room for one more. Decides who has to go; closes nobody. */
import { MemoryBudget } from "./memory_budget.ts";
import type { KeeperLimits } from "../state/keeper_limits.ts";

type ConnectionTableLimits = Pick<
  KeeperLimits,
  "connectionsMax" | "connectionsPerAddressMax" | "readBufferBytesTotalMax" | "unsentBytesTotalMax"
>;

interface AddressConnections<Connection> {
  /** Connections without a session, the oldest first. */
  readonly withoutSession: Set<Connection>;
  /** Connections with a session. */
  sessions: number;
}

interface ConnectionRecord<Connection> {
  /** Null for a unix socket, whose users' addresses are all alike. */
  readonly at: AddressConnections<Connection> | null;
  readonly address: string | null;
  hasSession: boolean;
}

export class ConnectionTable<Connection> {
  readonly #limits: ConnectionTableLimits;
  /** All, those that are being closed included. */
  readonly #records = new Map<Connection, ConnectionRecord<Connection>>();
  readonly #addresses = new Map<string, AddressConnections<Connection>>();
  /** Those that have not opened a session and are not being closed, and since when, the oldest first. */
  readonly #withoutSession = new Map<Connection, number>();
  #sessions = 0;
  readonly #withExcess = new Set<AddressConnections<Connection>>();
  readonly #input: MemoryBudget<Connection>;
  readonly #output: MemoryBudget<Connection>;

  constructor(limits: ConnectionTableLimits) {
    this.#limits = limits;
    this.#input = new MemoryBudget(limits.readBufferBytesTotalMax);
    this.#output = new MemoryBudget(limits.unsentBytesTotalMax);
  }

  get size(): number {
    return this.#records.size;
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
    return this.#records.keys();
  }

  /**
   * Takes one more in. Gives the one that has to be closed for it immediately: there are too many in all, and it is the oldest
   * without a session, which is the new one when all others have one. Null when there is room.
   */
  add(connection: Connection, from: { readonly address: string | null; readonly nowMs: number }): Connection | null {
    const { address, nowMs } = from;
    const at = address === null ? null : this.#addresses.get(address) ?? { withoutSession: new Set(), sessions: 0 };
    this.#records.set(connection, { at, address, hasSession: false });
    this.#withoutSession.set(connection, nowMs);
    if (address !== null && at !== null) {
      this.#addresses.set(address, at);
      at.withoutSession.add(connection);
      if (this.#excessAt(at) > 0) this.#withExcess.add(at);
    }
    if (this.#withoutSession.size + this.#sessions <= this.#limits.connectionsMax) return null;
    const [oldest = connection] = this.#withoutSession.keys();
    this.#dropFromWaiting(oldest);
    return oldest;
  }

  /**
   * Of addresses that have too many connections the oldest without a session, to be closed. To be asked when what the latest have
   * sent was looked at: a flood can bring more of them at a time than one address may have, and a good client is among them.
   */
  takeExcess(): Connection[] {
    const gone: Connection[] = [];
    for (const at of this.#withExcess) gone.push(...[...at.withoutSession].slice(0, this.#excessAt(at)));
    this.#withExcess.clear();
    for (const connection of gone) this.#dropFromWaiting(connection);
    return gone;
  }

  /** Whether its address may have one more session; one that it takes over from `before` is none more. */
  hasRoom(connection: Connection, before: Connection | undefined): boolean {
    const at = this.#records.get(connection)?.at ?? null;
    const isMove = before !== undefined && this.#records.get(before)?.at === at;
    return at === null || at.sessions - Number(isMove) < this.#limits.connectionsPerAddressMax;
  }

  /** It has a session now. */
  sessionOpened(connection: Connection): void {
    const entry = this.#records.get(connection);
    if (entry === undefined || entry.hasSession) return;
    this.#dropFromWaiting(connection);
    entry.hasSession = true;
    this.#sessions++;
    if (entry.at !== null) entry.at.sessions++;
  }

  remove(connection: Connection): void {
    const entry = this.#records.get(connection);
    if (entry === undefined) return;
    this.#dropFromWaiting(connection);
    this.#records.delete(connection);
    this.setHeldBytes(connection, 0, 0);
    const { at, address, hasSession } = entry;
    if (hasSession) this.#sessions--;
    if (at === null || address === null) return;
    if (hasSession) at.sessions--;
    if (at.sessions + at.withoutSession.size === 0 && this.#addresses.get(address) === at) {
      this.#addresses.delete(address);
    }
  }

  /** Those that came before and have not opened a session. */
  withoutSessionBefore(beforeMs: number): Connection[] {
    const silent: Connection[] = [];
    for (const [connection, sinceMs] of this.#withoutSession) {
      if (sinceMs >= beforeMs) break;
      silent.push(connection);
    }
    return silent;
  }

  /** What one connection makes the keeper hold. Gives those that have to go. */
  setHeldBytes(connection: Connection, inputBytes: number, outputBytes: number): Connection[] {
    return [...this.#input.set(connection, inputBytes), ...this.#output.set(connection, outputBytes)];
  }

  #excessAt({ withoutSession, sessions }: AddressConnections<Connection>): number {
    return Math.max(0, withoutSession.size + sessions - this.#limits.connectionsPerAddressMax);
  }

  /** It is no stranger any more: it has a session, or is being closed, which may take a moment in which others come. */
  #dropFromWaiting(connection: Connection): void {
    this.#withoutSession.delete(connection);
    this.#records.get(connection)?.at?.withoutSession.delete(connection);
  }
}
