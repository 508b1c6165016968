/**
 * What Kafka's primitive types have that jute's have not. The rest is the same on the wire: INT32, INT64 and BOOLEAN, BYTES and ARRAY
 * behind a 32-bit length, -1 for null. Source: Kafka protocol guide, "Protocol Primitive Types"; only versions before the
 * compact ("flexible") forms are spoken.
 */
import { protocolError } from "../bytes.ts";
import type { Codec } from "../jute/jute_codec.ts";

export const short: Codec<number> = {
  bytesMin: 2,
  read: (reader) => reader.i16(),
  write: (writer, value) => writer.i16(value),
};

/** STRING and NULLABLE_STRING: a 16-bit length. */
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
