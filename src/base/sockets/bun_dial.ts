/** Connects with Bun's sockets, without TLS. See dial.ts for the contract. */
import { onAbort, throwIfAborted } from "../support/abort.ts";
import { BunConnection, bunHalfOpenSocketHandlers, bunSocketHandlers } from "./bun_connection.ts";
import { type Address, type Dial, formatAddress } from "./connection.ts";
import { selfConnectionError } from "./self_connection.ts";

/**
 * The addresses of connection attempts that this process has abandoned and the kernel continues. Bun cannot cancel an
 * attempt.
 */
const abandoned = new Set<string>();

/**
 * Returns true while the kernel still works on a connection attempt that this process has abandoned at this address.
 * The caller must then use node:net, whose attempts can be canceled. Otherwise attempts at a host that drops packets
 * would pile up, because the kernel gives up each attempt only after two minutes.
 */
export function hasAbandonedDial(address: Address): boolean {
  return abandoned.has(formatAddress(address));
}

// deno-lint-ignore require-await -- async so that an aborted signal is a rejection, as the contract says
export const bunDial: Dial = async (address, handlers, { signal, halfOpen: allowHalfOpen = false } = {}) => {
  throwIfAborted(signal);
  const name = formatAddress(address);
  const connection = new BunConnection(name);
  const common = {
    socket: allowHalfOpen ? bunHalfOpenSocketHandlers : bunSocketHandlers,
    data: connection,
    allowHalfOpen,
  };
  const attempt = address.kind === "unix"
    ? Bun.connect<BunConnection>({ unix: address.path, ...common })
    : Bun.connect<BunConnection>({ hostname: address.host, port: address.port, ...common });
  return new Promise((resolve, reject) => {
    const offAbort = onAbort(signal, (reason) => {
      abandoned.add(name);
      reject(reason);
    });
    const settle = () => {
      offAbort();
      if (signal?.aborted) abandoned.delete(name);
    };
    attempt.then((socket) => {
      settle();
      if (signal?.aborted) return socket.terminate();
      const alone = selfConnectionError(socket, address);
      if (alone !== null) {
        socket.terminate();
        return reject(alone);
      }
      connection.setHandlers(handlers);
      resolve(connection);
    }, (error) => {
      settle();
      reject(error);
    });
  });
};
