/**
 * Hands connections on to whoever leads. Owns the connections it was given: when the leader changes all of them are
 * closed, and whoever connects next reaches the new one.
 */
import { messageOf } from "../errors.ts";
import { onAbort } from "../support/abort.ts";
import { backoffMs } from "../support/backoff.ts";
import type { Clock } from "../support/clock.ts";
import { deadlineAfter, sleep } from "../support/deadline.ts";
import { formatDuration } from "../support/duration.ts";
import { type Address, type Connection, type ConnectionHandlers, formatAddress } from "./connection.ts";
import type { Dial } from "./connection.ts";
import { SpliceEnd } from "./splice_connections.ts";

export interface TcpForwarderOptions {
  readonly dial: Dial;
  readonly clock: Clock;
  /** How long a new connection waits for a leader that answers. */
  readonly connectTimeoutMs: number;
  readonly connectionsMax: number;
  /** Hears of what a user would wonder about, a sentence at a time. */
  readonly log: (sentence: string) => void;
}

/** From one leader to the next. */
interface CurrentLeader {
  /** Null when nobody leads, or nobody can be connected to. */
  readonly address: Address | null;
  readonly replaced: AbortController;
}

/** A leader that was elected a moment ago may not listen yet. */
const retryWait = { firstMs: 20, maxMs: 250 };

export class TcpForwarder {
  readonly #options: TcpForwarderOptions;
  readonly #open = new Set<SpliceEnd>();
  #leader: CurrentLeader = { address: null, replaced: new AbortController() };
  #isFull = false;
  #isClosed = false;

  constructor(options: TcpForwarderOptions) {
    this.#options = options;
  }

  /** Somebody else leads, or, with null, nobody. */
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

  /** To be called with each new connection. */
  readonly accept = (connection: Connection): ConnectionHandlers => {
    const end = new SpliceEnd(() => this.#open.delete(end));
    end.attach(connection);
    const { connectionsMax, log } = this.#options;
    if (this.#isClosed || this.#open.size >= connectionsMax) {
      if (!this.#isFull) log(`${connectionsMax} connections are open (--max-connections); new ones are closed`);
      this.#isFull = true;
      connection.destroy();
      return end;
    }
    this.#isFull = false;
    this.#open.add(end);
    connection.pause(); // what it has to say waits for somebody who hears it
    void this.#serve(end, connection.peer);
    return end;
  };

  async #serve(client: SpliceEnd, peer: string): Promise<void> {
    const { clock, connectTimeoutMs, log } = this.#options;
    let why = "nobody leads";
    const deadline = deadlineAfter(clock, connectTimeoutMs, { reason: () => null });
    try {
      for (let failures = 0; !deadline.signal.aborted && !client.isClosed && !this.#isClosed; failures++) {
        const reign = this.#leader;
        const { address } = reign;
        if (address === null) {
          await leaderReplaced(reign, deadline.signal);
          continue;
        }
        try {
          return await this.#join(client, address, { reign, signal: deadline.signal });
        } catch (thrown) {
          if (!deadline.signal.aborted && !reign.replaced.signal.aborted) why = messageOf(thrown);
        }
        // Over at once when another leads.
        await sleep(clock, backoffMs(failures, retryWait), AbortSignal.any([reign.replaced.signal, deadline.signal]))
          .catch(
            () => {},
          );
      }
    } finally {
      deadline.cancel();
    }
    if (!client.isClosed && !this.#isClosed) {
      log(`a connection from ${peer} is closed: ${why}, for ${formatDuration(connectTimeoutMs)}`);
    }
    client.destroy();
  }

  async #join(
    client: SpliceEnd,
    address: Address,
    { reign, signal }: { readonly reign: CurrentLeader; readonly signal: AbortSignal },
  ): Promise<void> {
    const { signal: over } = reign.replaced;
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
      throw new Error(`${formatAddress(address)} does not lead any more`);
    }
    off = onAbort(over, () => {
      client.destroy();
      server.destroy();
    });
    client.join(server);
  }
}

/** Resolves when another leads, or when the signal aborts. */
function leaderReplaced(reign: CurrentLeader, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const either = AbortSignal.any([reign.replaced.signal, signal]);
    onAbort(either, () => resolve());
  });
}
