/** Reads and checks PEM files with certificates and keys, so that mistakes are reported before a handshake fails. */
import type { KeyObject, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import process from "node:process";
import { BatonError, errorMessage, errorReason } from "../errors.ts";
import { checkPrivateFile } from "../support/private_file.ts";

const certificateBlock =
  /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]*-----END (?:X509 |TRUSTED )?CERTIFICATE-----/;
const privateKeyBlock = /-----BEGIN ((?:[A-Z]+ )?PRIVATE KEY)-----[^]*?-----END \1-----/;

/**
 * The content of a PEM file with certificates. Throws CONFIG if it cannot be read or its first certificate is not
 * valid.
 */
export function readCertificates(file: string): string {
  const pem = readPem(file);
  firstCertificate(pem, file);
  return pem;
}

/**
 * The content of a PEM file with a private key. Throws CONFIG if it cannot be read, other users can read it, or
 * `passphrase` does not open it.
 */
export function readPrivateKey(file: string, passphrase: string | undefined): string {
  const pem = readPem(file);
  privateKey(pem, file, passphrase);
  checkPrivateFile(file, "The private key");
  return pem;
}

/** Throws CONFIG when the private key does not belong to the certificate. */
export function checkPair(
  cert: { file: string; pem: string },
  key: { file: string; pem: string },
  passphrase?: string,
): void {
  if (firstCertificate(cert.pem, cert.file).checkPrivateKey(privateKey(key.pem, key.file, passphrase))) return;
  throw configError(`The private key in ${key.file} does not belong to the certificate in ${cert.file}`);
}

function readPem(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw configError(`Cannot read ${file}: ${errorReason(error)}`, error);
  }
}

function firstCertificate(pem: string, file: string): X509Certificate {
  const [block] = certificateBlock.exec(pem) ?? [];
  if (block === undefined) {
    throw configError(`${file} contains no certificate: a PEM file needs a line -----BEGIN CERTIFICATE-----`);
  }
  try {
    return new (loadCrypto().X509Certificate)(block);
  } catch (error) {
    throw configError(`The certificate in ${file} is not valid: ${errorMessage(error)}`, error);
  }
}

function privateKey(pem: string, file: string, passphrase: string | undefined): KeyObject {
  const [block] = privateKeyBlock.exec(pem) ?? [];
  if (block === undefined) {
    throw configError(`${file} contains no private key: a PEM file needs a line that ends with PRIVATE KEY-----`);
  }
  const isEncrypted = block.includes("ENCRYPTED");
  if (isEncrypted && passphrase === undefined) {
    throw configError(`The private key in ${file} is encrypted; set its passphrase`);
  }
  try {
    return loadCrypto().createPrivateKey(passphrase === undefined ? block : { key: block, passphrase });
  } catch (error) {
    const what = isEncrypted ? "cannot be opened with the passphrase" : "is not valid";
    throw configError(`The private key in ${file} ${what}: ${errorMessage(error)}`, error);
  }
}

/** Loaded only for such files: it is slow to load. */
function loadCrypto() {
  return process.getBuiltinModule("node:crypto");
}

function configError(message: string, cause?: unknown): BatonError {
  return new BatonError("CONFIG", message, cause === undefined ? undefined : { cause });
}
