/** A TLS server that takes renewed certificates into use without a restart. Loaded only where TLS is used. */
import type { Server, Socket } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { currentTls, type TlsSource } from "./connection.ts";
import { limitHandshakes } from "./limit_handshakes.ts";

export type SocketServer = Server;

/** How often the files are looked at, in milliseconds. Bun has no event before the handshake of a connection. */
const renewalMs = 1000;

/** The caller listens, and closes the server. `ca` makes clients need a certificate that is signed by it. */
export function createTlsServer(source: TlsSource, { handshakeMsMax, handshakesMax }: {
  readonly handshakeMsMax: number;
  /** Null: no limit. */
  readonly handshakesMax: number | null;
}, opened: (socket: Socket) => void): Server {
  let used = currentTls(source);
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
