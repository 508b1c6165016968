/** TLS settings from files, which are read again after they have changed: a renewed certificate needs no restart. */
import { statSync } from "node:fs";
import { BatonError, errorMessage } from "../errors.ts";
import type { TlsFileNames, TlsFileSource, TlsOptions } from "./connection.ts";
import { checkPair, readCertificates, readPrivateKey } from "./pem_file.ts";

/** Runs a function that reads a file, and adds the name of its setting to the error. */
type AtSetting = <T>(name: "ca" | "cert" | "key", act: () => T) => T;

export interface TlsFilesOptions {
  readonly at?: AtSetting;
  /** Told once for each change of the files that makes them unusable. */
  readonly warn?: ((text: string) => void) | undefined;
}

export class TlsFiles implements TlsFileSource {
  readonly names: TlsFileNames;
  readonly #warn: (text: string) => void;
  #current: TlsOptions;
  #version: string;

  /** Reads and checks the files, so that errors are reported immediately, not by a handshake. Throws CONFIG. */
  constructor(names: TlsFileNames, { at = (_, act) => act(), warn = () => {} }: TlsFilesOptions = {}) {
    this.names = names;
    this.#warn = warn;
    this.#version = versionOf(names);
    this.#current = readTlsFiles(names, at);
  }

  /** Returns what the files contain now; while they cannot be used, what they contained before. */
  current(): TlsOptions {
    const version = versionOf(this.names);
    if (version === this.#version) return this.#current;
    // Remember the version from before the reading: a file that changes meanwhile is read again for the next
    // connection.
    this.#version = version;
    try {
      this.#current = readTlsFiles(this.names, (_, act) => act());
    } catch (error) {
      this.#warn(`cannot use the new TLS files, and keeps the ones read before: ${errorMessage(error)}`);
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

/** A text that changes when a file is written, replaced or removed. */
function versionOf({ ca, cert, key }: TlsFileNames): string {
  return [ca, cert, key].map((file) => {
    try {
      if (file === undefined) return "";
      const { dev, ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
      return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
    } catch {
      return ""; // the reading of the file says why
    }
  }).join(", ");
}
