/**
 * Connects: tcp, unix, TLS over either. Picks the implementation that costs least here; both behave alike, and one
 * suite tests them. Owns no retry and no deadline: the caller's signal is both.
 */
import { bunDial, isCancellationNeeded } from "./bun_dial.ts";
import type { Dial } from "./connection.ts";

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
