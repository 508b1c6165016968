/** What makes a server unusable also for the next try: it is refused at once, where all servers have such a fault. */
import { BatonError, messageOf } from "../errors.ts";
import type { TlsOptions } from "../sockets/connection.ts";
import { certificateFault } from "./certificate_fault.ts";
import { systemCode } from "../sockets/describe_failure.ts";

export interface LastingFault {
  readonly code: "REFUSED" | "UNREACHABLE";
  /** In a few words, for the sentence that names the server. */
  readonly text: string;
  /** It lasts if the second try finds it too: a server makes its socket a moment before it opens it to all users. */
  readonly isFromSecondTry: boolean;
}

/** The port answers, and not in ZooKeeper's protocol. */
export class ForeignProtocol extends BatonError {}

/** All servers have such a fault. */
export class LastingFaults extends BatonError {
  readonly isFromSecondTry: boolean;

  constructor(faults: readonly LastingFault[], message: string) {
    super(faults.some(({ code }) => code === "REFUSED") ? "REFUSED" : "UNREACHABLE", message);
    this.isFromSecondTry = faults.some(({ isFromSecondTry }) => isFromSecondTry);
  }
}

/**
 * Null when the next try may end otherwise. A name that cannot be looked up is no such fault: it may be there when the
 * host it names has started.
 */
export function lastingFault(error: unknown, tls: TlsOptions | undefined): LastingFault | null {
  const certificate = certificateFault(error, tls);
  if (certificate !== null) {
    const code = certificate.whose === "client" ? "REFUSED" : "UNREACHABLE";
    return { code, text: certificate.text, isFromSecondTry: false };
  }
  if (error instanceof ForeignProtocol) {
    return { code: "UNREACHABLE", text: messageOf(error), isFromSecondTry: false };
  }
  const code = systemCode(error);
  if (tls !== undefined && typeof code === "string" && notTls.has(code)) {
    const text = `TLS is not spoken at this port (${messageOf(error)})`;
    return { code: "UNREACHABLE", text, isFromSecondTry: false };
  }
  if (code === "EACCES" || code === "EPERM") {
    return { code: "REFUSED", text: "permission denied", isFromSecondTry: true };
  }
  return null;
}

/** What OpenSSL says of an answer that is no TLS record. */
const notTls: ReadonlySet<string> = new Set([
  "ERR_SSL_WRONG_VERSION_NUMBER",
  "ERR_SSL_PACKET_LENGTH_TOO_LONG",
  "ERR_SSL_HTTP_REQUEST",
]);
