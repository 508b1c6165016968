/**
 * The requests to a Kafka broker and their responses; names, order and versions as in the Kafka protocol guide. Brokers
 * from 0.11 to 4 support these versions (KIP-896 lists those that 4 has removed); CreateTopics needs 2.4.
 */
import {
  type AnyCodec,
  boolean,
  buffer,
  type Codec,
  type CodecValue,
  empty,
  int,
  long,
  record,
  vector,
} from "../../base/wire/record_codec.ts";
import { ByteReader, protocolError } from "../../base/wire/bytes.ts";
import { encodeFrame } from "../../base/wire/length_frame.ts";

// Kafka's primitive types that jute does not have. INT32, INT64, BOOLEAN, BYTES and ARRAY (with a 32-bit length, -1 for
// null) are the same on the wire. Source: Kafka protocol guide, "Protocol Primitive Types". Only versions without the
// compact ("flexible") forms are used.

const short: Codec<number> = {
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

export interface KafkaRequest<Request extends AnyCodec = AnyCodec, Response extends AnyCodec = AnyCodec> {
  /** The guide's name, for messages. */
  readonly name: string;
  readonly key: number;
  readonly version: number;
  readonly request: Request;
  readonly response: Response;
}

export type KafkaRequestOf<R extends KafkaRequest> = CodecValue<R["request"]>;
export type KafkaResponseOf<R extends KafkaRequest> = CodecValue<R["response"]>;

const Broker = record({ nodeId: int, host: text, port: int, rack: text });
const Partition = record({
  error: short,
  index: int,
  leader: int,
  replicas: vector(int),
  inSync: vector(int),
});
const Topic = record({ error: short, name: text, isInternal: boolean, partitions: vector(Partition) });

export const apiVersions = {
  name: "ApiVersions",
  key: 18,
  version: 0,
  request: empty,
  response: record({ error: short, apis: vector(record({ key: short, min: short, max: short })) }),
} as const;

export const metadata = {
  name: "Metadata",
  key: 3,
  version: 4,
  request: record({ topics: vector(text), makesTopics: boolean }),
  response: record({
    throttleMs: int,
    brokers: vector(Broker),
    clusterId: text,
    controller: int,
    topics: vector(Topic),
  }),
} as const;

/** The metadata request of brokers that create every topic that it names. Topics null: all topics. */
export const oldMetadata = {
  name: "Metadata",
  key: 3,
  version: 2,
  request: record({ topics: vector(text) }),
  response: record({ brokers: vector(Broker), clusterId: text, controller: int, topics: vector(Topic) }),
} as const;

export const initProducerId = {
  name: "InitProducerId",
  key: 22,
  version: 0,
  request: record({ transactionalId: text, timeoutMs: int }),
  response: record({ throttleMs: int, error: short, producerId: long, producerEpoch: short }),
} as const;

export const produce = {
  name: "Produce",
  key: 0,
  version: 3,
  request: record({
    transactionalId: text,
    acks: short,
    timeoutMs: int,
    topics: vector(record({ name: text, partitions: vector(record({ index: int, records: buffer })) })),
  }),
  response: record({
    topics: vector(record({
      name: text,
      partitions: vector(record({ index: int, error: short, baseOffset: long, appendedAtMs: long })),
    })),
    throttleMs: int,
  }),
} as const;

export const createTopics = {
  name: "CreateTopics",
  key: 19,
  version: 4,
  request: record({
    topics: vector(record({
      name: text,
      partitions: int,
      replication: short,
      assignments: vector(record({ partition: int, brokers: vector(int) })),
      configs: vector(record({ name: text, value: text })),
    })),
    timeoutMs: int,
    validateOnly: boolean,
  }),
  response: record({
    throttleMs: int,
    topics: vector(record({ name: text, error: short, message: text })),
  }),
} as const;

export const saslHandshake = {
  name: "SaslHandshake",
  key: 17,
  version: 1,
  request: record({ mechanism: text }),
  response: record({ error: short, mechanisms: vector(text) }),
} as const;

export const saslAuthenticate = {
  name: "SaslAuthenticate",
  key: 36,
  version: 0,
  request: record({ bytes: buffer }),
  response: record({ error: short, message: text, bytes: buffer }),
} as const;

/** Encodes a request with its length in front: request header version 1. Responses have header version 0. */
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
export function readCorrelationId(frame: Uint8Array): number {
  return new ByteReader(frame).i32();
}

export function decodeResponse<R extends KafkaRequest>({ response }: R, frame: Uint8Array): KafkaResponseOf<R> {
  const reader = new ByteReader(frame);
  reader.i32();
  const value = response.read(reader) as KafkaResponseOf<R>;
  reader.end();
  return value;
}
