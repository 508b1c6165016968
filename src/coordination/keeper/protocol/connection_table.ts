/** Decides which of the keeper's connections must be closed, by their addresses, ages and memory. Pure. */
import type { KeeperLimits } from "../state/keeper_limits.ts";

type ConnectionTableLimits = Pick<
  KeeperLimits,
  "connectionsMax" | "connectionsPerAddressMax" | "readBufferBytesTotalMax" | "unsentBytesTotalMax"
>;

interface AddressConnections<Connection> {
  /** Connections without a session, the oldest first. */
  readonly withoutSession: Set<Connection>;
  sessions: number;
}

interface ConnectionRecord<Connection> {
  /** The connections of the address. Null for a unix socket, because all its clients have the same address. */
  readonly addressConnections: AddressConnections<Connection> | null;
  readonly address: string | null;
  hasSession: boolean;
}

export class KeeperConnectionTable<Connection> {
  readonly #limits: ConnectionTableLimits;
  /** All connections, including connections that are being closed. */
  readonly #records = new Map<Connection, ConnectionRecord<Connection>>();
  readonly #addresses = new Map<string, AddressConnections<Connection>>();
  /** Connections without a session that are not being closed, by their start time, oldest first. */
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

  /** Bytes in the read buffers of all connections. */
  get heldBytes(): number {
    return this.#input.total;
  }

  get unsentBytes(): number {
    return this.#output.total;
  }

  /** True if an address has too many connections. `takeExcess` then returns the connections to close. */
  get hasExcess(): boolean {
    return this.#withExcess.size > 0;
  }

  [Symbol.iterator](): IterableIterator<Connection> {
    return this.#records.keys();
  }

  /**
   * Adds a connection. If there are now too many, returns the connection that must be closed immediately; otherwise
   * null. It is the oldest connection without a session; if all others have sessions, it is the new connection.
   */
  add(connection: Connection, from: { readonly address: string | null; readonly nowMs: number }): Connection | null {
    const { address, nowMs } = from;
    const at = address === null ? null : this.#addresses.get(address) ?? { withoutSession: new Set(), sessions: 0 };
    this.#records.set(connection, { addressConnections: at, address, hasSession: false });
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
   * Returns the connections to close at addresses that have too many: the oldest connections without a session. The
   * caller must first read the latest input, because a burst of connections can include good clients that open their
   * sessions immediately.
   */
  takeExcess(): Connection[] {
    const gone: Connection[] = [];
    for (const at of this.#withExcess) gone.push(...[...at.withoutSession].slice(0, this.#excessAt(at)));
    this.#withExcess.clear();
    for (const connection of gone) this.#dropFromWaiting(connection);
    return gone;
  }

  /**
   * Returns true if the connection's address may have one more session. If the session moves from the connection
   * `before` at the same address, it does not count twice.
   */
  hasRoom(connection: Connection, before: Connection | undefined): boolean {
    const at = this.#records.get(connection)?.addressConnections ?? null;
    const isMove = before !== undefined && this.#records.get(before)?.addressConnections === at;
    return at === null || at.sessions - Number(isMove) < this.#limits.connectionsPerAddressMax;
  }

  sessionOpened(connection: Connection): void {
    const entry = this.#records.get(connection);
    if (entry === undefined || entry.hasSession) return;
    this.#dropFromWaiting(connection);
    entry.hasSession = true;
    this.#sessions++;
    if (entry.addressConnections !== null) entry.addressConnections.sessions++;
  }

  remove(connection: Connection): void {
    const entry = this.#records.get(connection);
    if (entry === undefined) return;
    this.#dropFromWaiting(connection);
    this.#records.delete(connection);
    this.setHeldBytes(connection, 0, 0);
    const { addressConnections: at, address, hasSession } = entry;
    if (hasSession) this.#sessions--;
    if (at === null || address === null) return;
    if (hasSession) at.sessions--;
    if (at.sessions + at.withoutSession.size === 0 && this.#addresses.get(address) === at) {
      this.#addresses.delete(address);
    }
  }

  /** Returns the connections without a session that were added before this time. */
  withoutSessionBefore(beforeMs: number): Connection[] {
    const silent: Connection[] = [];
    for (const [connection, sinceMs] of this.#withoutSession) {
      if (sinceMs >= beforeMs) break;
      silent.push(connection);
    }
    return silent;
  }

  /** Sets the memory that one connection holds. Returns the connections that must be closed. */
  setHeldBytes(connection: Connection, inputBytes: number, outputBytes: number): Connection[] {
    return [...this.#input.set(connection, inputBytes), ...this.#output.set(connection, outputBytes)];
  }

  #excessAt({ withoutSession, sessions }: AddressConnections<Connection>): number {
    return Math.max(0, withoutSession.size + sessions - this.#limits.connectionsPerAddressMax);
  }

  /**
   * Removes a connection from the list of connections without a session: it has opened a session or is being closed.
   */
  #dropFromWaiting(connection: Connection): void {
    this.#withoutSession.delete(connection);
    this.#records.get(connection)?.addressConnections?.withoutSession.delete(connection);
  }
}

/**
 * Limits the memory for incomplete requests or unread responses that all connections hold together. Above the limit,
 * the connections that have held memory for the longest time must be closed. Pure.
 */
class MemoryBudget<Owner> {
  readonly #bytesMax: number;
  /** The bytes that each owner holds, ordered by the time at which the owner began to hold memory. */
  readonly #bytes = new Map<Owner, number>();
  total = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Sets the bytes that an owner holds; 0 resets its age. Returns owners to close, which no longer count. */
  set(owner: Owner, bytes: number): Owner[] {
    this.total += bytes - (this.#bytes.get(owner) ?? 0);
    if (bytes === 0) this.#bytes.delete(owner);
    else this.#bytes.set(owner, bytes);
    const gone: Owner[] = [];
    for (const [oldest, held] of this.#bytes) {
      if (this.total <= this.#bytesMax) break;
      this.total -= held;
      this.#bytes.delete(oldest);
      gone.push(oldest);
    }
    return gone;
  }
}
