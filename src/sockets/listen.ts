/** Listens: tcp, unix, TLS over either. Owns the listening socket; who accepts a connection owns that connection. */
import type { Address, Connection, ConnectionHandlers, TlsOptions } from "./connection.ts";

export interface ListenOptions {
  /** TLS with this certificate and key; when `ca` is given, clients must show a certificate signed by it. */
  readonly tls?: TlsOptions;
  /** A peer's end is told by `ended` and closes its half only. Not with TLS. */
  readonly halfOpen?: boolean;
  /** How long the TLS handshake of a new connection may take, in milliseconds; 10,000 when left out. */
  readonly handshakeMsMax?: number;
  /** TLS handshakes at the same time over TCP; for one more the oldest is closed. 1,000 when left out. */
  readonly handshakesMax?: number;
}

/** Called for every new connection; what it returns hears what happens on it. */
export type Accept = (connection: Connection) => ConnectionHandlers;

export interface Listener {
  /** Where it really listens: port 0 is replaced by the port the system chose. */
  readonly address: Address;
  /** No new connections; those already accepted go on. */
  close(): Promise<void>;
}

export type Listen = (address: Address, accept: Accept, options?: ListenOptions) => Promise<Listener>;

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
