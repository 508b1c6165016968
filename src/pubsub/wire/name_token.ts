/**
 * Encodes names and IDs as tokens of a header: percent-encoded UTF-8 (RFC 3986, section 2.1). Any string without lone
 * surrogates can be encoded. Printable ASCII except "%" stays as it is, so an ordinary name stays readable.
 */
import { nameTokenBytesMax } from "./message_limits.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Matches characters that must be escaped: blanks, control characters, "%", and everything beyond ASCII. */
const unsafe = /[^\x21-\x24\x26-\x7e]/;
const loneSurrogate = /\p{Surrogate}/u;

/** Encodes a token. Throws RangeError for text that no header can carry: empty, too long, or with a lone surrogate. */
export function encodeNameToken(text: string): string {
  if (!unsafe.test(text) && text.length <= nameTokenBytesMax && text.length > 0) return text;
  if (text === "") throw new RangeError("A token must not be empty");
  if (loneSurrogate.test(text)) throw new RangeError("A token must not have a lone surrogate: UTF-8 cannot say it");
  const bytes = encoder.encode(text);
  if (bytes.byteLength > nameTokenBytesMax) {
    throw new RangeError(`A token has ${bytes.byteLength} bytes; ${nameTokenBytesMax} are the limit`);
  }
  let encoded = "";
  for (const byte of bytes) {
    const isSafe = byte > 0x20 && byte < 0x7f && byte !== 0x25;
    encoded += isSafe ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return encoded;
}

/**
 * Decodes a token. Returns undefined if it is invalid: bad escapes, bytes that are not UTF-8, empty, or over the limit.
 */
export function decodeNameToken(token: string): string | undefined {
  if (!unsafe.test(token)) return token.length === 0 || token.length > nameTokenBytesMax ? undefined : token;
  if (/%(?![0-9A-Fa-f]{2})/.test(token) || token.length > nameTokenBytesMax * 3) return undefined;
  // A plain client may send characters beyond ASCII without escapes. The header has already been decoded as UTF-8.
  const bytes = encoder.encode(token);
  let length = 0;
  for (let at = 0; at < bytes.byteLength; at++) {
    const byte = bytes[at] as number;
    bytes[length++] = byte === 0x25 ? Number.parseInt(String.fromCharCode(bytes[++at]!, bytes[++at]!), 16) : byte;
  }
  if (length === 0 || length > nameTokenBytesMax) return undefined;
  try {
    return decoder.decode(bytes.subarray(0, length));
  } catch {
    return undefined;
  }
}
