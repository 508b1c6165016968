/** Listens with Bun's sockets, without TLS. See listen.ts for the contract. */
import type { Socket, SocketHandler } from "bun";
import { BunConnection, bunHalfOpenSocketHandlers, bunSocketHandlers } from "./bun_connection.ts";
import { formatAddress, type Listen } from "./connection.ts";

// deno-lint-ignore require-await -- async so that a failure to listen is a rejection, as the contract says
export const bunListen: Listen = async (address, accept, { halfOpen: allowHalfOpen = false } = {}) => {
  const open = (socket: Socket<BunConnection>): void => {
    const peer = address.kind === "unix"
      ? formatAddress(address)
      // Bun's types do not show that a connection has no address if its peer has reset it.
      : formatAddress({ kind: "tcp", host: socket.remoteAddress ?? "", port: socket.remotePort ?? 0 });
    const connection = new BunConnection(peer);
    socket.data = connection;
    connection.onOpen(socket);
    connection.setHandlers(accept(connection));
  };
  const handlers: SocketHandler<BunConnection> = {
    ...(allowHalfOpen ? bunHalfOpenSocketHandlers : bunSocketHandlers),
    open,
  };
  if (address.kind === "unix") {
    const server = Bun.listen<BunConnection>({ unix: address.path, allowHalfOpen, socket: handlers });
    return { address, close: () => stopServer(server) };
  }
  const server = Bun.listen<BunConnection>({
    hostname: address.host,
    port: address.port,
    allowHalfOpen,
    socket: handlers,
  });
  return { address: { kind: "tcp", host: address.host, port: server.port }, close: () => stopServer(server) };
};

function stopServer(server: { stop(closeActiveConnections?: boolean): void }): Promise<void> {
  server.stop(false);
  return Promise.resolve();
}
