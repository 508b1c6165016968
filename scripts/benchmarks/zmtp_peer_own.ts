/** baton's sockets as a peer of the ZMTP benchmark, see zmtp_roles.ts. Compiled before it runs, as baton is. */
import { randomBytes } from "node:crypto";
import process from "node:process";
import { xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import { DealerSocket } from "../../src/protocols/zeromq/dealer_socket.ts";
import { ReplySocket } from "../../test/support/reply_socket.ts";
import { RequestSocket } from "../../test/support/request_socket.ts";
import { RouterSocket } from "../../src/protocols/zeromq/router_socket.ts";
import type { ZeroMqSocketOptions } from "../../src/protocols/zeromq/socket_options.ts";
import { prepareX25519Secret } from "../../src/base/support/x25519.ts";
import { decodeZ85 } from "../../src/base/wire/z85.ts";
import { curveClientMechanism } from "../../src/protocols/zeromq/zmtp/curve_client.ts";
import { curveServerMechanism } from "../../src/protocols/zeromq/zmtp/curve_server.ts";
import {
  curveKeyVariables,
  measureWarm,
  medianRoundTripUs,
  zmtpAckBytes,
  type ZmtpMeasure,
  zmtpOutstandingMax,
} from "./zmtp_roles.ts";
import { messagesOf } from "../../test/support/messages_of.ts";

const [role = "", endpoint = "", ...rest] = process.argv.slice(2);

type Duplex = RouterSocket | DealerSocket;

function options(isServer: boolean): ZeroMqSocketOptions {
  const heartbeat = { everyMs: 0, timeoutMs: 0 }; // none by default, as with libzmq
  const server = process.env[curveKeyVariables.server];
  if (server === undefined) return { heartbeat };
  const own = { key: prepareX25519Secret(keyOf(process.env[curveKeyVariables.secretKey] ?? "")), randomBytes: random };
  return {
    heartbeat,
    security: isServer ? curveServerMechanism(own) : curveClientMechanism({ ...own, serverKey: keyOf(server) }),
  };
}

const random = (count: number) => new Uint8Array(randomBytes(count));

function keyOf(text: string): Uint8Array {
  const key = decodeZ85(text);
  if (!(key instanceof Uint8Array)) throw new Error(`${text} is no key`);
  return key;
}

async function bound<S extends Duplex | ReplySocket>(socket: S, at: string): Promise<S> {
  console.log(await socket.bind(at));
  return socket;
}

function connected<S extends Duplex | RequestSocket>(socket: S): S {
  socket.connect(endpoint);
  return socket;
}

/** Sends every message back, with at most `bytesMax` octets of its last frame. */
async function answer(socket: Duplex, bytesMax: number): Promise<void> {
  for await (const batch of socket.batches()) {
    for (const frames of batch) {
      const last = frames.length - 1;
      const body = frames[last];
      if (body !== undefined && body.byteLength > bytesMax) frames[last] = body.subarray(0, bytesMax);
      if (!socket.trySend(frames)) await socket.send(frames);
    }
  }
}

async function forward(from: Duplex, to: Duplex): Promise<void> {
  for await (const batch of from.batches()) {
    for (const frames of batch) if (!to.trySend(frames)) await to.send(frames);
  }
}

async function reply(socket: ReplySocket): Promise<void> {
  for await (const frames of messagesOf(socket)) await socket.send(frames);
}

async function swallow(socket: DealerSocket): Promise<void> {
  for await (const batch of socket.batches()) {
    for (const [body] of batch) if (body?.byteLength === 0) await socket.send([body]);
  }
}

const roundTrips = (socket: DealerSocket | RequestSocket): ZmtpMeasure => (body, forMs) =>
  medianRoundTripUs(async () => {
    await socket.send([body]);
    await socket.receive();
  }, forMs);

const window = (socket: DealerSocket): ZmtpMeasure => async (body, forMs) => {
  const message = [body];
  const startMs = performance.now();
  let outstanding = 0;
  let acked = 0;
  let nowMs = startMs;
  await socket.send(message); // the first one waits for the connection
  outstanding++;
  for await (const batch of socket.batches()) {
    outstanding -= batch.length;
    acked += batch.length;
    nowMs = performance.now();
    const isOver = nowMs >= startMs + forMs;
    if (isOver && outstanding === 0) break;
    while (!isOver && outstanding < zmtpOutstandingMax) {
      if (!socket.trySend(message)) await socket.send(message);
      outstanding++;
    }
  }
  return acked * 1000 / (nowMs - startMs);
};

const oneWay = (socket: DealerSocket): ZmtpMeasure => async (body, forMs) => {
  const message = [body];
  const startMs = performance.now();
  let sent = 0;
  for (; sent % 64 !== 0 || performance.now() < startMs + forMs; sent++) {
    if (!socket.trySend(message)) await socket.send(message);
  }
  await socket.send([new Uint8Array(0)]);
  await socket.receive();
  return sent * 1000 / (performance.now() - startMs);
};

/** Measures the bare cipher, without CURVE: how often the slower of sealing and opening runs in a second. */
const cipher: ZmtpMeasure = (body, forMs) => {
  const key = random(32);
  const nonce = random(24);
  const box = xsalsa20poly1305(key, nonce).encrypt(body);
  const perSecond = (act: () => void) => {
    const startMs = performance.now();
    let done = 0;
    for (; done % 64 !== 0 || performance.now() < startMs + forMs / 2; done++) act();
    return done * 1000 / (performance.now() - startMs);
  };
  const sealed = perSecond(() => xsalsa20poly1305(key, nonce).encrypt(body));
  return Promise.resolve(Math.min(sealed, perSecond(() => xsalsa20poly1305(key, nonce).decrypt(box))));
};

const roles: Record<string, () => Promise<void>> = {
  rep: async () => reply(await bound(new ReplySocket(options(true)), endpoint)),
  echo: async () => answer(await bound(new RouterSocket(options(true)), endpoint), Infinity),
  ack: async () => answer(await bound(new RouterSocket(options(true)), endpoint), zmtpAckBytes),
  worker: () => answer(connected(new DealerSocket(options(false))), zmtpAckBytes),
  sink: async () => swallow(await bound(new DealerSocket(options(true)), endpoint)),
  proxy: async () => {
    const front = await bound(new RouterSocket(options(true)), endpoint);
    const back = await bound(new DealerSocket(options(true)), rest[0] ?? "");
    await Promise.all([forward(front, back), forward(back, front)]);
  },
  req: () => measureWarm(roundTrips(connected(new RequestSocket(options(false)))), rest),
  ask: () => measureWarm(roundTrips(connected(new DealerSocket(options(false)))), rest),
  window: () => measureWarm(window(connected(new DealerSocket(options(false)))), rest),
  cipher: () => measureWarm(cipher, rest),
  source: () => measureWarm(oneWay(connected(new DealerSocket(options(false)))), rest),
};

await roles[role]?.();
process.exit(0);
