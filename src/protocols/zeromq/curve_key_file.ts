/**
 * Reads and checks key files of CURVE before a connection uses them: a failed handshake would not show what is wrong.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { BatonError, systemCallErrorReason } from "../../base/errors.ts";
import { checkPrivateMode } from "../../base/support/private_file.ts";
import { prepareX25519Secret, type X25519Secret } from "../../base/support/x25519.ts";
import { type CurveCertificate, parseCurveCertificate } from "./curve_certificate.ts";

/** The longest accepted file, in bytes. A key file has about 300 bytes. */
const fileBytesMax = 64 << 10;

/**
 * Reads this side's secret key. Throws CONFIG if the file is missing or invalid, if it has only a public key, or if
 * other users can read it.
 */
export function readCurveSecretKey(file: string): X25519Secret {
  const { secretKey, stat } = readKeyFile(file);
  if (secretKey === null) {
    const other = file.endsWith(".pub") ? file.slice(0, -4) : `${file}_secret`;
    throw configError(`${file} has only a public key, and the secret key is needed here; it is probably in ${other}`);
  }
  checkPrivateMode(file, "The secret key", stat);
  const secret = prepareX25519Secret(secretKey);
  secretKey.fill(0);
  return secret;
}

/**
 * Reads the other side's public key. Throws CONFIG if the file is missing or invalid. Also throws if the file has a
 * secret key, which only its owner should have.
 */
export function readCurvePublicKey(file: string): Uint8Array {
  const { publicKey, secretKey } = readKeyFile(file);
  if (secretKey === null) return publicKey;
  secretKey.fill(0);
  const other = file.endsWith("_secret") ? file.slice(0, -7) : `${file}.pub`;
  throw configError(
    `${file} has a secret key, which is for its owner alone; ` +
      `the public key is needed here; it is probably in ${other}`,
  );
}

function readKeyFile(file: string): CurveCertificate & { readonly stat: Stats } {
  // Uses O_NONBLOCK, because opening a named pipe would otherwise wait for its other end.
  const fd = rethrowAsConfig(file, () => openSync(file, constants.O_RDONLY | constants.O_NONBLOCK));
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw configError(`Cannot read the key file ${file}: it is not a file`);
    if (stat.size > fileBytesMax) throw configError(`${file} is no key file: it has ${stat.size} bytes`);
    return { ...parseCurveCertificate(rethrowAsConfig(file, () => readFileSync(fd, "utf8")), file), stat };
  } finally {
    closeSync(fd);
  }
}

function rethrowAsConfig<T>(file: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
    const why = isMissing ? `it does not exist; baton pubsub keygen ${file} makes one` : systemCallErrorReason(error);
    throw configError(`Cannot read the key file ${file}: ${why}`, error);
  }
}

function configError(message: string, cause?: unknown): BatonError {
  return new BatonError("CONFIG", message, cause === undefined ? undefined : { cause });
}
