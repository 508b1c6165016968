/** Listens with node:net, and with node:tls. See listen.ts for the contract. */
import net, { type Server, type Socket } from "node:net";
import { type Address, formatAddress, type Listen } from "./connection.ts";
import { NodeConnection } from "./node_connection.ts";

/**
 * The default time limit of a TLS handshake, in milliseconds. The limit is needed here because no other code knows the
 * connection yet.
 */
const handshakeMsMaxDefault = 10_000;
const handshakesMaxDefault = 1_000;

export const nodeListen: Listen = async (address, accept, options = {}) => {
  const { tls, handshakeMsMax = handshakeMsMaxDefault, halfOpen: allowHalfOpen = false } = options;
  const { handshakesMax = handshakesMaxDefault } = options;
  const opened = (socket: Socket): void => {
    const peer = address.kind === "unix"
      ? formatAddress(address)
      : formatAddress({ kind: "tcp", host: socket.remoteAddress ?? "", port: socket.remotePort ?? 0 });
    new NodeConnection(socket, peer, accept);
  };
  const server: Server = tls === undefined
    ? net.createServer({ allowHalfOpen }, opened)
    : (await import("./tls_server.ts")).createTlsServer(tls, {
      handshakeMsMax,
      handshakesMax: address.kind === "tcp" ? handshakesMax : null,
    }, opened);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.once("listening", () => {
      server.off("error", reject);
      // Ignores an error such as a lack of file descriptors: it concerns one connection, and the next connection may
      // succeed.
      server.on("error", () => {});
      resolve();
    });
    if (address.kind === "unix") server.listen(address.path);
    else server.listen(address.port, address.host);
  });
  return {
    address: boundAddress(address, server),
    close: () => {
      server.close();
      return Promise.resolve();
    },
  };
};

function boundAddress(address: Address, server: Server): Address {
  const bound = server.address();
  if (address.kind === "unix" || bound === null || typeof bound === "string") return address;
  return { kind: "tcp", host: address.host, port: bound.port };
}
