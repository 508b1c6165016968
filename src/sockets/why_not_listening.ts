/** Why a socket could not listen, in words: Bun's own message leaves it out, and its code is now and then another failure's. */
import { messageOf } from "../errors.ts";
import type { Address } from "./connection.ts";
import { resolveHost } from "./resolve_host.ts";

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "somebody else listens there already",
  EADDRNOTAVAIL: "this machine has no such address",
  EACCES: "this user may not listen there",
  ENOENT: "there is no such folder",
};

/** The end of a sentence. */
export async function whyNotListening(error: unknown, address: Address): Promise<string> {
  const isKnown = address.kind === "unix" || await resolveHost(address.host).then(() => true, () => false);
  if (!isKnown) return `the name ${address.host} has no address here; see /etc/hosts`;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return reasons[code] ?? messageOf(error);
}
