/** Listens by node:net and node:tls. See listen.ts for the contract. */
import net, { type Server, type Socket } from "node:net";
import { type Address, formatAddress } from "./connection.ts";
import type { Listen } from "./listen.ts";
import { NodeConnection } from "./node_connection.ts";

export const nodeListen: Listen = async (address, accept, { tls } = {}) => {
  const opened = (socket: Socket): void => {
    const peer = address.kind === "unix"
      ? formatAddress(address)
      : formatAddress({ kind: "tcp", host: socket.remoteAddress ?? "", port: socket.remotePort ?? 0 });
    new NodeConnection(socket, peer, accept);
  };
  const server: Server = tls === undefined ? net.createServer(opened) : (await import("node:tls")).createServer({
    ca: tls.ca,
    cert: tls.cert,
    key: tls.key,
    passphrase: tls.passphrase,
    requestCert: tls.ca !== undefined,
    rejectUnauthorized: tls.ca !== undefined,
  }, opened);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.once("listening", () => {
      server.off("error", reject);
      // Running out of descriptors fails one accept, not the server: the next one may work.
      server.on("error", () => {});
      resolve();
    });
    if (address.kind === "unix") server.listen(address.path);
    else server.listen(address.port, address.host);
  });
  return {
    address: withPort(address, server),
    close: () => {
      server.close();
      return Promise.resolve();
    },
  };
};

function withPort(address: Address, server: Server): Address {
  const bound = server.address();
  if (address.kind === "unix" || bound === null || typeof bound === "string") return address;
  return { kind: "tcp", host: address.host, port: bound.port };
}
