/** Options of a ZeroMQ socket and their defaults. */
import { BatonError } from "../../base/errors.ts";
import { dial } from "../../base/sockets/dial.ts";
import { type Dial, type Listen } from "../../base/sockets/connection.ts";
import { listen } from "../../base/sockets/listen.ts";
import { type Clock, systemClock } from "../../base/support/clock.ts";
import { type ZmtpLimits, zmtpLimitsDefault } from "./zmtp/zmtp_limits.ts";
import type { SecurityMechanismFactory } from "./zmtp/security_mechanism.ts";
import { nullSecurityMechanism } from "./zmtp/null_mechanism.ts";
import { zmtpIdentityBytesMax } from "./zmtp/socket_type.ts";
import type { ZeroMqSocketEvent } from "./socket_event.ts";

export interface ZeroMqSocketOptions {
  /**
   * The identity of this socket at a ROUTER. It has 1 to 255 bytes, and the first is not zero; text is encoded as
   * UTF-8.
   */
  readonly identity?: Uint8Array | string;
  /** The most messages that may wait to be sent to one peer. */
  readonly sendHighWater?: number;
  /**
   * The most messages of one peer that may wait for the program. At this number, this side stops reading from the peer.
   */
  readonly receiveHighWater?: number;
  /**
   * The same two limits in bytes; each frame counts 128 bytes more than its content. A message is accepted while fewer
   * bytes than the limit wait.
   */
  readonly sendHighWaterBytes?: number;
  readonly receiveHighWaterBytes?: number;
  /** Limits for one message or command of a peer. */
  readonly limits?: Partial<ZmtpLimits>;
  /** The time limit for a connection attempt, in milliseconds. The handshake after it has the same limit. */
  readonly handshakeMsMax?: number;
  /** How often to send a PING, in milliseconds (0: never). The connection ends after `timeoutMs` of silence. */
  readonly heartbeat?: { readonly everyMs: number; readonly timeoutMs: number };
  /** The bounds of the random delay before reconnecting: `minMs` of the first delay, `maxMs` of every delay. */
  readonly reconnect?: { readonly minMs: number; readonly maxMs: number };
  /**
   * The security mechanism: the result of curveClientMechanism or curveServerMechanism. By default there is no
   * security.
   */
  readonly security?: SecurityMechanismFactory;
  /**
   * The most connections of all bound endpoints together: in their handshake, open, or closed with unread messages. One
   * more connection closes the oldest connection in its handshake; if there is none, the new connection is closed.
   */
  readonly connectionsMax?: number;
  /**
   * The memory in bytes for incomplete messages of all accepted connections; by default, room for four messages. When
   * memory is short, the connections that hold the most are not read.
   */
  readonly inputBytesMax?: number;
  /** Called with events of connections. If the function throws, the error is not caught. */
  readonly onEvent?: (event: ZeroMqSocketEvent) => void;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly dial?: Dial;
  readonly listen?: Listen;
}

export interface ResolvedZeroMqSocketOptions
  extends Required<Omit<ZeroMqSocketOptions, "identity" | "limits" | "security">> {
  readonly identity: Uint8Array;
  readonly limits: ZmtpLimits;
  readonly mechanism: SecurityMechanismFactory;
}

export const socketConnectionsMaxDefault = 4096;

/** Returns the options with their defaults. Throws USAGE. */
export function resolveZeroMqSocketOptions(options: ZeroMqSocketOptions): ResolvedZeroMqSocketOptions {
  const limits = { ...zmtpLimitsDefault, ...options.limits };
  const resolved: ResolvedZeroMqSocketOptions = {
    sendHighWater: 1000,
    receiveHighWater: 1000,
    sendHighWaterBytes: limits.messageBytesMax,
    receiveHighWaterBytes: limits.messageBytesMax,
    handshakeMsMax: 10_000,
    heartbeat: { everyMs: 5000, timeoutMs: 15_000 },
    reconnect: { minMs: 100, maxMs: 30_000 },
    connectionsMax: socketConnectionsMaxDefault,
    inputBytesMax: 4 * limits.messageBytesMax,
    onEvent: () => {},
    clock: systemClock(),
    random: Math.random,
    dial,
    listen,
    ...options,
    identity: identityOf(options.identity ?? new Uint8Array(0)),
    limits,
    mechanism: options.security ?? nullSecurityMechanism,
  };
  checkNumbers(resolved);
  return resolved;
}

/** Checks the numbers. Refuses NaN, too: it would be no limit, because every comparison with NaN is false. */
function checkNumbers(options: ResolvedZeroMqSocketOptions): void {
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
    throw new BatonError("USAGE", `Cannot use ${value} as ${name}: it must be ${min} or more${why}`);
  }
}

function identityOf(identity: Uint8Array | string): Uint8Array {
  const bytes = typeof identity === "string" ? new TextEncoder().encode(identity) : new Uint8Array(identity);
  if (bytes.byteLength > zmtpIdentityBytesMax) {
    const message = `An identity has at most ${zmtpIdentityBytesMax} bytes; this one has ${bytes.byteLength}`;
    throw new BatonError("USAGE", message);
  }
  if (bytes[0] === 0) {
    throw new BatonError("USAGE", "An identity cannot begin with a zero byte: ROUTER sockets generate such identities");
  }
  return bytes;
}
