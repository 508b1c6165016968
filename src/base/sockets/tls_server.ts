/** A TLS server that uses renewed certificates without a restart. Loaded only if TLS is used. */
import type { Server, Socket } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { currentTlsOptions, type TlsSource } from "./connection.ts";

export type SocketServer = Server;

/**
 * How often the files are checked, in milliseconds. A timer checks them, because Bun has no event before a handshake.
 */
const renewalMs = 1000;

/**
 * Creates the server; the caller listens and closes it. If `ca` is set, clients need a certificate that this authority
 * has signed.
 */
export function createTlsServer(source: TlsSource, { handshakeMsMax, handshakesMax }: {
  readonly handshakeMsMax: number;
  /** The most connections in their handshake; null for no limit. */
  readonly handshakesMax: number | null;
}, opened: (socket: Socket) => void): Server {
  let used = currentTlsOptions(source);
  const needsCertificate = { requestCert: used.ca !== undefined, rejectUnauthorized: used.ca !== undefined };
  const server = createServer({ ...used, ...needsCertificate, handshakeTimeout: handshakeMsMax }, opened);
  if (handshakesMax !== null) limitHandshakes(server, handshakesMax);
  // Bun and Deno report a failed handshake, but leave the socket open.
  server.on("tlsClientError", (_error: unknown, socket: TLSSocket) => socket.destroy());
  if ("current" in source) {
    const renewal = setInterval(() => {
      const current = source.current();
      if (current !== used) server.setSecureContext({ ...current, ...needsCertificate });
      used = current;
    }, renewalMs);
    renewal.unref();
    server.once("close", () => clearInterval(renewal));
  }
  return server;
}

/**
 * Limits the number of connections in their TLS handshake, so that silent clients cannot use up the file descriptors.
 * No other code counts these connections.
 */
function limitHandshakes(server: Server, handshakesMax: number): void {
  // The key is the peer's address, because Node.js has separate objects for the TCP connection and for TLS.
  const handshakes = new Map<string, Socket>();
  const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;
  server.on("connection", (socket: Socket) => {
    if (socket.remotePort === undefined) return; // the peer has already reset the connection
    const peer = peerOf(socket);
    handshakes.get(peer)?.destroy(); // an earlier connection from the same port, which has ended
    handshakes.set(peer, socket);
    socket.once("close", () => {
      if (handshakes.get(peer) === socket) handshakes.delete(peer);
    });
    const [oldest] = handshakes;
    if (oldest === undefined || handshakes.size <= handshakesMax) return;
    handshakes.delete(oldest[0]);
    oldest[1].destroy();
  });
  server.on("secureConnection", (socket: Socket) => handshakes.delete(peerOf(socket)));
}
