/** Why a socket could not listen, in words: Bun's own message leaves it out. */
import { messageOf } from "../errors.ts";

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "somebody else listens there already",
  EADDRNOTAVAIL: "this machine has no such address",
  EACCES: "this user may not listen there",
  ENOENT: "there is no such folder",
};

/** The end of a sentence. */
export function whyNotListening(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return reasons[code] ?? messageOf(error);
}
