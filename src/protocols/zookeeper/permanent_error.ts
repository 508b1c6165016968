/**
 * Recognizes permanent faults of servers: the next attempt would fail in the same way. If all servers have such a
 * fault, connecting fails immediately.
 */
import { BatonError, errorMessage } from "../../base/errors.ts";
import type { TlsOptions } from "../../base/sockets/connection.ts";
import { systemErrorCode } from "../../base/sockets/describe_failure.ts";

export interface PermanentFault {
  readonly code: "REFUSED" | "UNREACHABLE";
  readonly text: string;
  /**
   * True if the fault counts only if the second attempt finds it, too. For example, a server creates its socket shortly
   * before it gives all users access to the socket.
   */
  readonly isFromSecondTry: boolean;
}

/** The error for a port that responds, but not with ZooKeeper's protocol. */
export class WrongProtocolError extends BatonError {}

export class PermanentFaultsError extends BatonError {
  readonly isFromSecondTry: boolean;

  constructor(faults: readonly PermanentFault[], message: string) {
    super(faults.some(({ code }) => code === "REFUSED") ? "REFUSED" : "UNREACHABLE", message);
    this.isFromSecondTry = faults.some(({ isFromSecondTry }) => isFromSecondTry);
  }
}

/**
 * Returns the permanent fault that an error shows; null if the next attempt may succeed. An unknown host name is not
 * permanent, because it may become known when its host has started.
 */
export function findPermanentFault(error: unknown, tls: TlsOptions | undefined): PermanentFault | null {
  const certificate = findCertificateFault(error, tls);
  if (certificate !== null) {
    const code = certificate.owner === "client" ? "REFUSED" : "UNREACHABLE";
    return { code, text: certificate.text, isFromSecondTry: false };
  }
  if (error instanceof WrongProtocolError) {
    return { code: "UNREACHABLE", text: errorMessage(error), isFromSecondTry: false };
  }
  const code = systemErrorCode(error);
  if (tls !== undefined && typeof code === "string" && notTls.has(code)) {
    const text = `this port does not use TLS (${errorMessage(error)})`;
    return { code: "UNREACHABLE", text, isFromSecondTry: false };
  }
  if (code === "EACCES" || code === "EPERM") {
    return { code: "REFUSED", text: "permission denied", isFromSecondTry: true };
  }
  return null;
}

/** OpenSSL's error codes for a response that is not a TLS record. */
const notTls: ReadonlySet<string> = new Set([
  "ERR_SSL_WRONG_VERSION_NUMBER",
  "ERR_SSL_PACKET_LENGTH_TOO_LONG",
  "ERR_SSL_HTTP_REQUEST",
]);

export interface CertificateFault {
  /** The side that owns the rejected certificate. */
  readonly owner: "client" | "server";
  /** A short description, as in "zk1:2281: its certificate has expired". */
  readonly text: string;
}

/**
 * Alerts of a server about the client's certificate (RFC 8446, section 6.2). These are the last words of the error
 * code.
 */
const alertNames = [
  "BAD_CERTIFICATE",
  "UNSUPPORTED_CERTIFICATE",
  "CERTIFICATE_REVOKED",
  "CERTIFICATE_EXPIRED",
  "CERTIFICATE_UNKNOWN",
  "CERTIFICATE_REQUIRED",
  "UNKNOWN_CA",
  "ACCESS_DENIED",
];
const alerts = new RegExp(`^ERR_SSL_\\w+_ALERT_(${alertNames.join("|")})$`);

const untrustedCodes: readonly unknown[] = [
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
];

/**
 * Returns the fault of a certificate that an error shows; null for other errors. `tls` has the settings of the attempt.
 */
export function findCertificateFault(error: unknown, tls: TlsOptions | undefined): CertificateFault | null {
  if (tls === undefined) return null;
  const code = systemErrorCode(error);
  const alert = typeof code === "string" ? alerts.exec(code)?.[1] : undefined;
  if (alert !== undefined) {
    const why = alert.toLowerCase().replaceAll("_", " ");
    return tls.cert === undefined
      ? { owner: "client", text: `it requires a client certificate; set tls.cert (alert: ${why})` }
      : { owner: "client", text: `it refuses the certificate in tls.cert (alert: ${why})` };
  }
  const text = describeServerFault(code, error, tls);
  return text === null ? null : { owner: "server", text };
}

function describeServerFault(code: unknown, error: unknown, { ca }: TlsOptions): string | null {
  const message = errorMessage(error);
  if (untrustedCodes.includes(code)) {
    const trusted = ca === undefined ? "the system's authorities (set tls.ca for others)" : "the authorities in tls.ca";
    return `its certificate is signed by an unknown authority; trusted are ${trusted} (${message})`;
  }
  if (code === "CERT_HAS_EXPIRED") return "its certificate has expired";
  if (code === "CERT_NOT_YET_VALID") return "its certificate is not valid yet";
  if (code !== "ERR_TLS_CERT_ALTNAME_INVALID") return null;
  return `its certificate is for another name (${
    message.replace(/^Hostname\/IP does not match certificate's altnames: /, "")
  })`;
}
