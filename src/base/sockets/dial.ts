/**
 * Connects over TCP, unix sockets, and TLS. There are two implementations that behave alike; `dial` chooses the faster
 * one. `dial` does not retry and has no time limit; the caller's signal ends an attempt.
 */
import { bunDial, hasAbandonedDial } from "./bun_dial.ts";
import type { Dial } from "./connection.ts";

/**
 * Connects to `address`; the system resolves host names. Rejects with the system's error (`code` ECONNREFUSED, ENOENT,
 * ENOTFOUND …) or the signal's reason. Calls no handler before the promise has resolved. Under Bun, `dial` uses Bun's
 * sockets, because loading node:net takes 5 of the 12 ms of a whole `baton lock`.
 */
export const dial: Dial = async (address, handlers, options = {}) => {
  if ("Bun" in globalThis && options.tls === undefined) {
    if (!hasAbandonedDial(address)) return bunDial(address, handlers, options);
  }
  const { nodeDial } = await import("./node_dial.ts");
  return nodeDial(address, handlers, options);
};
