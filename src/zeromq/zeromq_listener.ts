/** Between one connection and the peer it belongs to: what the socket is told of, and what is counted. */
import type { Metadata } from "../wire/zmtp/zmtp_metadata.ts";
import type { SocketType } from "../wire/zmtp/socket_type.ts";
import { ZmtpError, type ZmtpErrorReason } from "../wire/zmtp/zmtp_error.ts";
import type { PeerDescription, Welcome } from "../wire/zmtp/zmtp_peer.ts";
import type { Dialer } from "./dialer.ts";
import { Link, type LinkHost } from "./zeromq_link.ts";
import { Peer } from "./zeromq_peer.ts";
import type { SocketCounters } from "./socket_event.ts";
import type { ResolvedOptions } from "./socket_options.ts";

/** Who is at the other end of a connection, as far as it has told. */
export interface Newcomer {
  /** Of a `connect`; null for one that was accepted, and is no peer yet. */
  readonly peer: Peer | null;
  readonly properties: Metadata;
  /** Null as long as the authentication has not said. */
  readonly userId: string | null;
}

/** What a socket does with its peers. */
export interface PeersHost {
  readonly type: SocketType;
  readonly options: ResolvedOptions;
  readonly counters: SocketCounters;
  /** A peer that comes to a bound endpoint may be refused for its properties: it hears nothing before that is decided. */
  readonly isChoosy: boolean;
  /** Whether a peer may come in; null, or why not. */
  accept(newcomer: Newcomer): ZmtpError | null;
  /** The peer is there from now on: by `connect`, connected or not, or by a connection that was accepted. */
  added(peer: Peer): void;
  /**
   * The peer's handshake is over, and this is how it describes itself now. Returns what its messages begin with, or null;
   * refuses by throwing ZmtpError.
   */
  joined(peer: Peer, description: PeerDescription): Uint8Array | null;
  /** The peer's connection is lost, whatever becomes of the peer. */
  left(peer: Peer): void;
  /** The peer will not come back; what it has sent can still be taken. */
  removed(peer: Peer): void;
  /** The first message of an empty inbox. */
  arrived(peer: Peer): void;
  /** Messages that came together are all there. */
  turn(): void;
  /** The peer may have room for more. */
  room(peer: Peer): void;
}

/** Who keeps the ports. */
export interface PortOwner {
  readonly host: PeersHost;
  /** Something that was to be sent has left, or will not be sent. */
  settled(): void;
  /** A peer has come to a bound endpoint. */
  add(peer: Peer): void;
  /** An accepted peer is gone for good. */
  remove(peer: Peer): void;
  /** What an accepted connection holds of a message that is not complete: see LinkHost. */
  held(port: Port, bytes: number, isNext: boolean): void;
  /** The handshake of an accepted connection is over, or will never be. */
  known(port: Port): void;
  /** The connection is closed. */
  gone(port: Port): void;
  /** The same, and nothing that it has set off is under way. */
  free(port: Port): void;
}

export interface PortOptions {
  readonly endpoint: string;
  /** The other end's IP address or name; empty for ipc. */
  readonly remoteHost: string;
  /** The peer and the dialer of a `connect`; null for a connection that was accepted. */
  readonly dialed: { readonly peer: Peer; readonly dialer: Dialer } | null;
}

/** Reasons for which the next handshake will end in the same way, until somebody changes something. */
const permanent: readonly ZmtpErrorReason[] = [
  "GREETING",
  "MECHANISM",
  "PROPERTIES",
  "AUTHENTICATION",
  "REFUSED_BY_PEER",
];

export class Port implements LinkHost {
  readonly link: Link;
  /** Null for a connection that was accepted and has not ended its handshake. */
  peer: Peer | null;
  readonly #owner: PortOwner;
  readonly #host: PeersHost;
  readonly #options: PortOptions;
  #wasReady = false;
  /** This side wants it to end, which nobody needs to hear of. */
  #isLeaving = false;

  constructor(owner: PortOwner, options: PortOptions) {
    const { host } = owner;
    this.#owner = owner;
    this.#host = host;
    this.#options = options;
    this.peer = options.dialed?.peer ?? null;
    const isAccepted = options.dialed === null;
    // Of two that both waited none would ever speak.
    const speaksLast = isAccepted && host.isChoosy;
    const linkOptions = { socketType: host.type, settings: host.options, isAccepted, speaksLast };
    this.link = new Link(this, linkOptions, options.remoteHost);
  }

  get isAccepted(): boolean {
    return this.#options.dialed === null;
  }

  /** Ends the connection in order; or at once. */
  leave(how: "end" | "destroy"): void {
    this.#isLeaving = true;
    this.link[how]();
  }

  /** The rest is called by the link. */
  accept(properties: Metadata, userId: string | null): ZmtpError | null {
    return this.#host.accept({ peer: this.peer, properties, userId });
  }

  ready(description: PeerDescription): Welcome {
    const { options, counters } = this.#host;
    const { endpoint, dialed } = this.#options;
    const peer = this.peer ?? new Peer(endpoint, options);
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

  free(): void {
    this.#owner.free(this);
  }

  #lose(reason: Error | null): void {
    const peer = this.peer as Peer;
    this.#host.counters.dropped += peer.detach();
    const { endpoint } = this.#options;
    this.#host.options.onEvent({ kind: "disconnected", endpoint, address: this.link.address, reason });
    this.#host.left(peer);
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
