/** Listens on TCP and Unix sockets, with or without TLS. Owns the listening socket; the acceptor owns connections. */
import type { Listen } from "./connection.ts";

/**
 * Listens on `address`. Rejects with the system's error (`code` EADDRINUSE, EACCES …). The umask determines the mode of
 * a unix socket; the caller removes an existing file. Under Bun it uses Bun's sockets.
 */
export const listen: Listen = async (address, accept, options = {}) => {
  if ("Bun" in globalThis && options.tls === undefined) {
    const { bunListen } = await import("./bun_listen.ts");
    return bunListen(address, accept, options);
  }
  const { nodeListen } = await import("./node_listen.ts");
  return nodeListen(address, accept, options);
};
