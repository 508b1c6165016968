/**
 * Connects: tcp, unix, TLS over either. Picks the implementation that costs least here; both behave alike, and one
 * suite tests them. Owns no retry and no deadline: the caller's signal is both.
 */
import { bunDial, isCancellationNeeded } from "./bun_dial.ts";
import type { Address, Connection, ConnectionHandlers, TlsOptions } from "./connection.ts";

export interface DialOptions {
  /** TLS over the stream when given, with the server's certificate checked. */
  readonly tls?: TlsOptions;
  /** The peer's end is told by `ended` and closes its half only. Not with TLS. */
  readonly halfOpen?: boolean;
  /** Ends the attempt; the promise then rejects with the signal's reason. No effect on a connection that was made. */
  readonly signal?: AbortSignal;
}

/** How a connection is made; a test may put its own in place of `dial`. */
export type Dial = (address: Address, handlers: ConnectionHandlers, options?: DialOptions) => Promise<Connection>;

/**
 * Connects to `address`; a host name is looked up by the system. Rejects with the system's error (`code` ECONNREFUSED,
 * ENOENT, ENOTFOUND …) or the signal's reason; no handler is called before the promise has resolved.
 * Bun's own sockets are used under Bun: loading node:net costs 5 of the 12 ms that a whole `lock` would take.
 */
export const dial: Dial = async (address, handlers, options = {}) => {
  if ("Bun" in globalThis && options.tls === undefined) {
    if (!isCancellationNeeded(address)) return bunDial(address, handlers, options);
  }
  const { nodeDial } = await import("./node_dial.ts");
  return nodeDial(address, handlers, options);
};
