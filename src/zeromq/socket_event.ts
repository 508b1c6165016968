/** What a ZeroMQ socket tells of itself, besides messages. */
import type { PeerDescription } from "../wire/zmtp/zmtp_peer.ts";

export type SocketEvent =
  /** A handshake is over; messages go to and fro. */
  | { readonly kind: "connected"; readonly endpoint: string; readonly address: string; readonly peer: PeerDescription }
  /** A peer that was connected is not any more; null: an orderly end. */
  | {
    readonly kind: "disconnected";
    readonly endpoint: string;
    readonly address: string;
    readonly reason: Error | null;
  }
  /** A connection was made, and ended before the handshake did. */
  | {
    readonly kind: "handshakeFailed";
    readonly endpoint: string;
    readonly address: string;
    readonly reason: Error;
    /** It will end in the same way until somebody changes keys, names or types; it is tried again all the same. */
    readonly isPermanent: boolean;
  }
  /** No connection could be made to the endpoint; the next try is made after `retryMs`. */
  | { readonly kind: "connectFailed"; readonly endpoint: string; readonly reason: Error; readonly retryMs: number }
  /** A connection was closed because of the limit of `connectionsMax`: the oldest in its handshake, or else the new one. */
  | { readonly kind: "connectionRefused"; readonly endpoint: string; readonly address: string };

/** Counted since the socket was made. */
export interface SocketCounters {
  /** Messages handed to the program. */
  received: number;
  /** Messages taken from the program. */
  sent: number;
  /** Messages for a peer that is not connected. */
  unroutable: number;
  /** Messages taken, and thrown away or perhaps lost: their peer left, or the socket was closed, before they were sent. */
  dropped: number;
  /** Messages received and thrown away: an answer that nobody waits for, a request without an envelope. */
  discarded: number;
  handshakesFailed: number;
  connectionsRefused: number;
  /** Connections that were closed because memory was short and their message did not end. */
  incompleteClosed: number;
  /** Connections made again after a loss. */
  reconnects: number;
}

export function newCounters(): SocketCounters {
  return {
    received: 0,
    sent: 0,
    unroutable: 0,
    dropped: 0,
    discarded: 0,
    handshakesFailed: 0,
    connectionsRefused: 0,
    incompleteClosed: 0,
    reconnects: 0,
  };
}

/** What the accepted connections of a socket take at present. */
export interface SocketLoad {
  /** Places of `connectionsMax`. */
  readonly connections: number;
  /** Of `inputBytesMax`, in bytes. */
  readonly inputBytes: number;
}
