/**
 * Kafka's primitive types that jute does not have. INT32, INT64, BOOLEAN, BYTES and ARRAY (with a 32-bit length, -1 for null)
 * are the same on the wire. Source: Kafka protocol guide, "Protocol Primitive Types". Only versions without the compact
 * ("flexible") forms are used.
 */
import { protocolError } from "../bytes.ts";
import type { Codec } from "../jute/jute_codec.ts";

export const short: Codec<number> = {
  bytesMin: 2,
  read: (reader) => reader.i16(),
  write: (writer, value) => writer.i16(value),
};

/** STRING and NULLABLE_STRING, with a 16-bit length. */
export const text: Codec<string | null> = {
  bytesMin: 2,
  read(reader) {
    const length = reader.i16();
    return length === -1 ? null : reader.utf8(length);
  },
  write(writer, value) {
    if (value === null) return writer.i16(-1);
    const bytes = new TextEncoder().encode(value);
    if (bytes.byteLength > 0x7fff) {
      throw protocolError(`A text of ${bytes.byteLength} bytes is longer than Kafka's 32767`);
    }
    writer.i16(bytes.byteLength);
    writer.raw(bytes);
  },
};
