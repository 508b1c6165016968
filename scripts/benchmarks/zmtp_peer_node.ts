/** npm's `zeromq` under Node as a peer of the ZMTP benchmark: node BUNDLE.cjs PROJECT ROLE …, see zmtp_roles.ts. */
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";
import type * as zeromq from "zeromq";
import {
  curveKeyVariables,
  measureWarm,
  medianRoundTripUs,
  zmtpAckBytes,
  type ZmtpMeasure,
  zmtpOutstandingMax,
} from "./zmtp_roles.ts";

const [project = ".", role = "", endpoint = "", ...rest] = process.argv.slice(2);
const zmq = createRequire(join(project, "package.json"))("zeromq") as typeof zeromq;

type Duplex = zeromq.Dealer | zeromq.Router | zeromq.Request | zeromq.Reply;

function secured<S extends Duplex>(socket: S, isServer: boolean): S {
  socket.linger = 0;
  const server = process.env[curveKeyVariables.server];
  if (server === undefined) return socket;
  if (isServer) socket.curveServer = true;
  else socket.curveServerKey = server;
  socket.curvePublicKey = process.env[curveKeyVariables.publicKey] ?? "";
  socket.curveSecretKey = process.env[curveKeyVariables.secretKey] ?? "";
  return socket;
}

async function bound<S extends Duplex>(socket: S, at: string): Promise<S> {
  secured(socket, true);
  await socket.bind(at);
  console.log(socket.lastEndpoint);
  return socket;
}

function connected<S extends Duplex>(socket: S): S {
  secured(socket, false).connect(endpoint);
  return socket;
}

/** Sends every message back, with at most `bytesMax` octets of its last frame. */
async function answer(socket: Duplex, bytesMax: number): Promise<void> {
  for await (const frames of socket) {
    const body = frames[frames.length - 1];
    if (body !== undefined) frames[frames.length - 1] = body.subarray(0, bytesMax);
    await socket.send(frames);
  }
}

async function swallow(socket: zeromq.Dealer): Promise<void> {
  for await (const [body] of socket) if (body?.byteLength === 0) await socket.send("");
}

const roundTrips = (socket: zeromq.Dealer | zeromq.Request): ZmtpMeasure => (body, forMs) =>
  medianRoundTripUs(async () => {
    await socket.send(body);
    await socket.receive();
  }, forMs);

const window = (socket: zeromq.Dealer): ZmtpMeasure => async (body, forMs) => {
  const startMs = performance.now();
  let outstanding = 0;
  let acked = 0;
  let nowMs = startMs;
  while (nowMs < startMs + forMs || outstanding > 0) {
    for (; nowMs < startMs + forMs && outstanding < zmtpOutstandingMax; outstanding++) await socket.send(body);
    await socket.receive();
    outstanding--;
    acked++;
    nowMs = performance.now();
  }
  return acked * 1000 / (nowMs - startMs);
};

const oneWay = (socket: zeromq.Dealer): ZmtpMeasure => async (body, forMs) => {
  const startMs = performance.now();
  let sent = 0;
  for (; sent % 64 !== 0 || performance.now() < startMs + forMs; sent++) await socket.send(body);
  await socket.send("");
  await socket.receive();
  return sent * 1000 / (performance.now() - startMs);
};

const roles: Record<string, () => Promise<void>> = {
  rep: async () => answer(await bound(new zmq.Reply(), endpoint), Infinity),
  echo: async () => answer(await bound(new zmq.Router(), endpoint), Infinity),
  ack: async () => answer(await bound(new zmq.Router(), endpoint), zmtpAckBytes),
  worker: () => answer(connected(new zmq.Dealer()), zmtpAckBytes),
  sink: async () => swallow(await bound(new zmq.Dealer(), endpoint)),
  proxy: async () => {
    const front = await bound(new zmq.Router(), endpoint);
    await new zmq.Proxy(front, await bound(new zmq.Dealer(), rest[0] ?? "")).run();
  },
  req: () => measureWarm(roundTrips(connected(new zmq.Request())), rest),
  ask: () => measureWarm(roundTrips(connected(new zmq.Dealer())), rest),
  window: () => measureWarm(window(connected(new zmq.Dealer())), rest),
  source: () => measureWarm(oneWay(connected(new zmq.Dealer())), rest),
};

// Node runs this as CommonJS, which has no await at the top level.
if (role === "version") console.log(`${zmq.version} ${process.version}`);
else void roles[role]?.().then(() => process.exit(0));
