/** One value to its bytes and back, and what may go wrong on the way. */
import { BatonError } from "../../src/base/errors.ts";
import { ByteReader, ByteWriter } from "../../src/base/wire/bytes.ts";
import type { JuteCodec } from "../../src/base/wire/record_codec.ts";

export function encode<T>(codec: JuteCodec<T>, value: T): Uint8Array {
  const writer = new ByteWriter();
  codec.write(writer, value);
  return writer.finish().slice();
}

/** The value that fills all of the bytes. */
export function decode<T>(codec: JuteCodec<T>, bytes: Uint8Array): T {
  const reader = new ByteReader(bytes);
  const value = codec.read(reader);
  reader.end();
  return value;
}

/** What `action` returns, or null when it throws the one error that bytes from outside may cause. */
export function unlessProtocolError<T>(action: () => T): T | null {
  try {
    return action();
  } catch (error) {
    if (error instanceof BatonError && error.code === "PROTOCOL") return null;
    throw error;
  }
}

/** Bytes from their hexadecimal digits; white space is for the reader. */
export function hex(digits: string): Uint8Array {
  return Uint8Array.fromHex(digits.replaceAll(/\s/g, ""));
}
