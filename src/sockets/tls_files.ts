/** Reads the files of the `--tls-…` settings. */
import { BatonError } from "../../errors.ts";
import { checkPair, readCertificates, readPrivateKey } from "../../sockets/pem_file.ts";

interface TlsFiles {
  readonly tlsCa: string | undefined;
  readonly tlsCert: string | undefined;
  readonly tlsKey: string | undefined;
  readonly tlsPassphrase?: string | undefined;
}

/**
 * Reads and checks the files, so that errors are reported immediately, not by a handshake. `at` runs a function and adds the
 * name of the setting to its error.
 */
export function tlsFilesOf(
  { tlsCa, tlsCert, tlsKey, tlsPassphrase }: TlsFiles,
  at: <T>(name: "tlsCa" | "tlsCert" | "tlsKey", act: () => T) => T,
): { ca?: string; cert?: string; key?: string } {
  const authorities = tlsCa === undefined ? {} : { ca: at("tlsCa", () => readCertificates(tlsCa)) };
  if (tlsCert === undefined && tlsKey === undefined) return authorities;
  if (tlsCert === undefined || tlsKey === undefined) {
    return at(tlsKey === undefined ? "tlsCert" : "tlsKey", () => {
      throw new BatonError("CONFIG", "a certificate and its private key must be given together");
    });
  }
  const cert = at("tlsCert", () => readCertificates(tlsCert));
  const key = at("tlsKey", () => readPrivateKey(tlsKey, tlsPassphrase));
  at("tlsKey", () => checkPair({ file: tlsCert, pem: cert }, { file: tlsKey, pem: key }, tlsPassphrase));
  return { ...authorities, cert, key };
}
