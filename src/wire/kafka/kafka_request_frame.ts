/** Encodes requests and decodes responses. Request header version 1, response header version 0. Pure. */
import { ByteReader } from "../bytes.ts";
import { encodeFrame } from "../jute/jute_frame.ts";
import { text } from "./kafka_codec.ts";
import type { KafkaRequest, KafkaRequestOf, KafkaResponseOf } from "./kafka_requests.ts";

/** Encodes a request with its length in front. */
export function encodeRequest<R extends KafkaRequest>(
  { key, version, request }: R,
  value: KafkaRequestOf<R>,
  { correlation, clientId }: { readonly correlation: number; readonly clientId: string },
): Uint8Array {
  return encodeFrame((writer) => {
    writer.i16(key);
    writer.i16(version);
    writer.i32(correlation);
    text.write(writer, clientId);
    request.write(writer, value as never);
  });
}

/** The correlation ID of a response. Throws PROTOCOL, like `decodeResponse`. */
export function correlationOf(frame: Uint8Array): number {
  return new ByteReader(frame).i32();
}

export function decodeResponse<R extends KafkaRequest>({ response }: R, frame: Uint8Array): KafkaResponseOf<R> {
  const reader = new ByteReader(frame);
  reader.i32();
  const value = response.read(reader) as KafkaResponseOf<R>;
  reader.end();
  return value;
}
