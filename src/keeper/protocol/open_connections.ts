/**
 * The connections that are open: which session each has, and the closing of those that have to go, now or later. Which these are
 * is decided in crowd.ts.
 */
import { setImmediate } from "node:timers";
import type { Clock } from "../../support/clock.ts";
import type { ClientConnection } from "./client_connection.ts";
import { ConnectionTable } from "./connection_table.ts";
import type { KeeperLimits } from "../state/keeper_limits.ts";
import type { KeeperSession } from "../state/session_table.ts";

/** A connection that has not opened a session by then is closed; so is one that was told the end and stays. */
const handshakeMsMax = 10_000;
const closeGraceMs = 2_000;

export interface OpenConnectionsOptions {
  readonly clock: Clock;
  readonly limits: KeeperLimits;
  /** Closes one whose session is another connection's now, or that is given up. */
  readonly drop: (connection: ClientConnection) => void;
}

export class OpenConnections {
  readonly #options: OpenConnectionsOptions;
  readonly #table: ConnectionTable<ClientConnection>;
  readonly #connectionsBySession = new Map<bigint, ClientConnection>();
  readonly #closingTimers = new Set<() => void>();
  #isClosingExcess = false;
  /** Requests of connections that are gone. */
  received = 0;

  constructor(options: OpenConnectionsOptions) {
    this.#options = options;
    this.#table = new ConnectionTable(options.limits);
  }

  get size(): number {
    return this.#table.size;
  }

  get heldBytes(): number {
    return this.#table.heldBytes;
  }

  get unsentBytes(): number {
    return this.#table.unsentBytes;
  }

  [Symbol.iterator](): IterableIterator<ClientConnection> {
    return this.#table[Symbol.iterator]();
  }

  /** The one that has this session. */
  bySession(sessionId: bigint): ClientConnection | undefined {
    return this.#connectionsBySession.get(sessionId);
  }

  /** `address` is null for a unix socket. */
  accepted(connection: ClientConnection, address: string | null): void {
    this.#table.add(connection, { address, nowMs: this.#options.clock.now() })?.destroy();
    if (this.#table.hasExcess) this.#closeExcessLater();
  }

  hasRoom(connection: ClientConnection, sessionId: bigint): boolean {
    return this.#table.hasRoom(connection, this.#connectionsBySession.get(sessionId));
  }

  sessionAttached(connection: ClientConnection, session: KeeperSession): void {
    this.#table.sessionOpened(connection);
    const before = this.#connectionsBySession.get(session.id);
    this.#connectionsBySession.set(session.id, connection);
    if (before !== undefined) this.#options.drop(before);
  }

  closed(connection: ClientConnection): void {
    this.received += connection.received;
    this.#table.remove(connection);
    const session = connection.session;
    if (session !== null && this.#connectionsBySession.get(session.id) === connection) {
      this.#connectionsBySession.delete(session.id);
    }
  }

  /** Gives those that were closed, because all together make the keeper hold too much. */
  setHeldBytes(connection: ClientConnection, inputBytes: number, outputBytes: number): ClientConnection[] {
    const gone = this.#table.setHeldBytes(connection, inputBytes, outputBytes);
    for (const one of gone) this.#options.drop(one);
    return gone;
  }

  /** Closes a connection that was told its last, if the other side does not. */
  closeSoon(connection: ClientConnection): void {
    const cancel = this.#options.clock.after(closeGraceMs, () => {
      this.#closingTimers.delete(cancel);
      connection.destroy();
    });
    this.#closingTimers.add(cancel);
  }

  /** Closes those that should have opened a session by now. */
  closeSilent(): void {
    const beforeMs = this.#options.clock.now() - handshakeMsMax;
    for (const silent of this.#table.withoutSessionBefore(beforeMs)) silent.destroy();
  }

  closeAll(): void {
    for (const connection of this) connection.destroy();
  }

  /** Ends the timers. */
  stop(): void {
    for (const cancel of this.#closingTimers) cancel();
  }

  /** After the sockets were looked at once more: what the latest have sent is read by then. */
  #closeExcessLater(): void {
    if (this.#isClosingExcess) return;
    this.#isClosingExcess = true;
    setImmediate(() =>
      setImmediate(() => {
        this.#isClosingExcess = false;
        for (const silent of this.#table.takeExcess()) silent.destroy();
      })
    );
  }
}
