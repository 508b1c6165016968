/** Short descriptions of system errors, for messages about servers that cannot be reached. */
import { BatonError, errorMessage } from "../errors.ts";
import type { TlsOptions } from "./connection.ts";

const systemTexts: Record<string, string> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset",
  ENOENT: "no such socket",
  EACCES: "permission denied",
  ENOTFOUND: "no such host name",
  EAI_AGAIN: "the name server does not respond",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "no route to the network",
  ETIMEDOUT: "no connection",
};

/** Describes why a connection failed, in a few words. `tls` has the settings of the attempt. */
export function describeSocketFailure(error: unknown, { tls }: { readonly tls?: TlsOptions | undefined } = {}): string {
  if (error instanceof BatonError) return errorMessage(error);
  const code = systemErrorCode(error);
  // A server without TLS resets the connection after the client's first bytes.
  if (tls !== undefined && code === "ECONNRESET") return "connection reset; does this port use TLS?";
  return (typeof code === "string" ? systemTexts[code] : undefined) ?? errorMessage(error);
}

export function systemErrorCode(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
