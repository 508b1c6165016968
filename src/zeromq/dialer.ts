/** Keeps one endpoint connected: dials again after each loss, with full jitter, until it is stopped. */
import { messageOf } from "../errors.ts";
import type { Address, Connection, ConnectionHandlers } from "../sockets/connection.ts";
import { backoffMs } from "../support/backoff.ts";
import { deadlineAfter } from "../support/deadline.ts";
import type { ResolvedOptions } from "./socket_options.ts";

/** Callbacks for one connection. */
export interface DialedLink extends ConnectionHandlers {
  attach(connection: Connection): void;
}

export interface DialerHost {
  /** Creates a link for one attempt. An attached link has to call `handleLoss` when it is over. */
  openLink(): DialedLink;
  /** No connection was made; the next attempt follows after `retryMs`. */
  onFailed(reason: Error, retryMs: number): void;
}

/** Milliseconds: a connection that lasted for less counts as a failure, and the delays keep growing. */
const stableMsMin = 1000;

export class Dialer {
  readonly #address: Address;
  readonly #host: DialerHost;
  readonly #options: ResolvedOptions;
  #attempt = 0;
  #connectedMs = 0;
  #stop: AbortController | null = null;
  #cancelWait: (() => void) | null = null;

  constructor(address: Address, host: DialerHost, options: ResolvedOptions) {
    this.#address = address;
    this.#host = host;
    this.#options = options;
  }

  start(): void {
    this.#stop = new AbortController();
    void this.#dial(this.#stop.signal);
  }

  /** Stops further attempts. An established connection belongs to its link. */
  stop(): void {
    this.#stop?.abort(new Error("the endpoint was disconnected"));
    this.#stop = null;
    this.#cancelWait?.();
  }

  /** The connection of the last attempt is over. `wasReady`: its handshake had succeeded. */
  handleLoss(wasReady: boolean): void {
    const isSound = wasReady && this.#options.clock.now() - this.#connectedMs >= stableMsMin;
    if (isSound) this.#attempt = 0;
    this.#scheduleAttempt();
  }

  async #dial(signal: AbortSignal): Promise<void> {
    const { clock, handshakeMsMax, dial } = this.#options;
    using deadline = deadlineAfter(clock, handshakeMsMax, {
      signal,
      reason: () => new Error(`no connection within ${handshakeMsMax} ms`),
    });
    const link = this.#host.openLink();
    try {
      const connection = await dial(this.#address, link, { signal: deadline.signal });
      if (signal.aborted) return connection.destroy();
      this.#connectedMs = clock.now();
      link.attach(connection);
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof Error ? error : new Error(messageOf(error));
      this.#host.onFailed(reason, this.#scheduleAttempt());
    }
  }

  /** Schedules the next attempt. Returns the delay. */
  #scheduleAttempt(): number {
    const stop = this.#stop;
    if (stop === null) return 0;
    const { clock, reconnect, random } = this.#options;
    const waitMs = backoffMs(this.#attempt++, { firstMs: reconnect.minMs, maxMs: reconnect.maxMs, jitter: 1 }, random);
    this.#cancelWait = clock.startTimer(waitMs, () => void this.#dial(stop.signal));
    return waitMs;
  }
}
