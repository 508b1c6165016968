/**
 * Jute, ZooKeeper's record format. A single declaration of a record defines its reader, its writer and its TypeScript
 * type. Numbers are big-endian. A string or buffer is a 32-bit length, -1 for null, followed by the bytes; a vector is
 * a 32-bit count followed by the elements. Source: zookeeper-jute, BinaryInputArchive and BinaryOutputArchive.
 */
import { type ByteReader, type ByteWriter, protocolError } from "./bytes.ts";

/**
 * Reads and writes values of one type. `bytesMin` is the smallest size of a value; it is used to check a count before
 * memory is allocated.
 */
export interface JuteCodec<T> {
  readonly bytesMin: number;
  read(reader: ByteReader): T;
  write(writer: ByteWriter, value: T): void;
}

/** A codec of any type, for tables of records. */
export interface AnyJuteCodec {
  readonly bytesMin: number;
  read(reader: ByteReader): unknown;
  write(writer: ByteWriter, value: never): void;
}

/** The TypeScript type of a codec's values. */
export type JuteCodecValue<C extends AnyJuteCodec> = ReturnType<C["read"]>;

export const juteIntCodec: JuteCodec<number> = {
  bytesMin: 4,
  read: (reader) => reader.i32(),
  write: (writer, value) => writer.i32(value),
};

export const juteLongCodec: JuteCodec<bigint> = {
  bytesMin: 8,
  read: (reader) => reader.i64(),
  write: (writer, value) => writer.i64(value),
};

export const juteBooleanCodec: JuteCodec<boolean> = {
  bytesMin: 1,
  read: (reader) => reader.u8() !== 0,
  write: (writer, value) => writer.u8(value ? 1 : 0),
};

/** The codec of a string. Reads null as the empty string, like ZooKeeper's own reader. */
export const juteStringCodec: JuteCodec<string> = {
  bytesMin: 4,
  read(reader) {
    const length = reader.i32();
    return length === -1 ? "" : reader.utf8(length);
  },
  write: (writer, value) => writer.utf8WithI32Length(value),
};

/** The codec of bytes, or null. Reading makes a copy, which stays valid after the frame. */
export const juteBytesCodec: JuteCodec<Uint8Array | null> = {
  bytesMin: 4,
  read(reader) {
    const length = reader.i32();
    return length === -1 ? null : reader.view(length).slice();
  },
  write(writer, value) {
    if (value === null) return writer.i32(-1);
    writer.i32(value.byteLength);
    writer.raw(value);
  },
};

/** Returns the codec of a list of elements, or null. */
export function juteVectorCodec<T>(element: JuteCodec<T>): JuteCodec<T[] | null> & { readonly element: JuteCodec<T> } {
  return {
    element,
    bytesMin: 4,
    read(reader) {
      const count = reader.i32();
      if (count === -1) return null;
      if (count < 0 || count * element.bytesMin > reader.remaining) {
        throw protocolError(`Cannot read a vector of ${count} elements: ${reader.remaining} bytes are left`);
      }
      const elements: T[] = [];
      for (let index = 0; index < count; index++) elements.push(element.read(reader));
      return elements;
    },
    write(writer, value) {
      if (value === null) return writer.i32(-1);
      writer.i32(value.length);
      for (const item of value) element.write(writer, item);
    },
  };
}

type RecordOf<F extends Record<string, AnyJuteCodec>> = { [Name in keyof F]: JuteCodecValue<F[Name]> };

/** Returns the codec of a record with these fields in this order. */
export function juteRecordCodec<F extends Record<string, AnyJuteCodec>>(
  fields: F,
): JuteCodec<RecordOf<F>> & { readonly fields: F } {
  const entries = Object.entries(fields) as [string, JuteCodec<unknown>][];
  return {
    fields,
    // A minimum of 1 per element prevents a vector from claiming more elements than there are bytes.
    bytesMin: Math.max(1, entries.reduce((sum, [, codec]) => sum + codec.bytesMin, 0)),
    read(reader) {
      const value: Record<string, unknown> = {};
      for (const [name, codec] of entries) value[name] = codec.read(reader);
      return value as RecordOf<F>;
    },
    write(writer, value) {
      for (const [name, codec] of entries) codec.write(writer, (value as Record<string, unknown>)[name]);
    },
  };
}

export const emptyJuteRecordCodec: JuteCodec<Record<never, never>> = {
  bytesMin: 0,
  read: () => ({}),
  write: () => {},
};
