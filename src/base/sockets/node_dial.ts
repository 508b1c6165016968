/** Connects with node:net and node:tls. See dial.ts for the contract. */
import net from "node:net";
import { onAbort, throwIfAborted } from "../support/abort.ts";
import { type Address, type Dial, formatAddress, type TlsOptions } from "./connection.ts";
import { NodeConnection } from "./node_connection.ts";
import { isIpLiteral } from "./resolve_host.ts";
import { selfConnectionError } from "./self_connection.ts";

export const nodeDial: Dial = async (address, handlers, { tls, signal, halfOpen: allowHalfOpen = false } = {}) => {
  throwIfAborted(signal);
  const target = address.kind === "unix" ? { path: address.path } : { host: address.host, port: address.port };
  // node:tls is imported only when needed, because loading it takes time.
  const socket = tls === undefined
    ? net.connect({ ...target, allowHalfOpen })
    : (await import("node:tls")).connect({ ...target, ...await tlsSettings(tls, address) });
  return await new Promise((resolve, reject) => {
    const offAbort = onAbort(signal, (reason) => {
      socket.destroy();
      reject(reason);
    });
    const failed = (error: Error) => {
      offAbort();
      reject(error);
    };
    // Stays registered until the connection has its own handler, because an unhandled error would end the process.
    socket.once("error", failed);
    socket.once(tls === undefined ? "connect" : "secureConnect", () => {
      offAbort();
      if (signal?.aborted) return;
      const alone = selfConnectionError(socket, address);
      if (alone !== null) {
        socket.destroy();
        return reject(alone);
      }
      const connection = new NodeConnection(socket, formatAddress(address), () => handlers);
      socket.off("error", failed);
      resolve(connection);
    });
  });
};

async function tlsSettings({ serverName, ...material }: TlsOptions, address: Address) {
  const { clientTlsOptions } = await import("./client_tls.ts");
  // An IP address cannot be a server name (RFC 6066, section 3). If there is no server name, TLS checks the certificate
  // against the address.
  const host = address.kind === "tcp" ? address.host : "localhost";
  const name = serverName ?? (isIpLiteral(host) ? undefined : host);
  return { ...clientTlsOptions(material), ...(name === undefined ? {} : { servername: name }) };
}
