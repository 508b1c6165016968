/** Z85, ZeroMQ's text form of keys: four bytes as five printable characters. RFC 32. Pure. */

const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

const digits = new Map(Array.from(alphabet, (character, digit) => [character, digit]));

/** Encodes bytes as text. Throws RangeError if their number is not a multiple of four. */
export function encodeZ85(bytes: Uint8Array): string {
  if (bytes.byteLength % 4 !== 0) throw new RangeError(`${bytes.byteLength} bytes are not a multiple of 4`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let text = "";
  for (let at = 0; at < bytes.byteLength; at += 4) {
    let rest = view.getUint32(at);
    let five = "";
    for (let place = 0; place < 5; place++) {
      five = alphabet.charAt(rest % 85) + five;
      rest = Math.floor(rest / 85);
    }
    text += five;
  }
  return text;
}

/**
 * Returns the decoded bytes, or what is wrong with the text. The message does not repeat the text, which may be a
 * secret.
 */
export function decodeZ85(text: string): Uint8Array | { readonly wrong: string } {
  const stray = Array.from(text).findIndex((character) => !digits.has(character));
  if (stray !== -1) return { wrong: `its character ${stray + 1} is none of Z85` };
  if (text.length % 5 !== 0) return { wrong: `it has ${text.length} characters, which is not a multiple of 5` };
  const bytes = new Uint8Array(text.length / 5 * 4);
  const view = new DataView(bytes.buffer);
  for (let group = 0; group < text.length / 5; group++) {
    let value = 0;
    for (let place = 0; place < 5; place++) value = value * 85 + (digits.get(text.charAt(group * 5 + place)) ?? 0);
    if (value > 0xffffffff) {
      return { wrong: `its characters ${group * 5 + 1} to ${group * 5 + 5} are more than 32 bits` };
    }
    view.setUint32(group * 4, value);
  }
  return bytes;
}
