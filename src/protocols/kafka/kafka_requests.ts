/**
 * The requests to a Kafka broker and their responses, named as in the Kafka protocol guide. Brokers from 0.11 to 4
 * support these versions of the requests, except CreateTopics, which needs 2.4. KIP-896 lists the versions that 4 has
 * removed.
 */
import {
  type AnyCodec,
  boolean,
  buffer,
  type Codec,
  type CodecValue,
  emptyRecord,
  int,
  long,
  record,
  vector,
} from "../../base/wire/record_codec.ts";
import { ByteReader, protocolError } from "../../base/wire/bytes.ts";
import { encodeLengthFrame } from "../../base/wire/length_frame.ts";

// The types that Kafka has and jute lacks. INT32, INT64, BOOLEAN, BYTES and ARRAY (with a 32-bit length, -1 for null)
// have the same encoding in both. Source: Kafka protocol guide, "Protocol Primitive Types". Request versions with the
// compact ("flexible") encoding are not used.

const short: Codec<number> = {
  bytesMin: 2,
  read: (reader) => reader.i16(),
  write: (writer, value) => writer.i16(value),
};

/** STRING and NULLABLE_STRING, with a 16-bit length. */
export const kafkaText: Codec<string | null> = {
  bytesMin: 2,
  read(reader) {
    const length = reader.i16();
    return length === -1 ? null : reader.utf8(length);
  },
  write(writer, value) {
    if (value === null) return writer.i16(-1);
    const bytes = new TextEncoder().encode(value);
    if (bytes.byteLength > 0x7fff) {
      throw protocolError(`A kafkaText of ${bytes.byteLength} bytes is longer than Kafka's 32767`);
    }
    writer.i16(bytes.byteLength);
    writer.raw(bytes);
  },
};

export interface KafkaRequest<Request extends AnyCodec = AnyCodec, Response extends AnyCodec = AnyCodec> {
  /** The request's name in Kafka's protocol guide, for messages. */
  readonly name: string;
  readonly key: number;
  readonly version: number;
  readonly request: Request;
  readonly response: Response;
}

export type KafkaRequestValue<R extends KafkaRequest> = CodecValue<R["request"]>;
export type KafkaResponseValue<R extends KafkaRequest> = CodecValue<R["response"]>;

const Broker = record({ nodeId: int, host: kafkaText, port: int, rack: kafkaText });
const Partition = record({
  error: short,
  index: int,
  leader: int,
  replicas: vector(int),
  inSync: vector(int),
});
const Topic = record({ error: short, name: kafkaText, isInternal: boolean, partitions: vector(Partition) });

export const apiVersionsRequest = {
  name: "ApiVersions",
  key: 18,
  version: 0,
  request: emptyRecord,
  response: record({ error: short, apis: vector(record({ key: short, min: short, max: short })) }),
} as const;

export const metadataRequest = {
  name: "Metadata",
  key: 3,
  version: 4,
  request: record({ topics: vector(kafkaText), makesTopics: boolean }),
  response: record({
    throttleMs: int,
    brokers: vector(Broker),
    clusterId: kafkaText,
    controller: int,
    topics: vector(Topic),
  }),
} as const;

/**
 * The metadata request for brokers before 0.11, which create every topic that it names. With null, it requests all
 * topics.
 */
export const oldMetadataRequest = {
  name: "Metadata",
  key: 3,
  version: 2,
  request: record({ topics: vector(kafkaText) }),
  response: record({ brokers: vector(Broker), clusterId: kafkaText, controller: int, topics: vector(Topic) }),
} as const;

export const initProducerIdRequest = {
  name: "InitProducerId",
  key: 22,
  version: 0,
  request: record({ transactionalId: kafkaText, timeoutMs: int }),
  response: record({ throttleMs: int, error: short, producerId: long, producerEpoch: short }),
} as const;

export const produceRequest = {
  name: "Produce",
  key: 0,
  version: 3,
  request: record({
    transactionalId: kafkaText,
    acks: short,
    timeoutMs: int,
    topics: vector(record({ name: kafkaText, partitions: vector(record({ index: int, records: buffer })) })),
  }),
  response: record({
    topics: vector(record({
      name: kafkaText,
      partitions: vector(record({ index: int, error: short, baseOffset: long, appendedAtMs: long })),
    })),
    throttleMs: int,
  }),
} as const;

export const createTopicsRequest = {
  name: "CreateTopics",
  key: 19,
  version: 4,
  request: record({
    topics: vector(record({
      name: kafkaText,
      partitions: int,
      replication: short,
      assignments: vector(record({ partition: int, brokers: vector(int) })),
      configs: vector(record({ name: kafkaText, value: kafkaText })),
    })),
    timeoutMs: int,
    validateOnly: boolean,
  }),
  response: record({
    throttleMs: int,
    topics: vector(record({ name: kafkaText, error: short, message: kafkaText })),
  }),
} as const;

export const saslHandshakeRequest = {
  name: "SaslHandshake",
  key: 17,
  version: 1,
  request: record({ mechanism: kafkaText }),
  response: record({ error: short, mechanisms: vector(kafkaText) }),
} as const;

export const saslAuthenticateRequest = {
  name: "SaslAuthenticate",
  key: 36,
  version: 0,
  request: record({ bytes: buffer }),
  response: record({ error: short, message: kafkaText, bytes: buffer }),
} as const;

/** Encodes a request after its length. Requests have header version 1, responses version 0. */
export function encodeKafkaRequest<R extends KafkaRequest>(
  { key, version, request }: R,
  value: KafkaRequestValue<R>,
  { correlation, clientId }: { readonly correlation: number; readonly clientId: string },
): Uint8Array {
  return encodeLengthFrame((writer) => {
    writer.i16(key);
    writer.i16(version);
    writer.i32(correlation);
    kafkaText.write(writer, clientId);
    request.write(writer, value as never);
  });
}

/**
 * Returns the correlation ID, by which a response belongs to a request. Throws PROTOCOL, like `decodeKafkaResponse`.
 */
export function readCorrelationId(frame: Uint8Array): number {
  return new ByteReader(frame).i32();
}

export function decodeKafkaResponse<R extends KafkaRequest>({ response }: R, frame: Uint8Array): KafkaResponseValue<R> {
  const reader = new ByteReader(frame);
  reader.i32();
  const value = response.read(reader) as KafkaResponseValue<R>;
  reader.end();
  return value;
}
