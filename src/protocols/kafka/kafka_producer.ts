/**
 * Writes records to one Kafka topic, one at a time, and can create the topic. All in-sync replicas acknowledge each
 * record (acks=all). If a response is lost, the record is sent again with the same sequence number, so the broker
 * stores it only once. This works only within one producer: if another process sends a record with the same key, the
 * broker stores a second record.
 */
import { BatonError, errorMessage } from "../../base/errors.ts";
import { type Address, formatAddress } from "../../base/sockets/connection.ts";
import { backoffMs, serverBackoff } from "../../base/support/backoff.ts";
import { deadlineAfter, sleep } from "../../base/support/deadline.ts";
import { formatDuration } from "../../base/support/duration.ts";
import {
  isKafkaAccessDeniedError,
  isKafkaRecordRefusedError,
  isRetriableKafkaError,
  isStaleKafkaProducerError,
  kafkaErrorName,
  kafkaErrors,
} from "./kafka_error_codes.ts";
import {
  crc32c,
  encodeKafkaRecordBatch,
  type KafkaProducerStamp,
  type KafkaRecord,
  noKafkaProducerStamp,
} from "./record_batch.ts";
import {
  kafkaCreateTopicsRequest,
  kafkaInitProducerIdRequest,
  kafkaMetadataRequest,
  kafkaProduceRequest,
  oldKafkaMetadataRequest,
} from "./kafka_requests.ts";
import { KafkaBrokerConnection, type KafkaBrokerOptions } from "./broker_connection.ts";
import { throwIfAborted } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";

export type { KafkaRecord };

export interface KafkaProducerOptions extends BrokersOptions {
  readonly topic: string;
  /** The shape of the topic to create if it is missing; null if sending must fail then. */
  readonly createAs: KafkaTopicShape | null;
  /** The time limit for one record in milliseconds, including all attempts. */
  readonly timeoutMs: number;
}

/**
 * The number of lost connections after which a record fails. A broker closes the connection of a request that is too
 * long, so the record may be the reason.
 */
const connectionLossesMax = 3;

export class KafkaProducer {
  readonly #options: KafkaProducerOptions;
  readonly #brokers: Brokers;
  #leaders: readonly (Address | null)[] = [];
  /** The ID that a broker has given this producer; null before it was requested. */
  #producer: Omit<KafkaProducerStamp, "sequence"> | null = null;
  /** The sequence number of the next record in each partition. */
  readonly #sequences = new Map<number, number>();
  /** The last record whose response did not arrive. The broker may have stored this record. */
  #unconfirmed: { readonly key: string; readonly partition: number } | null = null;
  /** The number of connections that ended before a response. */
  #connectionLosses = 0;

  constructor(options: KafkaProducerOptions) {
    this.#options = options;
    this.#brokers = new Brokers(options);
  }

  /**
   * Checks that records can be sent. Rejects with CONFIG if the topic does not exist, with REFUSED if permissions are
   * missing, or with UNREACHABLE if no broker responds.
   */
  async check(signal: AbortSignal): Promise<void> {
    await this.#runWithTimeout(signal, async (ending) => {
      if (this.#leaders.length === 0) await this.#refreshMetadata(ending);
    });
  }

  /**
   * Sends a record. Resolves when the record is as durable as the topic requires. Rejects like `check`, or with
   * BAD_DATA if the broker will never accept this record. Rejects with CONNECTION_LOST after the time limit; the record
   * may have been written.
   */
  async send(record: KafkaRecord, signal: AbortSignal): Promise<void> {
    await this.#runWithTimeout(signal, async (ending) => {
      let losses = 0;
      let obstacle: string | null = null;
      // Reports the last obstacle, because it tells the user more than the end of the time limit.
      const describe = (thrown: unknown): never => {
        throw obstacle === null || signal.aborted || !ending.aborted
          ? thrown
          : this.#producerError("CONNECTION_LOST", obstacle);
      };
      for (let attempt = 0;; attempt++) {
        const before = this.#connectionLosses;
        obstacle = await this.#attempt(record, ending).catch(describe);
        if (obstacle === null) return;
        losses += this.#connectionLosses - before;
        if (losses >= connectionLossesMax) throw this.#producerError("CONNECTION_LOST", obstacle);
        await sleep(this.#options.clock, backoffMs(attempt, serverBackoff), ending).catch(describe);
      }
    });
  }

  close(): void {
    this.#brokers.close();
  }

  /**
   * Makes one attempt. Returns null if the record was written. If the next attempt may succeed, returns the reason of
   * the failure.
   */
  async #attempt(record: KafkaRecord, signal: AbortSignal): Promise<string | null> {
    try {
      if (this.#leaders.length === 0) await this.#refreshMetadata(signal);
    } catch (error) {
      if (signal.aborted || !isConnectionLost(error)) throw error;
      return errorMessage(error);
    }
    const partition = this.#unconfirmed?.key === record.key
      ? this.#unconfirmed.partition
      : partitionOf(record.key, this.#leaders.length);
    // Requests a new ID, because this record would otherwise get the sequence number of the unconfirmed record, and the
    // broker could drop it as a repetition.
    if (this.#unconfirmed !== null && this.#unconfirmed.key !== record.key) this.#forgetProducer();
    const leader = this.#leaders[partition] ?? null;
    if (leader === null) return this.#forgetLeaders(`partition ${partition} has no leader`);
    let broker: KafkaBrokerConnection;
    try {
      broker = await this.#brokers.connectionTo(leader, signal);
    } catch (error) {
      if (signal.aborted || !(error instanceof BatonError) || error.code !== "UNREACHABLE") throw error;
      // The next attempt fetches the metadata again. It reports an error if no other broker responds either.
      return this.#forgetLeaders(`the leader of partition ${partition} cannot be reached, ${errorMessage(error)}`);
    }
    try {
      const obstacle = this.#producer === null ? await this.#register(broker, signal) : null;
      if (obstacle !== null) return this.#forgetLeaders(obstacle);
      return this.#handleResult(await this.#produce(broker, record, partition, signal), partition);
    } catch (error) {
      if (signal.aborted || !isConnectionLost(error)) throw error;
      this.#connectionLosses++;
      return this.#forgetLeaders(errorMessage(error));
    }
  }

  async #produce(
    broker: KafkaBrokerConnection,
    record: KafkaRecord,
    partition: number,
    signal: AbortSignal,
  ): Promise<number> {
    const { topic, timeoutMs } = this.#options;
    const producer = this.#producer ?? noKafkaProducerStamp;
    const sequence = producer.producerId === noKafkaProducerStamp.producerId
      ? noKafkaProducerStamp.sequence
      : this.#sequences.get(partition) ?? 0;
    const records = encodeKafkaRecordBatch(record, { ...producer, sequence });
    this.#unconfirmed = { key: record.key, partition };
    const { topics } = await broker.request(kafkaProduceRequest, {
      transactionalId: null,
      acks: -1,
      timeoutMs,
      topics: [{ name: topic, partitions: [{ index: partition, records }] }],
    }, signal);
    return topics?.[0]?.partitions?.[0]?.error ?? kafkaErrors.REQUEST_TIMED_OUT;
  }

  /** Handles the error code of a response. Returns null, or the reason of the failure, like `#attempt`. */
  #handleResult(error: number, partition: number): string | null {
    // DUPLICATE_SEQUENCE means that an earlier attempt wrote the record.
    if (error === kafkaErrors.NONE || error === kafkaErrors.DUPLICATE_SEQUENCE) {
      this.#sequences.set(partition, ((this.#sequences.get(partition) ?? 0) + 1) & 0x7fffffff);
      this.#unconfirmed = null;
      return null;
    }
    const name = kafkaErrorName(error);
    if (isStaleKafkaProducerError(error)) {
      this.#forgetProducer();
      return name;
    }
    if (isKafkaRecordRefusedError(error)) {
      this.#unconfirmed = null;
      throw this.#producerError("BAD_DATA", `the broker does not accept this message (${name})`);
    }
    if (isKafkaAccessDeniedError(error)) {
      throw this.#producerError("REFUSED", `this client has no permission to write (${name})`);
    }
    return this.#forgetLeaders(name);
  }

  #forgetProducer(): void {
    this.#producer = null;
    this.#unconfirmed = null;
    this.#sequences.clear();
  }

  #forgetLeaders(obstacle: string): string {
    this.#leaders = [];
    return obstacle;
  }

  /** Requests an ID for this producer. Returns null, or the reason of the failure, like `#attempt`. */
  async #register(broker: KafkaBrokerConnection, signal: AbortSignal): Promise<string | null> {
    if (!broker.supports(kafkaInitProducerIdRequest)) {
      this.#producer = noKafkaProducerStamp;
      return null;
    }
    const answer = await broker.request(
      kafkaInitProducerIdRequest,
      { transactionalId: null, timeoutMs: 60_000 },
      signal,
    );
    const { error, producerId, producerEpoch } = answer;
    const why = `the broker gave this producer no ID (${kafkaErrorName(error)})`;
    if (isRetriableKafkaError(error)) return why;
    if (error === kafkaErrors.NONE) this.#producer = { producerId, producerEpoch };
    // Brokers before 2.8 require the permission IDEMPOTENT_WRITE on the cluster. Without an ID, repeated records may be
    // stored twice.
    else if (error === kafkaErrors.CLUSTER_AUTHORIZATION_FAILED) this.#producer = noKafkaProducerStamp;
    else throw this.#producerError("UNREACHABLE", why);
    return null;
  }

  async #refreshMetadata(signal: AbortSignal): Promise<void> {
    const { topic, createAs, clock } = this.#options;
    let isAsked = false;
    for (let attempt = 0;; attempt++) {
      const broker = await this.#brokers.anyConnection(signal);
      const { leaders, controller, obstacle } = await describeTopic(broker, topic, signal);
      if (leaders.length > 0) {
        this.#leaders = leaders;
        return;
      }
      const missing = `the topic does not exist at ${this.#brokers.addressNames}`;
      if (createAs === null && obstacle === null) {
        throw this.#producerError("CONFIG", `${missing}; create it, or add ?create=yes`);
      }
      let why = obstacle ?? `${missing} yet; its creation was requested`;
      if (createAs !== null && obstacle === null && !isAsked) {
        const maker = controller === null ? broker : await this.#brokers.connectionTo(controller, signal);
        const refusal = await createTopic(maker, topic, createAs, signal);
        isAsked = refusal === null;
        why = refusal ?? why;
      }
      const wait = sleep(clock, backoffMs(attempt, serverBackoff), signal);
      await wait.catch(() => {
        throw this.#producerError("UNREACHABLE", why);
      });
    }
  }

  /** Runs `work` with this producer's time limit. */
  async #runWithTimeout(signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { clock, timeoutMs } = this.#options;
    const reason = () => this.#producerError("CONNECTION_LOST", `no response within ${formatDuration(timeoutMs)}`);
    using deadline = deadlineAfter(clock, timeoutMs, { signal, reason });
    await work(deadline.signal);
  }

  #producerError(code: "BAD_DATA" | "CONFIG" | "CONNECTION_LOST" | "REFUSED" | "UNREACHABLE", why: string): BatonError {
    return new BatonError(code, `Cannot write to the Kafka topic "${this.#options.topic}": ${why}`);
  }
}

/** Returns true if an error means that the connection was lost. A new connection may then succeed. */
function isConnectionLost(error: unknown): boolean {
  return error instanceof BatonError && error.code === "CONNECTION_LOST";
}

function partitionOf(key: string, partitions: number): number {
  return crc32c(new TextEncoder().encode(key)) % partitions;
}

interface BrokersOptions extends KafkaBrokerOptions {
  /** The brokers to try first. */
  readonly addresses: readonly Address[];
  readonly clock: Clock;
}

const attemptMs = 5000;

/** Opens and keeps connections to brokers: to a particular broker, or to any broker that responds. */
class Brokers {
  readonly #options: BrokersOptions;
  readonly #open = new Map<string, KafkaBrokerConnection>();

  constructor(options: BrokersOptions) {
    this.#options = options;
  }

  get addressNames(): string {
    return this.#options.addresses.map(formatAddress).join(", ");
  }

  /**
   * Returns the connection to this address. Rejects with UNREACHABLE, REFUSED, or the signal's reason.
   */
  async connectionTo(address: Address, signal: AbortSignal): Promise<KafkaBrokerConnection> {
    const name = formatAddress(address);
    const known = this.#open.get(name);
    if (known !== undefined && !known.isClosed) return known;
    const { clock } = this.#options;
    const reason = () => new BatonError("UNREACHABLE", `${name}: no response for ${attemptMs / 1000} s`);
    using deadline = deadlineAfter(clock, attemptMs, { signal, reason });
    const broker = await KafkaBrokerConnection.open(address, this.#options, deadline.signal);
    this.#open.set(name, broker);
    return broker;
  }

  /**
   * Returns an open connection. If there is none, connects to the first broker that responds. Rejects with UNREACHABLE
   * if no broker responds.
   */
  async anyConnection(signal: AbortSignal): Promise<KafkaBrokerConnection> {
    for (const broker of this.#open.values()) if (!broker.isClosed) return broker;
    const failures: string[] = [];
    for (const address of this.#options.addresses) {
      try {
        return await this.connectionTo(address, signal);
      } catch (error) {
        throwIfAborted(signal);
        if (error instanceof BatonError && error.code === "REFUSED") throw error;
        failures.push(errorMessage(error));
      }
    }
    throw new BatonError("UNREACHABLE", `No Kafka broker can be reached: ${failures.join("; ")}`);
  }

  close(): void {
    for (const broker of this.#open.values()) broker.close();
    this.#open.clear();
  }
}

/** A topic's metadata, with the leader of each partition. */
interface KafkaTopicMetadata {
  /**
   * The address of each partition's leader, by partition number; null for a partition without a leader. Empty if the
   * topic does not exist yet.
   */
  readonly leaders: readonly (Address | null)[];
  /** The broker that creates topics. */
  readonly controller: Address | null;
  /** The reason why the broker does not know the leaders now, if that is temporary; otherwise null. */
  readonly obstacle: string | null;
}

/** The settings of a new topic; -1 means the broker's default. */
interface KafkaTopicShape {
  readonly partitions: number;
  readonly replication: number;
}

/** Fetches the metadata. Rejects with REFUSED, or with CONFIG for an invalid name. */
async function describeTopic(
  broker: KafkaBrokerConnection,
  topic: string,
  signal: AbortSignal,
): Promise<KafkaTopicMetadata> {
  // Requests the metadata of all topics from brokers before 0.11, because they create every topic that a request names.
  const { brokers, topics, controller } = broker.supports(kafkaMetadataRequest)
    ? await broker.request(kafkaMetadataRequest, { topics: [topic], makesTopics: false }, signal)
    : await broker.request(oldKafkaMetadataRequest, { topics: null }, signal);
  const addresses = new Map(
    brokers?.map(({ nodeId, host, port }): [number, Address] => [nodeId, { kind: "tcp", host: host ?? "", port }]),
  );
  const found = topics?.find(({ name }) => name === topic);
  const { error = kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION, partitions = null } = found ?? {};
  if (error !== 0 && !isRetriableKafkaError(error)) throw topicError(topic, error, null);
  const leaders: (Address | null)[] = [];
  for (const { index, leader } of partitions ?? []) leaders[index] = addresses.get(leader) ?? null;
  return {
    leaders: Array.from(leaders, (leader) => leader ?? null),
    controller: addresses.get(controller) ?? null,
    obstacle: error === 0 || error === kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION ? null : kafkaErrorName(error),
  };
}

/**
 * Creates the topic, unless another client has created it already. Returns null for a success. If the next attempt may
 * succeed, returns the reason of the failure. Rejects with REFUSED or CONFIG.
 */
async function createTopic(
  broker: KafkaBrokerConnection,
  topic: string,
  { partitions, replication }: KafkaTopicShape,
  signal: AbortSignal,
): Promise<string | null> {
  if (!broker.supports(kafkaCreateTopicsRequest)) {
    await createTopicByMetadata(broker, topic, signal);
    return null;
  }
  const made = { name: topic, partitions, replication, assignments: [], configs: [] };
  const { topics } = await broker.request(
    kafkaCreateTopicsRequest,
    { topics: [made], timeoutMs: 10_000, validateOnly: false },
    signal,
  );
  const { error, message } = topics?.[0] ?? { error: 0, message: null };
  if (error === 0 || error === kafkaErrors.TOPIC_ALREADY_EXISTS) return null;
  if (!isRetriableKafkaError(error)) throw topicError(topic, error, message);
  return kafkaErrorName(error);
}

/**
 * Creates a topic on brokers without CreateTopics, by naming the topic in a metadata request. This works if
 * auto.create.topics.enable is set.
 */
async function createTopicByMetadata(broker: KafkaBrokerConnection, topic: string, signal: AbortSignal): Promise<void> {
  if (broker.supports(kafkaMetadataRequest)) {
    await broker.request(kafkaMetadataRequest, { topics: [topic], makesTopics: true }, signal);
  } else await broker.request(oldKafkaMetadataRequest, { topics: [topic] }, signal);
}

function topicError(topic: string, error: number, message: string | null): BatonError {
  const code = isKafkaAccessDeniedError(error) ? "REFUSED" : "CONFIG";
  const more = message === null ? "" : `: ${message}`;
  return new BatonError(code, `The Kafka topic "${topic}" cannot be used: ${kafkaErrorName(error)}${more}`);
}
