/**
 * Limits the connections in their TLS handshake, which no other code counts: silent ones must not use up the
 * descriptors.
 */
import type { Server, Socket } from "node:net";

export function limitHandshakes(server: Server, handshakesMax: number): void {
  // The key is the peer: Node.js has one object for the TCP connection, and another for TLS.
  const handshakes = new Map<string, Socket>();
  const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;
  server.on("connection", (socket: Socket) => {
    if (socket.remotePort === undefined) return; // already reset
    const peer = peerOf(socket);
    handshakes.get(peer)?.destroy(); // an ended connection whose port is reused
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
