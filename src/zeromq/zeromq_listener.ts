/** Connects one connection with the peer it belongs to: notifies the socket and updates counters. */
import type { Metadata } from "../wire/zmtp/zmtp_metadata.ts";
import type { SocketType } from "../wire/zmtp/socket_type.ts";
import { ZmtpError, type ZmtpErrorReason } from "../wire/zmtp/zmtp_error.ts";
import type { PeerDescription, Welcome } from "../wire/zmtp/zmtp_peer.ts";
import type { Dialer } from "./dialer.ts";
import { Link, type LinkHost } from "./zeromq_link.ts";
import { Peer } from "./zeromq_peer.ts";
import type { SocketCounters } from "./socket_event.ts";
import type { ResolvedOptions } from "./socket_options.ts";

/** The peer of a connection, as far as it is known. */
export interface Newcomer {
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
  accept(newcomer: Newcomer): ZmtpError | null;
  /** The peer exists from now on: by `connect`, connected or not, or by an accepted connection. */
  added(peer: Peer): void;
  /**
   * The peer's handshake is complete, with this description. Returns the first frame of its messages, or null. Throws
   * ZmtpError to refuse it.
   */
  joined(peer: Peer, description: PeerDescription): Uint8Array | null;
  /** The peer will not come back; its messages can still be taken. */
  removed(peer: Peer): void;
  /** An empty inbox has its first message. */
  arrived(peer: Peer): void;
  /** Messages that arrived together are complete. */
  turn(): void;
  /** The peer may have room for more. */
  room(peer: Peer): void;
}

/** The owner of the ports. */
export interface PortOwner {
  readonly host: PeersHost;
  /** Something that was to be sent was sent, or will not be sent. */
  settled(): void;
  /** A peer has connected to a bound endpoint. */
  add(peer: Peer): void;
  /** An accepted peer is gone for good. */
  remove(peer: Peer): void;
  /** Memory that an accepted connection uses for an incomplete message: see LinkHost. */
  held(port: Port, bytes: number, isNext: boolean): void;
  /** The handshake of an accepted connection is complete, or has failed. */
  known(port: Port): void;
  /** The connection is closed. */
  gone(port: Port): void;
}

export interface PortOptions {
  readonly endpoint: string;
  /** The peer and the dialer of a `connect`; null for an accepted connection. */
  readonly dialed: { readonly peer: Peer; readonly dialer: Dialer } | null;
}

/** Reasons for which the next handshake will fail in the same way until a setting is changed. */
const permanent: readonly ZmtpErrorReason[] = [
  "GREETING",
  "MECHANISM",
  "PROPERTIES",
  "AUTHENTICATION",
  "REFUSED_BY_PEER",
];

export class Port implements LinkHost {
  readonly link: Link;
  /** Null for an accepted connection whose handshake has not ended. */
  peer: Peer | null;
  readonly #owner: PortOwner;
  readonly #host: PeersHost;
  readonly #options: PortOptions;
  #wasReady = false;
  /** This side wants the end, which needs no report. */
  #isLeaving = false;

  constructor(owner: PortOwner, options: PortOptions) {
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
  leave(how: "end" | "destroy"): void {
    this.#isLeaving = true;
    this.link[how]();
  }

  /** The following methods are called by the link. */
  accept(properties: Metadata, userId: string): ZmtpError | null {
    return this.#host.accept({ peer: this.peer, properties, userId });
  }

  ready(description: PeerDescription): Welcome {
    const { options, counters } = this.#host;
    const { endpoint, dialed } = this.#options;
    const peer = this.peer ?? new Peer(options);
    const prefix = this.#host.joined(peer, description);
    peer.description = description;
    this.#wasReady = true;
    if (dialed === null) {
      this.peer = peer;
      this.#owner.known(this);
      this.#owner.add(peer);
    } else if (peer.connections > 0) counters.reconnects++;
    peer.connections++;
    peer.attach(this.link);
    options.onEvent({ kind: "connected", endpoint, address: this.link.address, peer: description });
    this.#host.room(peer);
    return { prefix, wantsMore: !peer.isHeldBack };
  }

  message(frames: Uint8Array[]): boolean {
    const peer = this.peer as Peer;
    const wasEmpty = peer.length === 0;
    const wantsMore = peer.receive(frames);
    if (wasEmpty) this.#host.arrived(peer);
    return wantsMore;
  }

  held(bytes: number, isNext: boolean): void {
    if (this.isAccepted) this.#owner.held(this, bytes, isNext);
  }

  turn(): void {
    this.#host.turn();
  }

  room(): void {
    const { peer } = this;
    if (peer === null || peer.link !== this.link) return;
    peer.feed();
    this.#host.room(peer);
    if (peer.unsent === 0) this.#owner.settled();
  }

  over(reason: Error | null): void {
    if (this.isAccepted) {
      this.#owner.known(this);
      this.#owner.held(this, 0, true);
    }
    if (this.#wasReady) this.#lose(reason);
    else if (!this.#isLeaving) this.#failHandshake(reason);
    if (!this.#isLeaving) this.#options.dialed?.dialer.lost(this.#wasReady);
    this.#owner.settled();
  }

  gone(): void {
    this.#owner.gone(this);
  }

  #lose(reason: Error | null): void {
    const peer = this.peer as Peer;
    this.#host.counters.dropped += peer.detach();
    const { endpoint } = this.#options;
    this.#host.options.onEvent({ kind: "disconnected", endpoint, address: this.link.address, reason });
    if (this.isAccepted) this.#owner.remove(peer);
  }

  #failHandshake(error: Error | null): void {
    const { counters, options } = this.#host;
    const reason = error ?? new ZmtpError("CLOSED", "The peer closed the connection before the end of the handshake");
    const isPermanent = reason instanceof ZmtpError && permanent.includes(reason.reason);
    counters.handshakesFailed++;
    const { endpoint } = this.#options;
    options.onEvent({ kind: "handshakeFailed", endpoint, address: this.link.address, reason, isPermanent });
  }
}
