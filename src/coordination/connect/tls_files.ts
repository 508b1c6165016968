/** The `--tls-…` settings that name files, as the sockets want them: by what is in them. */
import { BatonError } from "../../errors.ts";
import { checkPair, readCertificates, readPrivateKey } from "../../sockets/pem_file.ts";

interface TlsFiles {
  readonly tlsCa: string | undefined;
  readonly tlsCert: string | undefined;
  readonly tlsKey: string | undefined;
  readonly tlsPassphrase?: string | undefined;
}

/**
 * Reads them, and looks into them: what is wrong is said at once, and not by a handshake. `at` does what it is given and blames
 * the setting of that name for what it throws.
 */
export function tlsFilesOf(
  { tlsCa, tlsCert, tlsKey, tlsPassphrase }: TlsFiles,
  at: <T>(name: "tlsCa" | "tlsCert" | "tlsKey", act: () => T) => T,
): { ca?: string; cert?: string; key?: string } {
  const authorities = tlsCa === undefined ? {} : { ca: at("tlsCa", () => readCertificates(tlsCa)) };
  if (tlsCert === undefined && tlsKey === undefined) return authorities;
  if (tlsCert === undefined || tlsKey === undefined) {
    return at(tlsKey === undefined ? "tlsCert" : "tlsKey", () => {
      throw new BatonError("CONFIG", "a certificate and its private key go together, and only one of them is named");
    });
  }
  const cert = at("tlsCert", () => readCertificates(tlsCert));
  const key = at("tlsKey", () => readPrivateKey(tlsKey, tlsPassphrase));
  at("tlsKey", () => checkPair({ file: tlsCert, pem: cert }, { file: tlsKey, pem: key }, tlsPassphrase));
  return { ...authorities, cert, key };
}
