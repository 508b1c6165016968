/** baton's own sockets as a driver: under Bun, under Deno, or compiled. */
import { randomBytes } from "node:crypto";
import { DealerSocket } from "../../../src/protocols/zeromq/dealer_socket.ts";
import { ReplySocket } from "../reply_socket.ts";
import { RequestSocket } from "../request_socket.ts";
import { RouterSocket } from "../../../src/protocols/zeromq/router_socket.ts";
import type { ZeroMqSocketOptions as OwnOptions } from "../../../src/protocols/zeromq/socket_options.ts";
import { prepareX25519Secret } from "../../../src/base/support/x25519.ts";
import { decodeZ85 } from "../../../src/base/wire/z85.ts";
import { curveClientMechanism } from "../../../src/protocols/zeromq/zmtp/curve_client.ts";
import { curveServerMechanism } from "../../../src/protocols/zeromq/zmtp/curve_server.ts";
import type { PeerEvent, Security, SocketOptions, SocketType } from "./peer_protocol.ts";
import { retry } from "./retry.ts";
import { type DriverSocket, serve } from "./stdio_driver.ts";

const classes = { REQ: RequestSocket, REP: ReplySocket, DEALER: DealerSocket, ROUTER: RouterSocket } as const;

type AnySocket = InstanceType<(typeof classes)[keyof typeof classes]>;

const eventNames: Readonly<Record<string, PeerEvent>> = {
  connected: "ready",
  handshakeFailed: "refused",
  disconnected: "lost",
};

function open(type: SocketType, options: SocketOptions): DriverSocket {
  if (!(type in classes)) throw new Error(`baton has no ${type}`);
  const counts: Record<PeerEvent, number> = { ready: 0, refused: 0, lost: 0 };
  const onEvent = ({ kind }: { kind: string }) => {
    const event = eventNames[kind];
    if (event !== undefined) counts[event]++;
  };
  const socket = new classes[type as keyof typeof classes]({ ...ownOptions(options), onEvent });
  return {
    bind: (endpoint) => socket.bind(endpoint),
    connect: (endpoint) => void socket.connect(endpoint),
    send: (frames, withinMs) => send(socket, frames, withinMs),
    receive: (withinMs) => inTime(withinMs, (signal) => socket.receive({ signal })),
    happened: (event) => counts[event],
    close: (lingerMs) => socket.close({ lingerMs }),
  };
}

function ownOptions(options: SocketOptions): OwnOptions {
  const heartbeat = { everyMs: options.heartbeatIntervalMs ?? 0, timeoutMs: options.heartbeatTimeoutMs ?? 0 };
  return {
    heartbeat,
    // Every restart of a peer is waited for by some test.
    reconnect: { minMs: 20, maxMs: 40 },
    ...(options.identity === undefined ? {} : { identity: Buffer.from(options.identity, "latin1") }),
    ...(options.sendHighWaterMark === undefined ? {} : { sendHighWater: options.sendHighWaterMark }),
    ...(options.receiveHighWaterMark === undefined ? {} : { receiveHighWater: options.receiveHighWaterMark }),
    ...(options.handshakeTimeoutMs === undefined ? {} : { handshakeMsMax: options.handshakeTimeoutMs }),
    ...(options.correlate === undefined ? {} : { correlate: options.correlate }),
    ...(options.relaxed === undefined ? {} : { relaxed: options.relaxed }),
    ...(options.security === undefined ? {} : securityOptions(options.security)),
  };
}

function securityOptions(security: Security): OwnOptions {
  if (security.mechanism !== "CURVE") throw new Error(`baton has no ${security.mechanism}`);
  const key = prepareX25519Secret(keyOf(security.keys.secretKey));
  const random = (count: number) => new Uint8Array(randomBytes(count));
  if ("serverKey" in security) {
    return { security: curveClientMechanism({ key, serverKey: keyOf(security.serverKey), randomBytes: random }) };
  }
  const known = security.clients;
  const isAllowed = (publicKey: string) => known?.includes(Buffer.from(keyOf(publicKey)).toString("hex")) ?? true;
  return { security: curveServerMechanism({ key, randomBytes: random, isAllowed }) };
}

function keyOf(text: string): Uint8Array {
  const key = decodeZ85(text);
  if (!(key instanceof Uint8Array)) throw new Error(`${text} is no key`);
  return key;
}

/** False when the time is over first. A ROUTER is tried again while it does not know its peer yet. */
function send(socket: AnySocket, frames: Uint8Array[], withinMs: number): Promise<boolean> {
  return retry(withinMs, async (leftMs) => {
    if (socket instanceof RouterSocket && socket.peer(frames[0] as Uint8Array) === null) return false;
    return await inTime(leftMs, async (signal) => {
      await socket.send(frames, { signal });
      return true;
    }) ?? false;
  });
}

/** Null when the time is over first. */
async function inTime<T>(withinMs: number, act: (signal: AbortSignal) => Promise<T>): Promise<T | null> {
  const signal = AbortSignal.timeout(withinMs);
  try {
    return await act(signal);
  } catch (error) {
    if (signal.aborted && error === signal.reason) return null;
    throw error;
  }
}

serve({ version: "own", open });
