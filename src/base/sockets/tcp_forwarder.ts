/**
 * Forwards TCP connections to the current leader. When the leader changes, closes all open connections; the clients
 * then connect to the new leader.
 */
import { describeSocketFailure } from "./describe_failure.ts";
import { onAbort, whenAborted } from "../support/abort.ts";
import { backoffMs, requestBackoff } from "../support/backoff.ts";
import type { Clock } from "../support/clock.ts";
import { deadlineAfter, sleep } from "../support/deadline.ts";
import { formatDuration } from "../support/duration.ts";
import { type Address, type Connection, type ConnectionHandlers, type Dial, formatAddress } from "./connection.ts";

export interface TcpForwarderOptions {
  readonly dial: Dial;
  readonly clock: Clock;
  /** How long a new connection waits for a leader that responds, in milliseconds. */
  readonly connectTimeoutMs: number;
  readonly connectionsMax: number;
  readonly log: (sentence: string) => void;
}

/** The leader, and a signal that aborts when another leader replaces it. */
interface CurrentLeader {
  /** The leader's address; null if there is no leader or the leader has published no address. */
  readonly address: Address | null;
  readonly replaced: AbortController;
}

export class TcpForwarder {
  readonly #options: TcpForwarderOptions;
  readonly #open = new Set<SpliceEnd>();
  #leader: CurrentLeader = { address: null, replaced: new AbortController() };
  #isFull = false;
  #isClosed = false;

  constructor(options: TcpForwarderOptions) {
    this.#options = options;
  }

  /** Replaces the leader. Pass null if there is none. */
  setLeader(address: Address | null): void {
    const before = this.#leader;
    this.#leader = { address, replaced: new AbortController() };
    before.replaced.abort();
  }

  close(): void {
    this.#isClosed = true;
    this.setLeader(null);
    for (const end of this.#open) end.destroy();
  }

  readonly accept = (connection: Connection): ConnectionHandlers => {
    const end = new SpliceEnd(() => this.#open.delete(end));
    end.attach(connection);
    const { connectionsMax, log } = this.#options;
    if (this.#isClosed || this.#open.size >= connectionsMax) {
      if (!this.#isFull) log(`${connectionsMax} connections are open; new ones are closed (--max-connections)`);
      this.#isFull = true;
      connection.destroy();
      return end;
    }
    this.#isFull = false;
    this.#open.add(end);
    connection.pause(); // the client's bytes wait until the leader is connected
    void this.#serve(end, connection.peer);
    return end;
  };

  async #serve(client: SpliceEnd, peer: string): Promise<void> {
    const { clock, connectTimeoutMs, log } = this.#options;
    let why = "there is no leader";
    using deadline = deadlineAfter(clock, connectTimeoutMs, { reason: () => null });
    for (let failures = 0; !deadline.signal.aborted && !client.isClosed && !this.#isClosed; failures++) {
      const leader = this.#leader;
      const { address } = leader;
      if (address === null) {
        await whenAborted(AbortSignal.any([leader.replaced.signal, deadline.signal]));
        continue;
      }
      try {
        return await this.#join(client, address, { leader, signal: deadline.signal });
      } catch (thrown) {
        if (!deadline.signal.aborted && !leader.replaced.signal.aborted) why = describeSocketFailure(thrown);
      }
      // A new leader ends this pause early.
      await sleep(
        clock,
        backoffMs(failures, requestBackoff),
        AbortSignal.any([leader.replaced.signal, deadline.signal]),
      )
        .catch(
          () => {},
        );
    }
    if (!client.isClosed && !this.#isClosed) {
      log(`closed a connection from ${peer} after ${formatDuration(connectTimeoutMs)}: ${why}`);
    }
    client.destroy();
  }

  async #join(
    client: SpliceEnd,
    address: Address,
    { leader, signal }: { readonly leader: CurrentLeader; readonly signal: AbortSignal },
  ): Promise<void> {
    const { signal: over } = leader.replaced;
    let off = () => {};
    const server = new SpliceEnd(() => off());
    const connection = await this.#options.dial(address, server, {
      halfOpen: true,
      signal: AbortSignal.any([signal, over]),
    });
    server.attach(connection);
    if (client.isClosed || over.aborted) {
      connection.destroy();
      if (client.isClosed) return;
      throw new Error(`${formatAddress(address)} is no longer the leader`);
    }
    off = onAbort(over, () => {
      client.destroy();
      server.destroy();
    });
    client.join(server);
  }
}

/** The most bytes of one direction that this process buffers. At this limit, it stops reading from the sender. */
export const forwarderBufferBytesMax = 256 * 1024;

/**
 * One of two joined connections. Passes the bytes that arrive on its connection to the other one, as fast as the other
 * peer reads. Each direction ends separately. Created before both connections exist.
 */
class SpliceEnd implements ConnectionHandlers {
  readonly #onClosed: () => void;
  #connection: Connection | null = null;
  #other: SpliceEnd | null = null;
  /** Bytes that arrived before the sides were joined. */
  #early: Uint8Array[] = [];
  #hasEnded = false;
  #isClosed = false;

  constructor(onClosed: () => void = () => {}) {
    this.#onClosed = onClosed;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  attach(connection: Connection): void {
    this.#connection = connection;
  }

  /** Joins this side with the other side. Both must be attached to their connections. */
  join(other: SpliceEnd): void {
    this.#other = other;
    other.#other = this;
    for (const end of [this, other]) {
      for (const chunk of end.#early.splice(0)) end.#forward(chunk);
      if (end.#hasEnded) end.onEnded();
      end.#connection?.resume();
    }
  }

  onData(chunk: Uint8Array): void {
    const own = chunk.slice(); // the chunk is only valid during the call
    if (this.#other === null) this.#early.push(own);
    else this.#forward(own);
  }

  onDrained(): void {
    this.#otherConnection()?.resume();
  }

  onEnded(): void {
    this.#hasEnded = true;
    this.#otherConnection()?.end();
  }

  onClosed(error: Error | null): void {
    this.#isClosed = true;
    const peer = this.#otherConnection();
    // The other side gets an orderly end only if there was no failure; it would otherwise take the data for complete.
    if (error === null) peer?.end();
    else peer?.destroy();
    // Reads from the other side again, because its end can be detected only by reading.
    peer?.resume();
    this.#onClosed();
  }

  destroy(): void {
    this.#connection?.destroy();
  }

  #otherConnection(): Connection | null {
    return this.#other === null ? null : this.#other.#connection;
  }

  #forward(bytes: Uint8Array): void {
    const peer = this.#otherConnection();
    if (peer === null) return;
    peer.write(bytes);
    if (peer.bufferedBytes > forwarderBufferBytesMax) this.#connection?.pause();
  }
}
