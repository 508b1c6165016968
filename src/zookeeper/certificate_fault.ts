/** A certificate that one of the two sides does not accept: no other try ends otherwise. By the codes of OpenSSL and Node.js. */
import { messageOf } from "../errors.ts";
import type { TlsOptions } from "../sockets/connection.ts";
import { systemCode } from "../sockets/describe_failure.ts";

export interface CertificateFault {
  /** Whose certificate is not accepted. */
  readonly whose: "client" | "server";
  /** In a few words, as in "zk1:2281: its certificate has expired". */
  readonly text: string;
}

/** What a server says of the client's certificate (RFC 8446, section 6.2), as the last words of the code. */
const alerts =
  /^ERR_SSL_\w+_ALERT_(BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_(?:REVOKED|EXPIRED|UNKNOWN|REQUIRED)|UNKNOWN_CA|ACCESS_DENIED)$/;

const strangers: readonly unknown[] = [
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
];

/** Null when the failure is about something else. `tls` is what the connection was tried with. */
export function certificateFault(error: unknown, tls: TlsOptions | undefined): CertificateFault | null {
  if (tls === undefined) return null;
  const code = systemCode(error);
  const alert = typeof code === "string" ? alerts.exec(code)?.[1] : undefined;
  if (alert !== undefined) {
    const why = alert.toLowerCase().replaceAll("_", " ");
    return tls.cert === undefined
      ? { whose: "client", text: `it wants a certificate of its clients, and tls.cert names none (alert: ${why})` }
      : { whose: "client", text: `it refuses the certificate in tls.cert (alert: ${why})` };
  }
  const text = serverText(code, error, tls);
  return text === null ? null : { whose: "server", text };
}

function serverText(code: unknown, error: unknown, { ca }: TlsOptions): string | null {
  const message = messageOf(error);
  if (strangers.includes(code)) {
    const trusted = ca === undefined ? "the system's; tls.ca can name another" : "those in tls.ca";
    return `its certificate is not from an authority that is trusted here, which are ${trusted} (${message})`;
  }
  if (code === "CERT_HAS_EXPIRED") return "its certificate has expired";
  if (code === "CERT_NOT_YET_VALID") return "its certificate is not valid yet";
  if (code !== "ERR_TLS_CERT_ALTNAME_INVALID") return null;
  return `its certificate is for another name (${
    message.replace(/^Hostname\/IP does not match certificate's altnames: /, "")
  })`;
}
