/**
 * The connections that are open: which session each has, and the closing of those that have to go, now or later. Which these are
 * is decided in crowd.ts.
 */
import { setImmediate } from "node:timers";
import type { Clock } from "../../support/clock.ts";
import type { ClientConnection } from "./client_connection.ts";
import { Crowd } from "./connection_table.ts";
import type { KeeperLimits } from "../state/keeper_limits.ts";
import type { Session } from "../state/session_table.ts";

/** A connection that has not opened a session by then is closed; so is one that was told the end and stays. */
const handshakeMsMax = 10_000;
const goodbyeMsMax = 2_000;

export interface OpenConnectionsOptions {
  readonly clock: Clock;
  readonly limits: KeeperLimits;
  /** Closes one whose session is another connection's now, or that is given up. */
  readonly drop: (connection: ClientConnection) => void;
}

export class OpenConnections {
  readonly #options: OpenConnectionsOptions;
  readonly #crowd: Crowd<ClientConnection>;
  readonly #bySession = new Map<bigint, ClientConnection>();
  readonly #leaving = new Set<() => void>();
  #isClosingExcess = false;
  /** Requests of connections that are gone. */
  received = 0;

  constructor(options: OpenConnectionsOptions) {
    this.#options = options;
    this.#crowd = new Crowd(options.limits);
  }

  get size(): number {
    return this.#crowd.size;
  }

  get heldBytes(): number {
    return this.#crowd.heldBytes;
  }

  get unsentBytes(): number {
    return this.#crowd.unsentBytes;
  }

  [Symbol.iterator](): IterableIterator<ClientConnection> {
    return this.#crowd[Symbol.iterator]();
  }

  /** The one that has this session. */
  of(sessionId: bigint): ClientConnection | undefined {
    return this.#bySession.get(sessionId);
  }

  /** `address` is null for a unix socket. */
  accepted(connection: ClientConnection, address: string | null): void {
    this.#crowd.came(connection, { address, nowMs: this.#options.clock.now() })?.destroy();
    if (this.#crowd.hasExcess) this.#closeExcessLater();
  }

  hasRoom(connection: ClientConnection, sessionId: bigint): boolean {
    return this.#crowd.hasRoom(connection, this.#bySession.get(sessionId));
  }

  attached(connection: ClientConnection, session: Session): void {
    this.#crowd.known(connection);
    const before = this.#bySession.get(session.id);
    this.#bySession.set(session.id, connection);
    if (before !== undefined) this.#options.drop(before);
  }

  closed(connection: ClientConnection): void {
    this.received += connection.received;
    this.#crowd.left(connection);
    const session = connection.session;
    if (session !== null && this.#bySession.get(session.id) === connection) this.#bySession.delete(session.id);
  }

  /** Gives those that were closed, because all together make the keeper hold too much. */
  hold(connection: ClientConnection, inputBytes: number, outputBytes: number): ClientConnection[] {
    const gone = this.#crowd.hold(connection, inputBytes, outputBytes);
    for (const one of gone) this.#options.drop(one);
    return gone;
  }

  /** Closes a connection that was told its last, if the other side does not. */
  closeSoon(connection: ClientConnection): void {
    const cancel = this.#options.clock.after(goodbyeMsMax, () => {
      this.#leaving.delete(cancel);
      connection.destroy();
    });
    this.#leaving.add(cancel);
  }

  /** Closes those that should have opened a session by now. */
  closeSilent(): void {
    const beforeMs = this.#options.clock.now() - handshakeMsMax;
    for (const silent of this.#crowd.strangersSince(beforeMs)) silent.destroy();
  }

  closeAll(): void {
    for (const connection of this) connection.destroy();
  }

  /** Ends the timers. */
  stop(): void {
    for (const cancel of this.#leaving) cancel();
  }

  /** After the sockets were looked at once more: what the latest have sent is read by then. */
  #closeExcessLater(): void {
    if (this.#isClosingExcess) return;
    this.#isClosingExcess = true;
    setImmediate(() =>
      setImmediate(() => {
        this.#isClosingExcess = false;
        for (const silent of this.#crowd.takeExcess()) silent.destroy();
      })
    );
  }
}
