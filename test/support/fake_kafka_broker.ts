/**
 * A Kafka broker that does what a test says, where a real one could not be brought to it: it answers by the same tables
 * that the client asks by, so what the bytes are has to be shown elsewhere (test/retry/conformance/kafka_test.ts).
 */
import { type Connection, formatAddress, type Listener, type TlsOptions } from "../../src/base/sockets/connection.ts";
import { listen } from "../../src/base/sockets/listen.ts";
import { ByteReader } from "../../src/base/wire/bytes.ts";
import {
  kafkaApiVersionsRequest,
  kafkaCreateTopicsRequest,
  kafkaInitProducerIdRequest,
  kafkaMetadataRequest,
  kafkaProduceRequest,
  type KafkaRequest,
  kafkaSaslAuthenticateRequest,
  kafkaSaslHandshakeRequest,
  kafkaTextCodec,
} from "../../src/protocols/kafka/kafka_requests.ts";
import { encodeLengthFrame, JuteFrameDecoder } from "../../src/base/wire/length_frame.ts";
import { ScramServer } from "./scram_server.ts";

const known: readonly KafkaRequest[] = [
  kafkaApiVersionsRequest,
  kafkaMetadataRequest,
  kafkaProduceRequest,
  kafkaInitProducerIdRequest,
  kafkaCreateTopicsRequest,
  kafkaSaslHandshakeRequest,
  kafkaSaslAuthenticateRequest,
];

export interface FakeProduce {
  readonly partition: number;
  readonly producerId: bigint;
  readonly sequence: number;
  readonly bytes: number;
  /** The batch as it came: not compressed, so that a text in it can be looked for. */
  readonly batch: Buffer;
}

export class FakeKafkaBroker {
  /** In the order of their arrival, refused ones too. */
  readonly produced: FakeProduce[] = [];
  readonly topics = new Map<string, number>();
  readonly asked: string[] = [];
  producers = 0;
  /** What a record is answered with: an error's number, no answer, or an end of the connection. */
  onProduce: (record: FakeProduce) => number | "silent" | "close" = () => 0;
  /** The error that the topic is shown with. */
  topicError = 0;
  /**
   * What the next requests for a producer's number, for a new topic, for a view of a topic are answered with; then with
   * 0.
   */
  readonly errors: { producer: number[]; create: number[]; view: number[] } = { producer: [], create: [], view: [] };
  password: string | null = null;
  /** False: it says that it does, and does not. */
  makesTopics = true;
  readonly #connections = new Set<Connection>();
  #listener: Listener | null = null;
  #scram: ScramServer | null = null;

  static async start({ topics = { Dead: 1 }, tls }: {
    readonly topics?: Readonly<Record<string, number>>;
    readonly tls?: TlsOptions;
  } = {}): Promise<FakeKafkaBroker> {
    const broker = new FakeKafkaBroker();
    for (const [name, partitions] of Object.entries(topics)) broker.topics.set(name, partitions);
    broker.#listener = await listen({ kind: "tcp", host: "127.0.0.1", port: 0 }, (connection) => {
      broker.#connections.add(connection);
      const frames = new JuteFrameDecoder(1 << 24);
      return {
        onData(chunk) {
          for (const frame of frames.push(chunk)) broker.#answer(connection, frame.slice());
        },
        onClosed: () => void broker.#connections.delete(connection),
      };
    }, tls === undefined ? {} : { tls });
    return broker;
  }

  get address(): { kind: "tcp"; host: string; port: number } {
    const address = this.#listener?.address;
    if (address?.kind !== "tcp") throw new Error("it does not listen");
    return address;
  }

  get name(): string {
    return formatAddress(this.address);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#connections) connection.destroy();
    await this.#listener?.close();
  }

  #answer(connection: Connection, frame: Uint8Array): void {
    const reader = new ByteReader(frame);
    const key = reader.i16();
    const version = reader.i16();
    const correlation = reader.i32();
    kafkaTextCodec.read(reader);
    const kind = known.find((each) => each.key === key && each.version === version);
    if (kind === undefined) throw new Error(`asked for ${key} in version ${version}`);
    this.asked.push(kind.name);
    const value = this.#respond(kind, kind.request.read(reader));
    reader.end();
    if (value === "silent") return;
    if (value === "close") return connection.destroy();
    connection.write(encodeLengthFrame((writer) => {
      writer.i32(correlation);
      kind.response.write(writer, value as never);
    }));
  }

  // deno-lint-ignore no-explicit-any -- by the table's key
  #respond(kind: KafkaRequest, value: any): unknown {
    const { host, port } = this.address;
    switch (kind) {
      case kafkaApiVersionsRequest:
        return { error: 0, apis: known.map(({ key, version }) => ({ key, min: 0, max: version })) };
      case kafkaMetadataRequest:
        return {
          throttleMs: 0,
          brokers: [{ nodeId: 1, host, port, rack: null }],
          clusterId: null,
          controller: 1,
          topics: value.topics.map((name: string) => this.#topic(name)),
        };
      case kafkaInitProducerIdRequest:
        {
          const error = this.errors.producer.shift() ?? 0;
          if (error !== 0) return { throttleMs: 0, error, producerId: -1n, producerEpoch: -1 };
        }
        return { throttleMs: 0, error: 0, producerId: BigInt(++this.producers), producerEpoch: 0 };
      case kafkaCreateTopicsRequest:
        {
          const error = this.errors.create.shift() ?? 0;
          if (error !== 0) return { throttleMs: 0, topics: [{ name: value.topics[0].name, error, message: null }] };
        }
        if (this.makesTopics) { for (const { name, partitions } of value.topics) this.topics.set(name, partitions); }
        return {
          throttleMs: 0,
          topics: value.topics.map(({ name }: { name: string }) => ({ name, error: 0, message: null })),
        };
      case kafkaSaslHandshakeRequest: {
        const { mechanism } = value;
        const hash = mechanism === "SCRAM-SHA-256" ? "sha256" : mechanism === "SCRAM-SHA-512" ? "sha512" : null;
        this.#scram = hash === null ? null : new ScramServer(hash, this.password ?? "");
        return { error: this.password === null ? 33 : 0, mechanisms: ["GSSAPI"] };
      }
      case kafkaSaslAuthenticateRequest:
        return this.#authenticate(Buffer.from(value.bytes).toString());
      default:
        return this.#produce(value);
    }
  }

  #authenticate(text: string): unknown {
    const answer = this.#scram === null ? (text === `\0me\0${this.password}` ? "" : null) : this.#scram.answer(text);
    if (answer === null) return { error: 58, message: "wrong password", bytes: null };
    return { error: 0, message: null, bytes: Buffer.from(answer) };
  }

  #topic(name: string): unknown {
    const passing = this.errors.view.shift() ?? 0;
    if (passing !== 0) return { error: passing, name, isInternal: false, partitions: [] };
    const count = this.topics.get(name);
    const error = count === undefined ? 3 : this.topicError;
    const partitions = Array.from(
      { length: count ?? 0 },
      (_, index) => ({ error: 0, index, leader: 1, replicas: [1], inSync: [1] }),
    );
    return { error, name, isInternal: false, partitions };
  }

  // deno-lint-ignore no-explicit-any -- as above
  #produce({ topics: [{ name, partitions: [{ index, records }] }] }: any): unknown {
    const view = new DataView(records.buffer, records.byteOffset, records.byteLength);
    const record: FakeProduce = {
      partition: index,
      producerId: view.getBigInt64(43),
      sequence: view.getInt32(53),
      bytes: records.byteLength,
      batch: Buffer.from(records),
    };
    this.produced.push(record);
    const error = this.onProduce(record);
    if (typeof error === "string") return error;
    return {
      topics: [{ name, partitions: [{ index, error, baseOffset: 0n, appendedAtMs: -1n }] }],
      throttleMs: 0,
    };
  }
}
