/** Listens: tcp, unix, TLS over either. Owns the listening socket; who accepts a connection owns that connection. */
import type { Listen } from "./connection.ts";

/**
 * Listens on `address`. Rejects with the system's error (`code` EADDRINUSE, EACCES …). A unix socket gets the mode that
 * the umask leaves; a file that is in the way is the caller's to remove. Bun's own sockets are used under Bun.
 */
export const listen: Listen = async (address, accept, options = {}) => {
  if ("Bun" in globalThis && options.tls === undefined) {
    const { bunListen } = await import("./bun_listen.ts");
    return bunListen(address, accept, options);
  }
  const { nodeListen } = await import("./node_listen.ts");
  return nodeListen(address, accept, options);
};
