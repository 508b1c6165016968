/**
 * TLS settings of outgoing connections. The trusted authorities come from a file, or from the system and the runtime;
 * no environment variable changes them. Loaded only if TLS is used.
 */
import { readFileSync } from "node:fs";
import { createSecureContext, rootCertificates, type SecureContext } from "node:tls";
import type { TlsOptions } from "./connection.ts";

/**
 * Files with the system's authorities: Debian and Alpine, Red Hat, SUSE, macOS and the BSDs. The first existing file is
 * used.
 */
const systemFiles = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** The authorities to trust, and this client's certificate. */
type Material = Pick<TlsOptions, "ca" | "cert" | "key" | "passphrase">;

/** The last settings and the context made from them. The context is kept because making it takes milliseconds. */
let last: { readonly of: string; readonly context: SecureContext } | null = null;

/**
 * Returns the TLS options of a connection that checks the server's certificate. Throws if the client's certificate or
 * an authority cannot be used.
 */
export function clientTlsOptions(material: Material): { secureContext: SecureContext; rejectUnauthorized: true } {
  const of = JSON.stringify(material);
  if (last?.of !== of) {
    last = { of, context: createSecureContext({ ...material, ca: material.ca ?? defaultTlsAuthorities() }) };
  }
  return { secureContext: last.context, rejectUnauthorized: true };
}

let authorities: string[] | null = null;

/** Returns the authorities that baton trusts by default, if no file names others. */
export function defaultTlsAuthorities(): string[] {
  authorities ??= [...rootCertificates, ...systemAuthorities()];
  return authorities;
}

function systemAuthorities(): string[] {
  for (const file of systemFiles) {
    try {
      return readFileSync(file, "latin1").match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
    } catch {
      // This system has its authorities in another file.
    }
  }
  return [];
}
