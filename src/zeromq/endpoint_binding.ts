/**
 * One bound endpoint. Owns the listener and, for ipc, the socket's file: one that nobody answers at is taken away before, this
 * one's own at the end.
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
  /** With the port that the system chose. */
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
        // Closing a unix listener removes the file of that name, whoever put it there. One that stands for somebody else by
        // now must stay: then this listener, which nobody can reach any more, is left to the end of the process.
        const found = fileOf(address);
        if (found !== null && !isSameFile(found, this.#file)) return;
        rmSync(address.path, { force: true });
      } catch {
        // Not this user's to look at or to remove any more: the file stays, and nobody listens behind it.
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
