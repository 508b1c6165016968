/** Keeps one endpoint connected: dials again after each loss, with full jitter, until it is stopped. */
import { describeFailure } from "../../base/sockets/describe_failure.ts";
import type { Address } from "../../base/sockets/connection.ts";
import { backoffMs } from "../../base/support/backoff.ts";
import { deadlineAfter } from "../../base/support/deadline.ts";
import { formatEndpoint } from "./endpoint.ts";
import type { ResolvedOptions } from "./socket_options.ts";
import { type DialedPeer, Link, type LinkOwner } from "./zeromq_link.ts";
import { Peer } from "./zeromq_peer.ts";

/** Milliseconds: a connection that lasted for less counts as a failure, and the delays keep growing. */
const stableMsMin = 1000;

export class Dialer implements DialedPeer {
  readonly peer: Peer;
  readonly #address: Address;
  readonly #owner: LinkOwner;
  readonly #options: ResolvedOptions;
  #attempt = 0;
  #connectedMs = 0;
  #stop: AbortController | null = null;
  #cancelWait: (() => void) | null = null;

  constructor(address: Address, owner: LinkOwner) {
    this.#address = address;
    this.#owner = owner;
    this.#options = owner.host.options;
    this.peer = new Peer(this.#options);
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
    const { clock, handshakeMsMax, dial, onEvent } = this.#options;
    using deadline = deadlineAfter(clock, handshakeMsMax, {
      signal,
      reason: () => new Error(`no connection within ${handshakeMsMax} ms`),
    });
    const endpoint = formatEndpoint(this.#address);
    const link = new Link(this.#owner, { endpoint, dialed: this });
    this.#owner.onDial(link);
    try {
      const connection = await dial(this.#address, link, { signal: deadline.signal });
      if (signal.aborted) return connection.destroy();
      this.#connectedMs = clock.now();
      link.attach(connection);
    } catch (error) {
      if (signal.aborted) return;
      const reason = new Error(describeFailure(error), { cause: error });
      const retryMs = this.#scheduleAttempt();
      link.leave("destroy");
      onEvent({ kind: "connectFailed", endpoint, reason, retryMs });
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
