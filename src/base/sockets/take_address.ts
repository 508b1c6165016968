/**
 * Prepares an address for listening: removes a stale Unix socket, and explains why listening fails.
 */
import { BatonError, errorMessage } from "../errors.ts";
import { type ClearSocketOptions, clearSocketPath } from "./clear_socket_path.ts";
import { type Address, formatAddress } from "./connection.ts";
import { resolveHost } from "./resolve_host.ts";

/** Reasons by error code, because Bun's messages omit the reason. */
const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process already listens there",
  EADDRNOTAVAIL: "this machine has no such address",
  EACCES: "this user has no permission to listen there",
  ENOENT: "the folder does not exist",
};

/**
 * Calls `bind` when the address is free. Rejects with CANNOT_CREATE; the message consists of "Cannot", `action` and the
 * reason.
 */
export async function takeListenAddress<Bound>(
  address: Address,
  bind: () => Promise<Bound>,
  { action = `listen on ${formatAddress(address)}`, ...clear }: ClearSocketOptions & { readonly action?: string } = {},
): Promise<Bound> {
  try {
    if (address.kind === "unix") await clearSocketPath(address.path, clear);
    return await bind();
  } catch (cause) {
    throw new BatonError("CANNOT_CREATE", `Cannot ${action}: ${await whyNotListening(cause, address)}`, { cause });
  }
}

/** Returns why listening failed, as the end of a sentence. */
async function whyNotListening(error: unknown, address: Address): Promise<string> {
  const isKnown = address.kind === "unix" || await resolveHost(address.host).then(() => true, () => false);
  if (!isKnown) return `the name ${address.host} cannot be resolved to an address; check /etc/hosts`;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return reasons[code] ?? errorMessage(error);
}
