/** The reason why a socket cannot listen. Bun's messages omit it, and its error code is sometimes wrong. */
import { messageOf } from "../errors.ts";
import type { Address } from "./connection.ts";
import { resolveHost } from "./resolve_host.ts";

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process already listens there",
  EADDRNOTAVAIL: "this machine has no such address",
  EACCES: "this user has no permission to listen there",
  ENOENT: "the folder does not exist",
};

/** The end of a sentence. */
export async function whyNotListening(error: unknown, address: Address): Promise<string> {
  const isKnown = address.kind === "unix" || await resolveHost(address.host).then(() => true, () => false);
  if (!isKnown) return `the name ${address.host} cannot be resolved to an address; check /etc/hosts`;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return reasons[code] ?? messageOf(error);
}
