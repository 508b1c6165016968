/** Connects one connection with the peer it belongs to: notifies the socket and updates counters. */
import type { Metadata } from "../wire/zmtp/zmtp_metadata.ts";
import type { SocketType } from "../wire/zmtp/socket_type.ts";
import { ZmtpError } from "../wire/zmtp/zmtp_error.ts";
import type { PeerDescription, ReceiveOptions } from "../wire/zmtp/zmtp_peer.ts";
import type { Dialer } from "./dialer.ts";
import { Link, type LinkHost } from "./zeromq_link.ts";
import { Peer } from "./zeromq_peer.ts";
import type { SocketCounters } from "./socket_event.ts";
import type { ResolvedOptions } from "./socket_options.ts";

/** The peer of a connection, as far as it is known. */
export interface PeerCandidate {
  /** The peer of a `connect`; null for an accepted connection before its handshake has ended. */
  readonly peer: Peer | null;
  readonly properties: Metadata;
  readonly userId: string;
}

/** Operations of a socket on its peers. */
export interface PeersHost {
  readonly type: SocketType;
  readonly options: ResolvedOptions;
  readonly counters: SocketCounters;
  /** Returns null if a peer is accepted, or why not. */
  acceptPeer(candidate: PeerCandidate): ZmtpError | null;
  /** The peer exists from now on: by `connect`, connected or not, or by an accepted connection. */
  onPeerAdded(peer: Peer): void;
  /**
   * The peer's handshake is complete, with this description. Returns the first frame of its messages, or null. Throws
   * ZmtpError to refuse it.
   */
  onPeerReady(peer: Peer, description: PeerDescription): Uint8Array | null;
  /** The peer will not come back; its messages can still be taken. */
  onPeerRemoved(peer: Peer): void;
  /** An empty inbox has its first message. */
  onFirstMessage(peer: Peer): void;
  /** Messages that arrived together are complete. */
  onBatchEnd(): void;
  /** The peer may have room for more. */
  onRoom(peer: Peer): void;
}

/** The owner of the peer connections. */
export interface PeerConnectionOwner {
  readonly host: PeersHost;
  /** Something that was to be sent was sent, or will not be sent. */
  onSettled(): void;
  /** A peer has connected to a bound endpoint. */
  add(peer: Peer): void;
  /** An accepted peer is gone for good. */
  remove(peer: Peer): void;
  /** Memory that an accepted connection uses for an incomplete message: see LinkHost. */
  onHeldBytes(connection: PeerConnection, bytes: number, isNext: boolean): void;
  /** The handshake of an accepted connection is complete, or has failed. */
  onHandshakeEnd(connection: PeerConnection): void;
  /** The connection is closed. */
  onClosed(connection: PeerConnection): void;
}

export interface PeerConnectionOptions {
  readonly endpoint: string;
  /** The peer and the dialer of a `connect`; null for an accepted connection. */
  readonly dialed: { readonly peer: Peer; readonly dialer: Dialer } | null;
}

export class PeerConnection implements LinkHost {
  readonly link: Link;
  /** Null for an accepted connection whose handshake has not ended. */
  peer: Peer | null;
  readonly #owner: PeerConnectionOwner;
  readonly #host: PeersHost;
  readonly #options: PeerConnectionOptions;
  #wasReady = false;
  /** This side wants the end, which needs no report. */
  #isLeaving = false;

  constructor(owner: PeerConnectionOwner, options: PeerConnectionOptions) {
    const { host } = owner;
    this.#owner = owner;
    this.#host = host;
    this.#options = options;
    this.peer = options.dialed?.peer ?? null;
    this.link = new Link(this, { socketType: host.type, settings: host.options });
  }

  get isAccepted(): boolean {
    return this.#options.dialed === null;
  }

  /** Ends the connection in an orderly way, or immediately. */
  endConnection(how: "end" | "destroy"): void {
    this.#isLeaving = true;
    this.link[how]();
  }

  /** The following methods are called by the link. */
  acceptPeer(properties: Metadata, userId: string): ZmtpError | null {
    return this.#host.acceptPeer({ peer: this.peer, properties, userId });
  }

  onReady(description: PeerDescription): ReceiveOptions {
    const { options, counters } = this.#host;
    const { endpoint, dialed } = this.#options;
    const peer = this.peer ?? new Peer(options);
    const prefix = this.#host.onPeerReady(peer, description);
    peer.description = description;
    this.#wasReady = true;
    if (dialed === null) {
      this.peer = peer;
      this.#owner.onHandshakeEnd(this);
      this.#owner.add(peer);
    } else if (peer.connections > 0) counters.reconnects++;
    peer.connections++;
    peer.attach(this.link);
    options.onEvent({ kind: "connected", endpoint, address: this.link.address, peer: description });
    this.#host.onRoom(peer);
    return { prefix, wantsMore: !peer.isHeldBack };
  }

  onMessage(frames: Uint8Array[]): boolean {
    const peer = this.peer as Peer;
    const wasEmpty = peer.length === 0;
    const wantsMore = peer.receive(frames);
    if (wasEmpty) this.#host.onFirstMessage(peer);
    return wantsMore;
  }

  onHeldBytes(bytes: number, isNext: boolean): void {
    if (this.isAccepted) this.#owner.onHeldBytes(this, bytes, isNext);
  }

  onBatchEnd(): void {
    this.#host.onBatchEnd();
  }

  onRoom(): void {
    const { peer } = this;
    if (peer === null || peer.link !== this.link) return;
    peer.sendQueued();
    this.#host.onRoom(peer);
    if (peer.unsent === 0) this.#owner.onSettled();
  }

  onEnd(reason: Error | null): void {
    if (this.isAccepted) {
      this.#owner.onHandshakeEnd(this);
      this.#owner.onHeldBytes(this, 0, true);
    }
    if (this.#wasReady) this.#losePeer(reason);
    else if (!this.#isLeaving) this.#failHandshake(reason);
    if (!this.#isLeaving) this.#options.dialed?.dialer.handleLoss(this.#wasReady);
    this.#owner.onSettled();
  }

  onClosed(): void {
    this.#owner.onClosed(this);
  }

  #losePeer(reason: Error | null): void {
    const peer = this.peer as Peer;
    this.#host.counters.dropped += peer.detach();
    const { endpoint } = this.#options;
    this.#host.options.onEvent({ kind: "disconnected", endpoint, address: this.link.address, reason });
    if (this.isAccepted) this.#owner.remove(peer);
  }

  #failHandshake(error: Error | null): void {
    const { counters, options } = this.#host;
    const reason = error ?? new ZmtpError("CLOSED", "The peer closed the connection before the end of the handshake");
    counters.handshakesFailed++;
    const { endpoint } = this.#options;
    options.onEvent({ kind: "handshakeFailed", endpoint, address: this.link.address, reason });
  }
}
