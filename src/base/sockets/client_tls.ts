/**
 * TLS settings of outgoing connections. The environment has no part in them: the authorities are those of a file, or
 * those of the system and of the runtime. Loaded only where TLS is used.
 */
import { readFileSync } from "node:fs";
import { createSecureContext, rootCertificates, type SecureContext } from "node:tls";
import type { TlsOptions } from "./connection.ts";

/**
 * Where systems have their authorities: Debian and Alpine, Red Hat, SUSE, macOS and the BSDs. The first one that exists
 * is used.
 */
const systemFiles = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** The authorities that are trusted, and the certificate that is shown. */
type Material = Pick<TlsOptions, "ca" | "cert" | "key" | "passphrase">;

/** The last settings that were used, and their context: making one takes milliseconds. */
let last: { readonly of: string; readonly context: SecureContext } | null = null;

/** Options for a connection that checks the certificate of the server. Throws for certificates that cannot be used. */
export function clientTlsOptions(material: Material): { secureContext: SecureContext; rejectUnauthorized: true } {
  const of = JSON.stringify(material);
  if (last?.of !== of) {
    last = { of, context: createSecureContext({ ...material, ca: material.ca ?? defaultTlsAuthorities() }) };
  }
  return { secureContext: last.context, rejectUnauthorized: true };
}

let authorities: string[] | null = null;

/** The authorities that are trusted where no file names others. */
export function defaultTlsAuthorities(): string[] {
  authorities ??= [...rootCertificates, ...systemAuthorities()];
  return authorities;
}

function systemAuthorities(): string[] {
  for (const file of systemFiles) {
    try {
      return readFileSync(file, "latin1").match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
    } catch {
      // This system has them elsewhere.
    }
  }
  return [];
}
