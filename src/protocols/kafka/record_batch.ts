/**
 * Encodes a batch of one record in format 2 ("magic 2"), the first format with headers and sequence numbers. Source:
 * Kafka documentation, "Message Format", "Record Batch" and "Record". Pure.
 */
import { ByteWriter } from "../../base/wire/bytes.ts";

export interface KafkaRecord {
  readonly key: string;
  readonly value: Uint8Array;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The wall-clock time in milliseconds. */
  readonly timestampMs: number;
}

/**
 * Identifies a record to the broker, so that the broker drops repetitions. `sequence` increases by one with each record
 * in a partition.
 */
export interface KafkaProducerStamp {
  readonly producerId: bigint;
  readonly producerEpoch: number;
  readonly sequence: number;
}

/** The stamp of a producer without an ID. */
export const noKafkaProducerStamp: KafkaProducerStamp = { producerId: -1n, producerEpoch: -1, sequence: -1 };

/** The position of the first byte that the checksum covers, counted from the end of the length field. */
const checkedFrom = 4 + 1 + 4;

export function encodeKafkaRecordBatch(
  kept: KafkaRecord,
  { producerId, producerEpoch, sequence }: KafkaProducerStamp,
): Uint8Array {
  const writer = new ByteWriter(256 + kept.value.byteLength);
  writer.i64(0n); // base offset: set by the broker
  writer.i32(0); // length: set below
  const start = writer.length;
  writer.i32(-1); // partition leader epoch
  writer.u8(2); // magic
  writer.i32(0); // checksum: set below
  writer.i16(0); // attributes: no compression, creation time, no transaction
  writer.i32(0); // last offset delta
  writer.i64(BigInt(kept.timestampMs)); // first timestamp
  writer.i64(BigInt(kept.timestampMs)); // last timestamp
  writer.i64(producerId);
  writer.i16(producerEpoch);
  writer.i32(sequence);
  writer.i32(1); // records
  writeRecord(writer, kept);
  const bytes = writer.finish();
  writer.setI32(start - 4, bytes.byteLength - start);
  writer.setI32(start + checkedFrom - 4, crc32c(bytes.subarray(start + checkedFrom)) | 0);
  return writer.finish();
}

function writeRecord(writer: ByteWriter, { key, value, headers }: KafkaRecord): void {
  const inner = new ByteWriter(128 + value.byteLength);
  inner.u8(0); // attributes
  writeVarint(inner, 0); // timestamp delta
  writeVarint(inner, 0); // offset delta
  writeBytes(inner, new TextEncoder().encode(key));
  writeBytes(inner, value);
  writeVarint(inner, headers.length);
  for (const [name, text] of headers) {
    writeBytes(inner, new TextEncoder().encode(name));
    writeBytes(inner, new TextEncoder().encode(text));
  }
  writeVarint(writer, inner.length);
  writer.raw(inner.finish());
}

function writeBytes(writer: ByteWriter, bytes: Uint8Array): void {
  writeVarint(writer, bytes.byteLength);
  writer.raw(bytes);
}

/** Writes a number from 0 to 2^31 - 1 in zigzag encoding, seven bits per byte, least significant first. */
function writeVarint(writer: ByteWriter, value: number): void {
  let rest = value * 2;
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) writer.u8((rest % 128) | 0x80);
  writer.u8(rest);
}

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = (value & 1) === 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
  return value;
});

/** Computes CRC-32C (Castagnoli), RFC 3720 appendix B.4. node:zlib does not have it. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (let at = 0; at < bytes.byteLength; at++) crc = (crc >>> 8) ^ (table[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}
