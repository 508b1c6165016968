/** One request as bytes, and one answer as what it says. Request header 1, response header 0. Pure. */
import { ByteReader } from "../bytes.ts";
import { encodeFrame } from "../jute/jute_frame.ts";
import { text } from "./kafka_codec.ts";
import type { KafkaRequest, KafkaRequestOf, KafkaResponseOf } from "./kafka_requests.ts";

/** Length in front. */
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

/** Which request an answer belongs to. Throws PROTOCOL, as what follows. */
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
