/**
 * The DEALER socket of ZeroMQ. Sends each message to the next peer with room, and receives messages from its peers in
 * turn. RFC 28.
 */
import type { ZeroMqSocketType } from "./zmtp/socket_type.ts";
import type { ZeroMqPeer } from "./zeromq_peer.ts";
import { WaitQueue } from "./wait_queue.ts";
import { ZeroMqSocket } from "./zeromq_socket.ts";

export class DealerSocket extends ZeroMqSocket {
  readonly type: ZeroMqSocketType = "DEALER";
  readonly #peers: ZeroMqPeer[] = [];
  #next = 0;
  readonly #senders = new WaitQueue();

  protected override offer(frames: readonly Uint8Array[]): boolean {
    return this.#senders.length === 0 && this.sendToAny(frames) !== null;
  }

  protected override async waitToOffer(
    frames: readonly Uint8Array[],
    signal?: AbortSignal,
  ): Promise<void> {
    await this.#senders.wait(() => this.sendToAny(frames) || undefined, signal);
  }

  protected override failSenders(reason: unknown): void {
    this.#senders.fail(reason);
  }

  /**
   * Gives the message to the next peer with room. Returns that peer, or null if no peer has room. Unlike RFC 28,
   * prefers connected peers: no message then waits for a peer that is down while another peer could take it.
   */
  protected sendToAny(frames: readonly Uint8Array[]): ZeroMqPeer | null {
    return this.#offerInTurn(frames, true) ?? this.#offerInTurn(frames, false);
  }

  #offerInTurn(frames: readonly Uint8Array[], isConnected: boolean): ZeroMqPeer | null {
    const peers = this.#peers;
    const count = peers.length;
    for (let turn = 0; turn < count; turn++) {
      const peer = peers[this.#next] as ZeroMqPeer;
      this.#next = this.#next + 1 === count ? 0 : this.#next + 1;
      if ((peer.link !== null) === isConnected && peer.offer(frames)) return peer;
    }
    return null;
  }

  override onPeerAdded(peer: ZeroMqPeer): void {
    this.#peers.push(peer);
    this.#senders.pump();
  }

  override onPeerRemoved(peer: ZeroMqPeer): void {
    const index = this.#peers.indexOf(peer);
    if (index < 0) return;
    this.#peers.splice(index, 1);
    if (this.#next >= this.#peers.length) this.#next = 0;
  }

  override onRoom(): void {
    if (this.#senders.length > 0) this.#senders.pump();
  }
}
