/**
 * TLS settings from PEM files with certificates and keys. Files are checked when they are read, so that mistakes are
 * reported before a handshake fails. Changed files are read again, so that a renewed certificate needs no restart.
 */
import { statSync } from "node:fs";
import { BatonError, errorMessage } from "../errors.ts";
import type { TlsFileNames, TlsFileSource, TlsOptions } from "./connection.ts";
import type { KeyObject, X509Certificate } from "node:crypto";
import process from "node:process";
import { checkPrivateFile, readConfiguredFile } from "../support/private_file.ts";

/** Runs a function that reads a file. If the function throws, may add the name of the file's setting to the error. */
type AtSetting = <T>(name: "ca" | "cert" | "key", act: () => T) => T;

export interface TlsFilesOptions {
  readonly at?: AtSetting;
  /** Called once for each change of the files that makes them unusable. */
  readonly warn?: ((text: string) => void) | undefined;
}

export class TlsFiles implements TlsFileSource {
  readonly names: TlsFileNames;
  readonly #warn: (text: string) => void;
  #current: TlsOptions;
  #version: string;

  /** Reads and checks the files. Throws CONFIG. */
  constructor(names: TlsFileNames, { at = (_, act) => act(), warn = () => {} }: TlsFilesOptions = {}) {
    this.names = names;
    this.#warn = warn;
    this.#version = versionOf(names);
    this.#current = readTlsFiles(names, at);
  }

  /** Returns the current content of the files; while they cannot be used, the last usable content. */
  current(): TlsOptions {
    const version = versionOf(this.names);
    if (version === this.#version) return this.#current;
    // Keeps the version from before reading. If a file changes during the reading, it is then read again next time.
    this.#version = version;
    try {
      this.#current = readTlsFiles(this.names, (_, act) => act());
    } catch (error) {
      this.#warn(`cannot use the new TLS files, and keeps using the previous ones: ${errorMessage(error)}`);
    }
    return this.#current;
  }
}

function readTlsFiles({ ca, cert, key, passphrase, serverName }: TlsFileNames, at: AtSetting): TlsOptions {
  const fixed = {
    ...(ca === undefined ? {} : { ca: at("ca", () => readCertificates(ca)) }),
    ...(passphrase === undefined ? {} : { passphrase }),
    ...(serverName === undefined ? {} : { serverName }),
  };
  if (cert === undefined && key === undefined) return fixed;
  if (cert === undefined || key === undefined) {
    return at(key === undefined ? "cert" : "key", () => {
      throw new BatonError("CONFIG", "a certificate and its private key must be given together");
    });
  }
  const certPem = at("cert", () => readCertificates(cert));
  const keyPem = at("key", () => readPrivateKey(key, passphrase));
  at("key", () => checkPair({ file: cert, pem: certPem }, { file: key, pem: keyPem }, passphrase));
  return { ...fixed, cert: certPem, key: keyPem };
}

/** Returns a text that changes when a file is written, replaced or removed. */
function versionOf({ ca, cert, key }: TlsFileNames): string {
  return [ca, cert, key].map((file) => {
    try {
      if (file === undefined) return "";
      const { dev, ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
      return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
    } catch {
      return ""; // reading the file reports the reason
    }
  }).join(", ");
}

const certificateBlock =
  /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]*-----END (?:X509 |TRUSTED )?CERTIFICATE-----/;
const privateKeyBlock = /-----BEGIN ((?:[A-Z]+ )?PRIVATE KEY)-----[^]*?-----END \1-----/;

/**
 * Returns the content of a PEM file with certificates. Throws CONFIG if baton cannot read it or its first certificate
 * is invalid.
 */
function readCertificates(file: string): string {
  const pem = readPem(file);
  firstCertificate(pem, file);
  return pem;
}

/** Returns when the first certificate of a PEM file ends, in Unix milliseconds. Throws CONFIG. */
export function readCertificateEndMs(file: string): number {
  return Date.parse(firstCertificate(readPem(file), file).validTo);
}

/**
 * Returns the content of a PEM file with a private key. Throws CONFIG if baton cannot read it, other users can read it,
 * or `passphrase` does not open it.
 */
function readPrivateKey(file: string, passphrase: string | undefined): string {
  const pem = readPem(file);
  privateKey(pem, file, passphrase);
  checkPrivateFile(file, "The private key");
  return pem;
}

/** Throws CONFIG if the private key does not belong to the certificate. */
function checkPair(
  cert: { file: string; pem: string },
  key: { file: string; pem: string },
  passphrase?: string,
): void {
  if (firstCertificate(cert.pem, cert.file).checkPrivateKey(privateKey(key.pem, key.file, passphrase))) return;
  throw configError(`The private key in ${key.file} does not belong to the certificate in ${cert.file}`);
}

const readPem = (file: string) => new TextDecoder().decode(readConfiguredFile(file));

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

/** Loads node:crypto only when it is needed, because loading it is slow. */
function loadCrypto() {
  return process.getBuiltinModule("node:crypto");
}

function configError(message: string, cause?: unknown): BatonError {
  return new BatonError("CONFIG", message, cause === undefined ? undefined : { cause });
}
