/** Listens on TCP and Unix sockets, with or without TLS. The caller owns the accepted connections. */
import type { Listen } from "./connection.ts";

/**
 * Listens on `address`. Rejects with the system's error (`code` EADDRINUSE, EACCES …). The umask determines the mode of
 * a Unix socket. If the path of the socket exists, the caller must remove it before. Without TLS, Bun uses its own
 * sockets.
 */
export const listen: Listen = async (address, accept, options = {}) => {
  if ("Bun" in globalThis && options.tls === undefined) {
    const { bunListen } = await import("./bun_listen.ts");
    return bunListen(address, accept, options);
  }
  const { nodeListen } = await import("./node_listen.ts");
  return nodeListen(address, accept, options);
};
