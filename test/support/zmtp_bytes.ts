/** ZMTP as a peer of these tests writes it: by hand, so that what is tested does not check itself. */

export function join(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.byteLength;
  }
  return whole;
}

/** The bytes in pieces, cut at these places. */
export function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const at = [0, ...places.map((place) => place % (bytes.byteLength + 1)), bytes.byteLength].sort((a, b) => a - b);
  return at.slice(1).map((end, index) => bytes.slice(at[index], end));
}

export const text = (words: string): Uint8Array => new TextEncoder().encode(words);

/** A frame; long when it has to be or `isLong` says so, which is legal for any length. */
export function frame(flags: number, body: Uint8Array, isLong = body.byteLength > 255): Uint8Array {
  const length = body.byteLength;
  if (!isLong) return join([new Uint8Array([flags, length]), body]);
  const header = new Uint8Array(9);
  header[0] = flags | 2;
  new DataView(header.buffer).setBigUint64(1, BigInt(length));
  return join([header, body]);
}

export function message(frames: readonly Uint8Array[], isLong?: boolean): Uint8Array {
  return join(frames.map((body, index) => frame(index < frames.length - 1 ? 1 : 0, body, isLong)));
}

export function command(name: string, data: Uint8Array = new Uint8Array(0)): Uint8Array {
  return frame(4, join([new Uint8Array([name.length]), text(name), data]));
}

export function greeting({ major = 3, minor = 1, mechanism = "NULL" } = {}): Uint8Array {
  const bytes = new Uint8Array(64);
  bytes[0] = 0xff;
  bytes[9] = 0x7f;
  bytes[10] = major;
  bytes[11] = minor;
  bytes.set(text(mechanism), 12);
  return bytes;
}

export function propertyBytes(name: string, value: Uint8Array): Uint8Array {
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, value.byteLength);
  return join([new Uint8Array([name.length]), text(name), length, value]);
}

export function ready(socketType: string, identity?: Uint8Array): Uint8Array {
  const properties = [propertyBytes("Socket-Type", text(socketType))];
  if (identity !== undefined) properties.push(propertyBytes("Identity", identity));
  return command("READY", join(properties));
}
