/**
 * libzmq through npm's `zeromq`, under Node. Bundled to one file first, since Node takes no TypeScript. FOLDER has the
 * package in its node_modules: node DRIVER.cjs FOLDER
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";
import type * as zeromq from "zeromq";
import type { PeerEvent, Security, SocketOptions, SocketType } from "./peer_protocol.ts";
import { retry } from "./retry.ts";
import { type DriverSocket, serve } from "./stdio_driver.ts";

const [folder = "."] = process.argv.slice(2);
const zmq = createRequire(join(folder, "package.json"))("zeromq") as typeof zeromq;

/** The options that some socket types have and others lack. */
type AnySocket = zeromq.Dealer & zeromq.Router & zeromq.Request;

const classes: Record<SocketType, new () => zeromq.Socket> = {
  REQ: zmq.Request,
  REP: zmq.Reply,
  DEALER: zmq.Dealer,
  ROUTER: zmq.Router,
  PUB: zmq.Publisher,
  SUB: zmq.Subscriber,
  PUSH: zmq.Push,
  PULL: zmq.Pull,
  PAIR: zmq.Pair,
};

const eventNames: Partial<Record<zeromq.EventType, PeerEvent>> = {
  "handshake": "ready",
  "handshake:error:auth": "refused",
  "handshake:error:protocol": "refused",
  "handshake:error:other": "refused",
  "disconnect": "lost",
};

function open(type: SocketType, options: SocketOptions): DriverSocket {
  const socket = new classes[type]() as AnySocket;
  applyOptions(socket, type, options);
  const counts: Record<PeerEvent, number> = { ready: 0, refused: 0, lost: 0 };
  for (const [name, event] of Object.entries(eventNames)) {
    socket.events.on(name as zeromq.EventType, () => counts[event]++);
  }
  return {
    async bind(endpoint) {
      await socket.bind(endpoint.replace(/:0$/, ":*"));
      return socket.lastEndpoint ?? endpoint;
    },
    connect: (endpoint) => socket.connect(endpoint),
    send: (frames, withinMs) => send(socket, frames, withinMs),
    receive: (withinMs) => receive(socket, withinMs),
    happened: (event) => counts[event],
    close(lingerMs) {
      socket.linger = lingerMs;
      socket.close();
    },
  };
}

function applyOptions(socket: AnySocket, type: SocketType, options: SocketOptions): void {
  socket.linger = 0;
  // Every restart of a peer is waited for by some test.
  socket.reconnectInterval = 20;
  if (type === "ROUTER") {
    socket.mandatory = true;
    socket.handover = options.handOver ?? false;
  }
  if (options.identity !== undefined) socket.routingId = options.identity;
  if (options.correlate !== undefined) socket.correlate = options.correlate;
  if (options.relaxed !== undefined) socket.relaxed = options.relaxed;
  if (options.sendHighWaterMark !== undefined) socket.sendHighWaterMark = options.sendHighWaterMark;
  if (options.receiveHighWaterMark !== undefined) socket.receiveHighWaterMark = options.receiveHighWaterMark;
  if (options.heartbeatIntervalMs !== undefined) socket.heartbeatInterval = options.heartbeatIntervalMs;
  if (options.heartbeatTimeoutMs !== undefined) socket.heartbeatTimeout = options.heartbeatTimeoutMs;
  if (options.heartbeatTtlMs !== undefined) socket.heartbeatTimeToLive = options.heartbeatTtlMs;
  if (options.handshakeTimeoutMs !== undefined) socket.handshakeInterval = options.handshakeTimeoutMs;
  if (options.security !== undefined) secure(socket, options.security);
}

function secure(socket: zeromq.Socket, security: Security): void {
  if (security.mechanism === "PLAIN") {
    socket.plainUsername = "user";
    socket.plainPassword = "password";
    return;
  }
  socket.curvePublicKey = security.keys.publicKey;
  socket.curveSecretKey = security.keys.secretKey;
  if ("serverKey" in security) {
    socket.curveServerKey = security.serverKey;
    return;
  }
  socket.curveServer = true;
  if (security.clients === undefined) return;
  socket.zapDomain = `domain-${domains.size}`;
  domains.set(socket.zapDomain, new Set(security.clients));
  authenticator ??= authenticate();
}

/** Who may come in, by the domain of the socket: RFC 27 asks a REP socket of the same context. */
const domains = new Map<string, ReadonlySet<string>>();
let authenticator: Promise<void> | undefined;

async function authenticate(): Promise<void> {
  const handler = new zmq.Reply();
  await handler.bind("inproc://zeromq.zap.01");
  for await (const [version, request, domain, , , , key] of handler) {
    const known = domains.get(String(domain))?.has(key?.toString("hex") ?? "") ?? true;
    await handler.send([version ?? "", request ?? "", known ? "200" : "400", known ? "OK" : "unknown key", "", ""]);
  }
}

async function receive(socket: AnySocket, withinMs: number): Promise<Uint8Array[] | null> {
  const deadlineMs = performance.now() + withinMs;
  for (;;) {
    socket.receiveTimeout = Math.max(0, Math.ceil(deadlineMs - performance.now()));
    try {
      return await (socket as zeromq.Readable).receive() as Uint8Array[];
    } catch (error) {
      if (codeOf(error) !== "EAGAIN") throw error;
      // Also said, before the time is over, when what came was dropped: a late answer, a request without an envelope.
      if (performance.now() >= deadlineMs) return null;
    }
  }
}

/**
 * Tried again while a ROUTER does not know its peer yet, and when a peer that goes while it is waited for makes EAGAIN
 * come early.
 */
function send(socket: AnySocket, frames: Uint8Array[], withinMs: number): Promise<boolean> {
  return retry(withinMs, async (leftMs) => {
    socket.sendTimeout = leftMs;
    try {
      await (socket as zeromq.Writable).send(frames);
      return true;
    } catch (error) {
      const code = codeOf(error);
      if (code !== "EAGAIN" && code !== "EHOSTUNREACH") throw error;
      return false;
    }
  });
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}

serve({ version: zmq.version, open });
