/**
 * What the tests ask of any implementation of ZeroMQ's sockets. Each lives in a process of its own, the driver, that
 * reads requests from stdin and answers on stdout, one JSON object a line, and ends when stdin does. The drivers:
 * own_driver.ts, libzmq_driver.ts, libzmq_driver.py.
 */

export type SocketType = "REQ" | "REP" | "DEALER" | "ROUTER" | "PUB" | "SUB" | "PUSH" | "PULL" | "PAIR";

/** Both in Z85. */
export interface CurveKeys {
  readonly publicKey: string;
  readonly secretKey: string;
}

/** `clients`: the public keys, in hexadecimal, that a server lets in; all when left out. PLAIN is for libzmq alone. */
export type Security =
  | { readonly mechanism: "PLAIN" }
  | { readonly mechanism: "CURVE"; readonly keys: CurveKeys; readonly serverKey: string }
  | { readonly mechanism: "CURVE"; readonly keys: CurveKeys; readonly clients?: readonly string[] };

export interface SocketOptions {
  readonly identity?: string;
  /** A ROUTER gives the identity of a peer to the next one that brings it. */
  readonly handOver?: boolean;
  readonly correlate?: boolean;
  readonly relaxed?: boolean;
  /** In messages. */
  readonly sendHighWaterMark?: number;
  readonly receiveHighWaterMark?: number;
  readonly heartbeatIntervalMs?: number;
  readonly heartbeatTimeoutMs?: number;
  readonly heartbeatTtlMs?: number;
  readonly handshakeTimeoutMs?: number;
  readonly security?: Security;
}

/** A text of octets (U+0000 to U+00FF), or octets that follow from a size and a seed, for frames too long to write. */
export type Frame = string | { readonly size: number; readonly seed: number };

/** What a socket was told of its peers: a handshake came to its end, or did not, or a ready peer went away. */
export type PeerEvent = "ready" | "refused" | "lost";

export type Operation =
  | { readonly op: "version" }
  | { readonly op: "open"; readonly socket: number; readonly type: SocketType; readonly options: SocketOptions }
  | { readonly op: "bind" | "connect"; readonly socket: number; readonly endpoint: string }
  | {
    readonly op: "send";
    readonly socket: number;
    readonly messages: readonly (readonly Frame[])[];
    /** How often all of them are sent, one time after the other. */
    readonly times: number;
    /** Of which each message's last frame starts with its number, counted from 0. */
    readonly numbered: boolean;
    readonly withinMs: number;
  }
  | { readonly op: "receive"; readonly socket: number; readonly count: number; readonly withinMs: number }
  | {
    readonly op: "await";
    readonly socket: number;
    readonly event: PeerEvent;
    readonly count: number;
    readonly withinMs: number;
  }
  | { readonly op: "close"; readonly socket: number; readonly lingerMs: number };

export type Request = Operation & { readonly id: number };
/** send: how many messages were taken; receive: the messages, as labels; await: how often the event has happened. */
export type Answer = { readonly id: number; readonly value: unknown } | { readonly id: number; readonly error: string };
