/** Events, counters and memory use of a ZeroMQ socket. */
import type { ZmtpPeerDescription } from "./zmtp/zmtp_peer.ts";

export type ZeroMqSocketEvent =
  /** A handshake is complete; messages can be sent and received. */
  | {
    readonly kind: "connected";
    readonly endpoint: string;
    readonly address: string;
    readonly peer: ZmtpPeerDescription;
  }
  /** A connection after its handshake has ended; the reason is null after an orderly end. */
  | {
    readonly kind: "disconnected";
    readonly endpoint: string;
    readonly address: string;
    readonly reason: Error | null;
  }
  /** A connection ended before its handshake was complete. */
  | {
    readonly kind: "handshakeFailed";
    readonly endpoint: string;
    readonly address: string;
    readonly reason: Error;
  }
  /** The connection could not be made; the next attempt follows after `retryMs`. */
  | { readonly kind: "connectFailed"; readonly endpoint: string; readonly reason: Error; readonly retryMs: number }
  /**
   * A connection was closed because there were more than `connectionsMax`. It is the oldest connection in its
   * handshake; if there is none, the new connection.
   */
  | { readonly kind: "connectionRefused"; readonly endpoint: string; readonly address: string };

/** Counters since the socket was created. */
export interface ZeroMqSocketCounters {
  /** Messages delivered to the program. */
  received: number;
  /** Messages accepted from the program. */
  sent: number;
  /** Messages dropped because their peer was not connected. */
  unroutable: number;
  /**
   * Accepted messages that were dropped or may be lost: before they were sent, their peer left or the socket was
   * closed.
   */
  dropped: number;
  handshakesFailed: number;
  connectionsRefused: number;
  /** Connections that were closed because memory was short and their message stayed incomplete for too long. */
  incompleteClosed: number;
  reconnects: number;
}

export function newZeroMqSocketCounters(): ZeroMqSocketCounters {
  return {
    received: 0,
    sent: 0,
    unroutable: 0,
    dropped: 0,
    handshakesFailed: 0,
    connectionsRefused: 0,
    incompleteClosed: 0,
    reconnects: 0,
  };
}

/** The current resources of a socket's accepted connections. */
export interface ZeroMqSocketLoad {
  readonly connections: number;
  readonly inputBytes: number;
}
