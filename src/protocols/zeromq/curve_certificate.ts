/**
 * Formats and parses the text of a key file, the certificate of CZMQ and PyZMQ in ZPL (RFC 4). A key file contains a
 * CURVE key pair, or only the public key. Pure.
 *
 *     curve
 *         public-key = "40 characters of Z85"
 *         secret-key = "40 characters of Z85"
 */
import { BatonError } from "../../base/errors.ts";
import { isCanonicalPublicKey, prepareX25519Secret, x25519KeyBytes } from "../../base/support/x25519.ts";
import { decodeZ85, encodeZ85 } from "../../base/wire/z85.ts";

export const curveKeyCharacters = 40;

export interface CurveCertificate {
  readonly publicKey: Uint8Array;
  /** The secret key; null in the file for other users. */
  readonly secretKey: Uint8Array | null;
}

export const formatCurveKey = encodeZ85;

/** Formats the owner's certificate, with the secret key. CZMQ requires the four spaces of indentation. */
export function formatSecretCurveCertificate(secretKey: Uint8Array): string {
  return [
    "# A CURVE key pair for ZeroMQ. Keep this file secret: any program that reads it can impersonate its owner.",
    "metadata",
    "curve",
    `    public-key = "${formatCurveKey(prepareX25519Secret(secretKey).publicKey)}"`,
    `    secret-key = "${formatCurveKey(secretKey)}"`,
    "",
  ].join("\n");
}

/** Formats the certificate for other users. */
export function formatPublicCurveCertificate(publicKey: Uint8Array): string {
  return [
    "# A CURVE public key for ZeroMQ, to be given to those who talk to its owner.",
    "metadata",
    "curve",
    `    public-key = "${formatCurveKey(publicKey)}"`,
    "",
  ].join("\n");
}

/** Parses the keys. Throws CONFIG with the file and the line, but without any key in the message. */
export function parseCurveCertificate(text: string, file: string): CurveCertificate {
  const found = new Map<string, { readonly value: string; readonly line: number }>();
  let section = "";
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const [, indent = "", name = "", value] = /^([ \t]*)([\w$@.&+/-]+)[ \t]*(?:=(.*))?$/.exec(line) ?? [];
    if (name === "") continue;
    if (indent === "") section = name;
    else if (section === "curve" && value !== undefined) found.set(name, { value: unquote(value), line: index + 1 });
  }
  const publicKey = findKey(found, "public-key", file);
  if (publicKey === null) {
    throw configError(
      `There is no key in ${file}: a key file has a section \`curve\` with a line \`public-key = "…"\``,
    );
  }
  const secretKey = findKey(found, "secret-key", file);
  checkPublicKey(publicKey, `The public-key in ${file}`);
  if (secretKey !== null && prepareX25519Secret(secretKey).publicKey.some((byte, at) => byte !== publicKey[at])) {
    throw configError(`The public-key in ${file} does not belong to the secret-key beside it`);
  }
  return { publicKey, secretKey };
}

function checkPublicKey(key: Uint8Array, name: string): void {
  const anySecret = prepareX25519Secret(new Uint8Array(x25519KeyBytes));
  if (isCanonicalPublicKey(key) && anySecret.deriveSharedSecret(key) !== null) return;
  throw configError(`${name} cannot be a public key: no secret key belongs to it`);
}

function findKey(
  found: ReadonlyMap<string, { readonly value: string; readonly line: number }>,
  name: string,
  file: string,
): Uint8Array | null {
  const entry = found.get(name);
  return entry === undefined ? null : decodeKey(entry.value, `The ${name} in ${file}, line ${entry.line},`);
}

function decodeKey(text: string, name: string): Uint8Array {
  if (text.length !== curveKeyCharacters) {
    throw configError(`${name} has ${text.length} characters, and a key has ${curveKeyCharacters}`);
  }
  const decoded = decodeZ85(text);
  if (decoded instanceof Uint8Array) return decoded;
  throw configError(`${name} is not a key in Z85: ${decoded.wrong}`);
}

/** Removes quotes and comments. Z85 also uses the character "#", so a "#" starts a comment only outside quotes. */
function unquote(value: string): string {
  const [, , quoted] = /^\s*(["'])(.*?)\1\s*(?:#.*)?$/.exec(value) ?? [];
  return quoted ?? value.replace(/#.*$/, "").trim();
}

function configError(message: string): BatonError {
  return new BatonError("CONFIG", message);
}
