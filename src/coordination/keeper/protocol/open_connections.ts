/** Keeps the open connections and their sessions, and closes the connections that connection_table.ts selects. */
import type { Clock } from "../../../base/support/clock.ts";
import type { KeeperClientConnection } from "./client_connection.ts";
import { KeeperConnectionTable } from "./connection_table.ts";
import type { KeeperLimits } from "../state/keeper_limits.ts";
import type { KeeperSession } from "../state/session_table.ts";

/**
 * How long a connection may exist without a session, in milliseconds. Also how long it may stay open after its last
 * response.
 */
const handshakeMsMax = 10_000;
const closeGraceMs = 2_000;

export interface KeeperConnectionsOptions {
  readonly clock: Clock;
  readonly limits: KeeperLimits;
  /** Closes a connection whose session has moved to another connection, or that holds too much memory. */
  readonly drop: (connection: KeeperClientConnection) => void;
}

export class KeeperConnections {
  readonly #options: KeeperConnectionsOptions;
  readonly table: KeeperConnectionTable<KeeperClientConnection>;
  readonly #connectionsBySession = new Map<bigint, KeeperClientConnection>();
  readonly #closingTimers = new Set<() => void>();
  #isClosingExcess = false;
  /** The number of requests received on connections that have ended. */
  received = 0;

  constructor(options: KeeperConnectionsOptions) {
    this.#options = options;
    this.table = new KeeperConnectionTable(options.limits);
  }

  connectionOf(sessionId: bigint): KeeperClientConnection | undefined {
    return this.#connectionsBySession.get(sessionId);
  }

  /** Adds a new connection. `address` is null for a unix socket. */
  accepted(connection: KeeperClientConnection, address: string | null): void {
    this.table.add(connection, { address, nowMs: this.#options.clock.now() })?.destroy();
    if (this.table.hasExcess) this.#closeExcessLater();
  }

  hasRoom(connection: KeeperClientConnection, sessionId: bigint): boolean {
    return this.table.hasRoom(connection, this.#connectionsBySession.get(sessionId));
  }

  sessionAttached(connection: KeeperClientConnection, session: KeeperSession): void {
    this.table.sessionOpened(connection);
    const before = this.#connectionsBySession.get(session.id);
    this.#connectionsBySession.set(session.id, connection);
    if (before !== undefined) this.#options.drop(before);
  }

  closed(connection: KeeperClientConnection): void {
    this.received += connection.receivedCount;
    this.table.remove(connection);
    const session = connection.session;
    if (session !== null && this.#connectionsBySession.get(session.id) === connection) {
      this.#connectionsBySession.delete(session.id);
    }
  }

  /** Sets the memory that a connection holds. Returns the connections that it closed to free memory. */
  setHeldBytes(connection: KeeperClientConnection, inputBytes: number, outputBytes: number): KeeperClientConnection[] {
    const gone = this.table.setHeldBytes(connection, inputBytes, outputBytes);
    for (const one of gone) this.#options.drop(one);
    return gone;
  }

  /** Closes a connection some time after its last response, if the client has not closed it. */
  closeSoon(connection: KeeperClientConnection): void {
    const cancel = this.#options.clock.startTimer(closeGraceMs, () => {
      this.#closingTimers.delete(cancel);
      connection.destroy();
    });
    this.#closingTimers.add(cancel);
  }

  /** Closes connections that should have opened a session by now. */
  closeSilent(): void {
    const beforeMs = this.#options.clock.now() - handshakeMsMax;
    for (const silent of this.table.withoutSessionBefore(beforeMs)) silent.destroy();
  }

  closeAll(): void {
    for (const connection of this.table) connection.destroy();
  }

  stop(): void {
    for (const cancel of this.#closingTimers) cancel();
  }

  /** Closes excess connections, but only after the sockets have been polled again and the latest input was read. */
  #closeExcessLater(): void {
    if (this.#isClosingExcess) return;
    this.#isClosingExcess = true;
    setImmediate(() =>
      setImmediate(() => {
        this.#isClosingExcess = false;
        for (const silent of this.table.takeExcess()) silent.destroy();
      })
    );
  }
}
