/** Options of a ZeroMQ socket and their defaults. */
import { BatonError } from "../errors.ts";
import { dial } from "../sockets/dial.ts";
import { type Dial, type Listen } from "../sockets/connection.ts";
import { listen } from "../sockets/listen.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import { type ZmtpLimits, zmtpLimitsDefault } from "../wire/zmtp/zmtp_limits.ts";
import type {
  AuthenticationRequest,
  AuthenticationVerdict,
  MechanismFactory,
} from "../wire/zmtp/security_mechanism.ts";
import { nullMechanism } from "../wire/zmtp/null_mechanism.ts";
import { identityBytesMax } from "../wire/zmtp/socket_type.ts";
import type { SocketEvent } from "./socket_event.ts";

/** Decides whether a peer may come in, by what RFC 27 tells of it. A rejection counts as status 500. */
export type Authenticate = (request: AuthenticationRequest) => AuthenticationVerdict | Promise<AuthenticationVerdict>;

export interface SocketOptions {
  /** What a ROUTER at the other end knows this socket by: 1 to 255 bytes, the first not zero; a text is UTF-8. */
  readonly identity?: Uint8Array | string;
  /** Messages that may wait for one peer to take them. */
  readonly sendHighWater?: number;
  /** Messages of one peer that may wait for the program; from then on nothing more is read from that peer. */
  readonly receiveHighWater?: number;
  /** The same in bytes, with 128 more for each frame: one more message is taken as long as fewer wait. */
  readonly sendHighWaterBytes?: number;
  readonly receiveHighWaterBytes?: number;
  /** What one peer may make this side hold for one message or command. */
  readonly limits?: Partial<ZmtpLimits>;
  /** A connection that is not made, or a handshake that is not over, after so many milliseconds is given up. */
  readonly handshakeMsMax?: number;
  /** A PING every so many milliseconds (0: never), and the end for a peer of which nothing was heard for `timeoutMs`. */
  readonly heartbeat?: { readonly everyMs: number; readonly timeoutMs: number };
  /** The bounds of the random wait before a connection is made again: the first one's, and that of all. */
  readonly reconnect?: { readonly minMs: number; readonly maxMs: number };
  /** NULL when left out; curveClient(…) or curveServer(…). */
  readonly security?: { readonly mechanism: "NULL" } | MechanismFactory;
  /** Asked about every peer that connects to a bound endpoint, or to a CURVE server; everybody may come in when left out. */
  readonly authenticate?: Authenticate;
  /**
   * Connections that all bound endpoints together accept: in handshake, open, or closed with messages that are unread. For one
   * more the oldest in its handshake is closed, or else the new one.
   */
  readonly connectionsMax?: number;
  /**
   * Memory for messages that have not arrived completely, of all connections that bound endpoints have accepted: the room of
   * four messages when left out. When it is short, those are not read from that hold most.
   */
  readonly inputBytesMax?: number;
  /** Hears of connections. What it throws is not caught. */
  readonly onEvent?: (event: SocketEvent) => void;
  /** For tests. */
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly dial?: Dial;
  readonly listen?: Listen;
}

export interface ResolvedOptions {
  readonly identity: Uint8Array;
  readonly sendHighWater: number;
  readonly receiveHighWater: number;
  readonly sendHighWaterBytes: number;
  readonly receiveHighWaterBytes: number;
  readonly limits: ZmtpLimits;
  readonly handshakeMsMax: number;
  readonly heartbeat: { readonly everyMs: number; readonly timeoutMs: number };
  readonly reconnect: { readonly minMs: number; readonly maxMs: number };
  readonly mechanism: MechanismFactory;
  readonly authenticate: Authenticate | null;
  readonly connectionsMax: number;
  readonly inputBytesMax: number;
  readonly onEvent: (event: SocketEvent) => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly dial: Dial;
  readonly listen: Listen;
}

export const connectionsMaxDefault = 4096;

/** Throws USAGE for a value that cannot be meant. */
export function resolveOptions(options: SocketOptions): ResolvedOptions {
  const limits = { ...zmtpLimitsDefault, ...options.limits };
  const resolved: ResolvedOptions = {
    identity: identityOf(options.identity ?? new Uint8Array(0)),
    sendHighWater: options.sendHighWater ?? 1000,
    receiveHighWater: options.receiveHighWater ?? 1000,
    sendHighWaterBytes: options.sendHighWaterBytes ?? limits.messageBytesMax,
    receiveHighWaterBytes: options.receiveHighWaterBytes ?? limits.messageBytesMax,
    limits,
    handshakeMsMax: options.handshakeMsMax ?? 10_000,
    heartbeat: options.heartbeat ?? { everyMs: 5000, timeoutMs: 15_000 },
    reconnect: options.reconnect ?? { minMs: 100, maxMs: 30_000 },
    mechanism: options.security !== undefined && "create" in options.security ? options.security : nullMechanism,
    authenticate: options.authenticate ?? null,
    connectionsMax: options.connectionsMax ?? connectionsMaxDefault,
    inputBytesMax: options.inputBytesMax ?? 4 * limits.messageBytesMax,
    onEvent: options.onEvent ?? (() => {}),
    clock: options.clock ?? systemClock(),
    random: options.random ?? Math.random,
    dial: options.dial ?? dial,
    listen: options.listen ?? listen,
  };
  checkNumbers(resolved);
  return resolved;
}

/** NaN is refused with the rest: every comparison with it is false, so that as a limit it would be none. */
function checkNumbers(options: ResolvedOptions): void {
  const { limits, heartbeat, reconnect } = options;
  const least: readonly [name: string, value: number, least: number][] = [
    ["limits.messageBytesMax", limits.messageBytesMax, 1],
    ["limits.framesMax", limits.framesMax, 1],
    ["limits.commandBytesMax", limits.commandBytesMax, 1],
    ["sendHighWater", options.sendHighWater, 1],
    ["receiveHighWater", options.receiveHighWater, 1],
    ["sendHighWaterBytes", options.sendHighWaterBytes, 1],
    ["receiveHighWaterBytes", options.receiveHighWaterBytes, 1],
    ["handshakeMsMax", options.handshakeMsMax, 1],
    ["connectionsMax", options.connectionsMax, 1],
    ["inputBytesMax", options.inputBytesMax, 1.5 * limits.messageBytesMax],
    ["heartbeat.everyMs", heartbeat.everyMs, 0],
    ["heartbeat.timeoutMs", heartbeat.timeoutMs, 0],
    ["reconnect.minMs", reconnect.minMs, 1],
    ["reconnect.maxMs", reconnect.maxMs, reconnect.minMs],
  ];
  for (const [name, value, min] of least) {
    if (value >= min) continue;
    const why = name === "reconnect.maxMs" ? ", as reconnect.minMs" : "";
    throw new BatonError("USAGE", `Cannot use ${value} as ${name}: it is ${min} or more${why}`);
  }
}

function identityOf(identity: Uint8Array | string): Uint8Array {
  const bytes = typeof identity === "string" ? new TextEncoder().encode(identity) : new Uint8Array(identity);
  if (bytes.byteLength > identityBytesMax) {
    const message = `An identity has at most ${identityBytesMax} bytes; this one has ${bytes.byteLength}`;
    throw new BatonError("USAGE", message);
  }
  if (bytes[0] === 0) {
    throw new BatonError("USAGE", "An identity cannot begin with a zero byte: those are given out by ROUTER sockets");
  }
  return bytes;
}
