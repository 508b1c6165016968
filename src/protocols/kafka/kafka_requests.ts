/**
 * The requests to a Kafka broker and their responses, named as in the Kafka protocol guide. Brokers from 0.11 to 4
 * support these versions of the requests, except CreateTopics, which needs 2.4. KIP-896 lists the versions that 4 has
 * removed.
 */
import {
  type AnyJuteCodec,
  emptyJuteRecordCodec,
  juteBooleanCodec,
  juteBytesCodec,
  type JuteCodec,
  type JuteCodecValue,
  juteIntCodec,
  juteLongCodec,
  juteRecordCodec,
  juteVectorCodec,
} from "../../base/wire/record_codec.ts";
import { ByteReader, protocolError } from "../../base/wire/bytes.ts";
import { encodeLengthFrame } from "../../base/wire/length_frame.ts";

// The types that Kafka has and ZooKeeper's jute does not have. INT32, INT64, BOOLEAN, BYTES and ARRAY (with a 32-bit
// length, -1 for null) have the same encoding in both. Source: Kafka protocol guide, "Protocol Primitive Types".
// Request versions with the compact ("flexible") encoding are not used.

const short: JuteCodec<number> = {
  bytesMin: 2,
  read: (reader) => reader.i16(),
  write: (writer, value) => writer.i16(value),
};

/** The codec of STRING and NULLABLE_STRING, which have a 16-bit length. */
export const kafkaTextCodec: JuteCodec<string | null> = {
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

export interface KafkaRequest<
  Request extends AnyJuteCodec = AnyJuteCodec,
  Response extends AnyJuteCodec = AnyJuteCodec,
> {
  /** The request's name in Kafka's protocol guide, for messages. */
  readonly name: string;
  readonly key: number;
  readonly version: number;
  readonly request: Request;
  readonly response: Response;
}

export type KafkaRequestValue<R extends KafkaRequest> = JuteCodecValue<R["request"]>;
export type KafkaResponseValue<R extends KafkaRequest> = JuteCodecValue<R["response"]>;

const Broker = juteRecordCodec({
  nodeId: juteIntCodec,
  host: kafkaTextCodec,
  port: juteIntCodec,
  rack: kafkaTextCodec,
});
const Partition = juteRecordCodec({
  error: short,
  index: juteIntCodec,
  leader: juteIntCodec,
  replicas: juteVectorCodec(juteIntCodec),
  inSync: juteVectorCodec(juteIntCodec),
});
const Topic = juteRecordCodec({
  error: short,
  name: kafkaTextCodec,
  isInternal: juteBooleanCodec,
  partitions: juteVectorCodec(Partition),
});

export const kafkaApiVersionsRequest = {
  name: "ApiVersions",
  key: 18,
  version: 0,
  request: emptyJuteRecordCodec,
  response: juteRecordCodec({
    error: short,
    apis: juteVectorCodec(juteRecordCodec({ key: short, min: short, max: short })),
  }),
} as const;

export const kafkaMetadataRequest = {
  name: "Metadata",
  key: 3,
  version: 4,
  request: juteRecordCodec({ topics: juteVectorCodec(kafkaTextCodec), makesTopics: juteBooleanCodec }),
  response: juteRecordCodec({
    throttleMs: juteIntCodec,
    brokers: juteVectorCodec(Broker),
    clusterId: kafkaTextCodec,
    controller: juteIntCodec,
    topics: juteVectorCodec(Topic),
  }),
} as const;

/**
 * The metadata request for brokers before 0.11, which create every topic that the request names. If the list of topics
 * is null, it requests all topics.
 */
export const oldKafkaMetadataRequest = {
  name: "Metadata",
  key: 3,
  version: 2,
  request: juteRecordCodec({ topics: juteVectorCodec(kafkaTextCodec) }),
  response: juteRecordCodec({
    brokers: juteVectorCodec(Broker),
    clusterId: kafkaTextCodec,
    controller: juteIntCodec,
    topics: juteVectorCodec(Topic),
  }),
} as const;

export const kafkaInitProducerIdRequest = {
  name: "InitProducerId",
  key: 22,
  version: 0,
  request: juteRecordCodec({ transactionalId: kafkaTextCodec, timeoutMs: juteIntCodec }),
  response: juteRecordCodec({
    throttleMs: juteIntCodec,
    error: short,
    producerId: juteLongCodec,
    producerEpoch: short,
  }),
} as const;

export const kafkaProduceRequest = {
  name: "Produce",
  key: 0,
  version: 3,
  request: juteRecordCodec({
    transactionalId: kafkaTextCodec,
    acks: short,
    timeoutMs: juteIntCodec,
    topics: juteVectorCodec(
      juteRecordCodec({
        name: kafkaTextCodec,
        partitions: juteVectorCodec(juteRecordCodec({ index: juteIntCodec, records: juteBytesCodec })),
      }),
    ),
  }),
  response: juteRecordCodec({
    topics: juteVectorCodec(juteRecordCodec({
      name: kafkaTextCodec,
      partitions: juteVectorCodec(
        juteRecordCodec({ index: juteIntCodec, error: short, baseOffset: juteLongCodec, appendedAtMs: juteLongCodec }),
      ),
    })),
    throttleMs: juteIntCodec,
  }),
} as const;

export const kafkaCreateTopicsRequest = {
  name: "CreateTopics",
  key: 19,
  version: 4,
  request: juteRecordCodec({
    topics: juteVectorCodec(juteRecordCodec({
      name: kafkaTextCodec,
      partitions: juteIntCodec,
      replication: short,
      assignments: juteVectorCodec(
        juteRecordCodec({ partition: juteIntCodec, brokers: juteVectorCodec(juteIntCodec) }),
      ),
      configs: juteVectorCodec(juteRecordCodec({ name: kafkaTextCodec, value: kafkaTextCodec })),
    })),
    timeoutMs: juteIntCodec,
    validateOnly: juteBooleanCodec,
  }),
  response: juteRecordCodec({
    throttleMs: juteIntCodec,
    topics: juteVectorCodec(juteRecordCodec({ name: kafkaTextCodec, error: short, message: kafkaTextCodec })),
  }),
} as const;

export const kafkaSaslHandshakeRequest = {
  name: "SaslHandshake",
  key: 17,
  version: 1,
  request: juteRecordCodec({ mechanism: kafkaTextCodec }),
  response: juteRecordCodec({ error: short, mechanisms: juteVectorCodec(kafkaTextCodec) }),
} as const;

export const kafkaSaslAuthenticateRequest = {
  name: "SaslAuthenticate",
  key: 36,
  version: 0,
  request: juteRecordCodec({ bytes: juteBytesCodec }),
  response: juteRecordCodec({ error: short, message: kafkaTextCodec, bytes: juteBytesCodec }),
} as const;

/** Encodes a request without its length field. Requests have header version 1, responses version 0. */
export function encodeKafkaRequest<R extends KafkaRequest>(
  { key, version, request }: R,
  value: KafkaRequestValue<R>,
  { correlation, clientId }: { readonly correlation: number; readonly clientId: string },
): Uint8Array {
  return encodeLengthFrame((writer) => {
    writer.i16(key);
    writer.i16(version);
    writer.i32(correlation);
    kafkaTextCodec.write(writer, clientId);
    request.write(writer, value as never);
  });
}

/**
 * Returns the correlation ID of a response: the same ID as in its request. Throws PROTOCOL, like `decodeKafkaResponse`.
 */
export function readKafkaCorrelationId(frame: Uint8Array): number {
  return new ByteReader(frame).i32();
}

export function decodeKafkaResponse<R extends KafkaRequest>({ response }: R, frame: Uint8Array): KafkaResponseValue<R> {
  const reader = new ByteReader(frame);
  reader.i32();
  const value = response.read(reader) as KafkaResponseValue<R>;
  reader.end();
  return value;
}
