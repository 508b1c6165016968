/**
 * Owns all endpoints, connections and peers of one socket. The socket decides which peer gets a message.
 */
import { BatonError } from "../../base/errors.ts";
import type {
  AcceptConnection,
  Address,
  Connection,
  ConnectionHandlers,
  Listener,
} from "../../base/sockets/connection.ts";
import { ZmtpError } from "./zmtp/zmtp_error.ts";
import { formatZeroMqEndpoint, parseBindEndpoint, parseConnectEndpoint } from "./zeromq_endpoint.ts";
import { type ConnectionReadingChanges, IncompleteMessageBudget, incompleteMessageMsMax } from "./input_budget.ts";
import { ZeroMqPeer } from "./zeromq_peer.ts";
import { type DialedZeroMqPeer, ZeroMqLink, type ZeroMqLinkOwner, type ZeroMqPeersHost } from "./zeromq_link.ts";
import { type BigIntStats, rmSync } from "node:fs";
import { isSameFile, statSocketFile } from "../../base/sockets/clear_socket_path.ts";
import { takeListenAddress } from "../../base/sockets/take_address.ts";
import { throwIfAborted } from "../../base/support/abort.ts";
import type { ResolvedZeroMqSocketOptions } from "./socket_options.ts";
import { describeSocketFailure } from "../../base/sockets/describe_failure.ts";
import { backoffMs } from "../../base/support/backoff.ts";
import { deadlineAfter } from "../../base/support/deadline.ts";

export class ZeroMqConnections implements ZeroMqLinkOwner {
  readonly host: ZeroMqPeersHost;
  readonly #bindings: Binding[] = [];
  readonly #dialers = new Map<string, Dialer>();
  /** Open connections, and attempts to connect. */
  readonly #connections = new Set<ZeroMqLink>();
  /** The number of accepted connections that are open, or are closed with unread messages. */
  #accepted = 0;
  /** Accepted connections in their handshake, the oldest first. */
  readonly #inHandshake = new Set<ZeroMqLink>();
  readonly #input: IncompleteMessageBudget<ZeroMqLink>;
  /** The latest decision for each connection, until the decision is applied. */
  readonly #pendingDecisions = new Map<ZeroMqLink, "stop" | "resume">();
  #isDeciding = false;
  /** Cancels the timer that looks for slow messages while memory is short. */
  #cancelExpiryCheck: (() => void) | null = null;
  readonly #peers = new Set<ZeroMqPeer>();
  #isClosing = false;
  /** Ends the wait of `close` for the next change. */
  #onChange: (() => void) | null = null;

  constructor(host: ZeroMqPeersHost) {
    this.host = host;
    const { inputBytesMax, limits } = host.options;
    this.#input = new IncompleteMessageBudget({ bytesMax: inputBytesMax, messageBytesMax: limits.messageBytesMax });
  }

  /** Connections counted for `connectionsMax`. */
  get acceptedCount(): number {
    return this.#accepted;
  }

  /** Bytes counted for `inputBytesMax`. */
  get inputBytes(): number {
    return this.#input.total;
  }

  /** Binds an endpoint and returns its actual address. Throws USAGE, CANNOT_CREATE or the signal's reason. */
  async bind(endpoint: string, signal: AbortSignal | undefined): Promise<string> {
    const { options } = this.host;
    const name = { real: endpoint };
    const accept = (connection: Connection) => this.#accept(connection, name.real);
    const binding = await bindEndpoint(parseBindEndpoint(endpoint), accept, { options, signal });
    name.real = binding.endpoint;
    if (signal?.aborted || this.#isClosing) {
      await binding.close();
      throw signal?.aborted
        ? signal.reason
        : new BatonError("ZMTP_STATE", "The socket was closed before its bind had finished");
    }
    this.#bindings.push(binding);
    return binding.endpoint;
  }

  /** Connects to an endpoint, and connects again after each loss. Throws USAGE. */
  connect(endpoint: string): void {
    const address = parseConnectEndpoint(endpoint);
    const name = formatZeroMqEndpoint(address);
    if (this.#dialers.has(name)) throw new BatonError("USAGE", `Cannot connect to "${endpoint}": it is connected`);
    const dialer = new Dialer(address, this);
    this.#dialers.set(name, dialer);
    this.add(dialer.peer);
    dialer.start();
  }

  /** Ends one peer's connection, because another peer has taken over its identity. */
  evict(peer: ZeroMqPeer): void {
    const reason = new ZmtpError("REPLACED", "Another connection has taken over the same identity");
    for (const link of [...this.#connections]) {
      if (link.peer === peer) link.end(reason);
    }
  }

  /**
   * Waits up to `lingerMs` until messages are sent, and then closes all connections, which also takes a limited time.
   */
  async close(lingerMs: number): Promise<void> {
    this.#isClosing = true;
    const { clock } = this.host.options;
    await Promise.all(this.#bindings.map((binding) => binding.close()));
    let isTimeUp = lingerMs <= 0;
    const cancel = clock.startTimer(lingerMs, () => {
      isTimeUp = true;
      this.#onChange?.();
    });
    for (const link of this.#connections) link.flush();
    while (!isTimeUp && [...this.#peers].some((peer) => peer.unsent > 0)) await this.#waitForChange();
    cancel();
    for (const dialer of this.#dialers.values()) dialer.stop();
    for (const link of [...this.#connections]) {
      link.leave(lingerMs <= 0 ? "destroy" : "end");
    }
    for (const peer of [...this.#peers]) this.remove(peer);
    while (this.#connections.size > 0) await this.#waitForChange();
  }

  /** Links and dialers call the following methods. */
  onDial(link: ZeroMqLink): void {
    this.#connections.add(link);
  }

  onSettled(): void {
    if (this.#isClosing) this.#onChange?.();
  }

  add(peer: ZeroMqPeer): void {
    this.#peers.add(peer);
    this.host.onPeerAdded(peer);
  }

  remove(peer: ZeroMqPeer): void {
    if (!this.#peers.delete(peer)) return;
    this.host.counters.dropped += peer.dropOutbox();
    this.host.onPeerRemoved(peer);
  }

  onHeldBytes(link: ZeroMqLink, bytes: number, isNext: boolean): void {
    const nowMs = this.host.options.clock.now();
    this.#applyInputChanges(this.#input.setHeldBytes(link, bytes, { isNext, nowMs }));
  }

  onHandshakeEnd(link: ZeroMqLink): void {
    this.#inHandshake.delete(link);
  }

  onClosed(link: ZeroMqLink): void {
    this.#connections.delete(link);
    this.onSettled();
    if (link.isAccepted) this.#releaseSlot(link.peer);
  }

  #accept(connection: Connection, endpoint: string): ConnectionHandlers {
    const isFull = this.#accepted >= this.host.options.connectionsMax && !this.#closeOldestHandshake(endpoint);
    if (isFull || this.#isClosing) {
      if (isFull) this.#noteRefused(endpoint, connection.peer);
      connection.destroy();
      return { onData() {}, onClosed() {} };
    }
    const link = new ZeroMqLink(this, { endpoint, dialed: null });
    this.#connections.add(link);
    this.#inHandshake.add(link);
    this.#accepted++;
    link.attach(connection);
    return link;
  }

  /** Closes the connection whose handshake has taken longest. Returns false if there is none. */
  #closeOldestHandshake(endpoint: string): boolean {
    for (const link of this.#inHandshake) {
      this.#noteRefused(endpoint, link.address);
      link.leave("destroy");
      return true;
    }
    return false;
  }

  #noteRefused(endpoint: string, address: string): void {
    const { options, counters } = this.host;
    counters.connectionsRefused++;
    options.onEvent({ kind: "connectionRefused", endpoint, address });
  }

  /**
   * Applies decisions to connections. Reading from a connection again may cause new decisions, so only the latest
   * decision for a connection counts.
   */
  #applyInputChanges({ stop, resume }: ConnectionReadingChanges<ZeroMqLink>): void {
    for (const link of stop) this.#pendingDecisions.set(link, "stop");
    for (const link of resume) this.#pendingDecisions.set(link, "resume");
    if (!this.#isDeciding && this.#pendingDecisions.size > 0) {
      this.#isDeciding = true;
      for (const [link, decision] of this.#pendingDecisions) {
        this.#pendingDecisions.delete(link);
        if (decision === "stop") link.stopReading();
        else link.resumeReading();
      }
      this.#isDeciding = false;
    }
    if (!this.#input.isShort) {
      this.#cancelExpiryCheck?.();
      this.#cancelExpiryCheck = null;
    } else {this.#cancelExpiryCheck ??= this.host.options.clock.startTimer(incompleteMessageMsMax / 10, () =>
        this.#closeExpired());}
  }

  /**
   * Closes the connections whose messages take too long to arrive. A connection that waits until this program takes
   * messages is not closed.
   */
  #closeExpired(): void {
    this.#cancelExpiryCheck = null;
    const { clock, limits } = this.host.options;
    for (const link of this.#input.expiredOwners(clock.now())) {
      if (link.peer?.isHeldBack === true) continue;
      this.host.counters.incompleteClosed++;
      const why =
        `The peer's message was not complete after ${
          incompleteMessageMsMax / 1000
        } s, while memory for such messages was ` +
        `short: it may have ${limits.messageBytesMax} bytes`;
      link.destroy(new ZmtpError("OVERLOAD", why));
    }
    this.#applyInputChanges({ stop: [], resume: [] });
  }

  /**
   * Frees the place of a closed connection when all its messages were taken. Without this rule, peers that connect,
   * send and leave could fill the memory of a slow program.
   */
  #releaseSlot(peer: ZeroMqPeer | null): void {
    if (peer === null || peer.length === 0) {
      this.#accepted--;
      return;
    }
    peer.onAllRead = () => {
      peer.onAllRead = null;
      this.#accepted--;
    };
  }

  #waitForChange(): Promise<void> {
    return new Promise((resolve) => this.#onChange = resolve);
  }
}

/**
 * One bound endpoint. Owns the listener and, for ipc, the socket's file, which it removes at the end.
 */
class Binding {
  readonly endpoint: string;
  readonly #listener: Listener;
  readonly #file: BigIntStats | null;

  constructor(listener: Listener) {
    this.#listener = listener;
    this.endpoint = formatZeroMqEndpoint(listener.address);
    this.#file = socketFileOf(listener.address);
  }

  async close(): Promise<void> {
    const { address } = this.#listener;
    if (address.kind === "unix") {
      try {
        // Closing a Unix listener removes the file at its path, even if another process has replaced it. The other
        // process's file must stay. This listener, which no client can reach now, therefore stays open until the
        // process ends.
        const found = socketFileOf(address);
        if (found !== null && !isSameFile(found, this.#file)) return;
        rmSync(address.path, { force: true });
      } catch {
        // This user can no longer remove the file. The file stays, and no process listens there.
      }
    }
    await this.#listener.close();
  }
}

/** Listens. Rejects with CANNOT_CREATE or the signal's reason. */
async function bindEndpoint(
  address: Address,
  accept: AcceptConnection,
  { options, signal }: { readonly options: ResolvedZeroMqSocketOptions; readonly signal: AbortSignal | undefined },
): Promise<Binding> {
  throwIfAborted(signal);
  const bind = async () => {
    throwIfAborted(signal);
    return new Binding(await options.listen(address, accept));
  };
  const { dial, clock } = options;
  try {
    return await takeListenAddress(address, bind, {
      action: `listen on ${formatZeroMqEndpoint(address)}`,
      dial,
      clock,
    });
  } catch (error) {
    throwIfAborted(signal);
    throw error;
  }
}

/** Returns the status of the socket's file, or null for TCP. */
function socketFileOf(address: Address): BigIntStats | null {
  return address.kind === "unix" ? statSocketFile(address.path) : null;
}

/** A connection that lasts shorter than this, in milliseconds, counts as a failure, so that the delays keep growing. */
const stableMsMin = 1000;

/** Keeps one endpoint connected: dials again after each loss, with random delays, until it is stopped. */
class Dialer implements DialedZeroMqPeer {
  readonly peer: ZeroMqPeer;
  readonly #address: Address;
  readonly #owner: ZeroMqLinkOwner;
  readonly #options: ResolvedZeroMqSocketOptions;
  #attempt = 0;
  #connectedMs = 0;
  #stop: AbortController | null = null;
  #cancelWait: (() => void) | null = null;

  constructor(address: Address, owner: ZeroMqLinkOwner) {
    this.#address = address;
    this.#owner = owner;
    this.#options = owner.host.options;
    this.peer = new ZeroMqPeer(this.#options);
  }

  start(): void {
    this.#stop = new AbortController();
    void this.#dial(this.#stop.signal);
  }

  /** Stops further attempts. An open connection continues. */
  stop(): void {
    this.#stop?.abort(new Error("the endpoint was disconnected"));
    this.#stop = null;
    this.#cancelWait?.();
  }

  /** Handles the end of the connection. `wasReady` tells whether its handshake had succeeded. */
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
    const endpoint = formatZeroMqEndpoint(this.#address);
    const link = new ZeroMqLink(this.#owner, { endpoint, dialed: this });
    this.#owner.onDial(link);
    try {
      const connection = await dial(this.#address, link, { signal: deadline.signal });
      if (signal.aborted) return connection.destroy();
      this.#connectedMs = clock.now();
      link.attach(connection);
    } catch (error) {
      if (signal.aborted) return;
      const reason = new Error(describeSocketFailure(error), { cause: error });
      const retryMs = this.#scheduleAttempt();
      link.leave("destroy");
      onEvent({ kind: "connectFailed", endpoint, reason, retryMs });
    }
  }

  /** Starts the timer of the next attempt. Returns its delay in milliseconds. */
  #scheduleAttempt(): number {
    const stop = this.#stop;
    if (stop === null) return 0;
    const { clock, reconnect, random } = this.#options;
    const waitMs = backoffMs(this.#attempt++, { firstMs: reconnect.minMs, maxMs: reconnect.maxMs, jitter: 1 }, random);
    this.#cancelWait = clock.startTimer(waitMs, () => void this.#dial(stop.signal));
    return waitMs;
  }
}
