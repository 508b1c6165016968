/**
 * One bound endpoint. Owns the listener and, for ipc, the socket's file: an unused old file is removed before, its own
 * file at the end.
 */
import { type BigIntStats, rmSync } from "node:fs";
import { BatonError } from "../errors.ts";
import { clearSocketPath, isSameFile, socketFile } from "../sockets/clear_socket_path.ts";
import type { Accept, Address, Listener } from "../sockets/connection.ts";
import { whyNotListening } from "../sockets/why_not_listening.ts";
import { throwIfAborted } from "../support/abort.ts";
import { formatEndpoint } from "./endpoint.ts";
import type { ResolvedOptions } from "./socket_options.ts";

export class Binding {
  /** The endpoint with the port that the system chose. */
  readonly endpoint: string;
  readonly #listener: Listener;
  readonly #file: BigIntStats | null;

  constructor(listener: Listener) {
    this.#listener = listener;
    this.endpoint = formatEndpoint(listener.address);
    this.#file = fileOf(listener.address);
  }

  async close(): Promise<void> {
    const { address } = this.#listener;
    if (address.kind === "unix") {
      try {
        // Closing a Unix listener removes the file of that name, also one of another process. Such a file must stay;
        // then this listener, which is unreachable, stays open until the process ends.
        const found = fileOf(address);
        if (found !== null && !isSameFile(found, this.#file)) return;
        rmSync(address.path, { force: true });
      } catch {
        // This user can no longer inspect or remove the file: it stays, and no process listens behind it.
      }
    }
    await this.#listener.close();
  }
}

/** Listens. Throws CANNOT_CREATE, or the signal's reason. */
export async function bind(
  address: Address,
  accept: Accept,
  { options, signal }: { readonly options: ResolvedOptions; readonly signal: AbortSignal | undefined },
): Promise<Binding> {
  throwIfAborted(signal);
  try {
    if (address.kind === "unix") await clearSocketPath(address.path, { dial: options.dial, clock: options.clock });
    throwIfAborted(signal);
    return new Binding(await options.listen(address, accept));
  } catch (error) {
    throwIfAborted(signal);
    const message = `Cannot listen on ${formatEndpoint(address)}: ${await whyNotListening(error, address)}`;
    throw new BatonError("CANNOT_CREATE", message, { cause: error });
  }
}

/** Null for TCP. */
function fileOf(address: Address): BigIntStats | null {
  return address.kind === "unix" ? socketFile(address.path) : null;
}
