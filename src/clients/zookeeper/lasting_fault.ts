/** What makes a server unusable also for the next try: it is refused at once, where all servers have such a fault. */
import { BatonError, messageOf } from "../../errors.ts";
import type { TlsOptions } from "../../sockets/connection.ts";
import { certificateFault } from "./certificate_fault.ts";
import { systemCode } from "./describe_failure.ts";

export interface LastingFault {
  readonly code: "REFUSED" | "UNREACHABLE";
  /** In a few words, for the sentence that names the server. */
  readonly text: string;
}

/** The port answers, and not in ZooKeeper's protocol. */
export class ForeignProtocol extends BatonError {}

/** All servers have such a fault. */
export class LastingFaults extends BatonError {}

/**
 * Null when the next try may end otherwise. A name that cannot be looked up is no such fault: it may be there when the
 * host it names has started.
 */
export function lastingFault(error: unknown, tls: TlsOptions | undefined): LastingFault | null {
  const certificate = certificateFault(error, tls);
  if (certificate !== null) {
    return { code: certificate.whose === "client" ? "REFUSED" : "UNREACHABLE", text: certificate.text };
  }
  if (error instanceof ForeignProtocol) return { code: "UNREACHABLE", text: messageOf(error) };
  const code = systemCode(error);
  if (tls !== undefined && typeof code === "string" && notTls.has(code)) {
    return { code: "UNREACHABLE", text: `TLS is not spoken at this port (${messageOf(error)})` };
  }
  if (code === "EACCES" || code === "EPERM") return { code: "REFUSED", text: "permission denied" };
  return null;
}

/** What OpenSSL says of an answer that is no TLS record. */
const notTls: ReadonlySet<string> = new Set([
  "ERR_SSL_WRONG_VERSION_NUMBER",
  "ERR_SSL_PACKET_LENGTH_TOO_LONG",
  "ERR_SSL_HTTP_REQUEST",
]);
