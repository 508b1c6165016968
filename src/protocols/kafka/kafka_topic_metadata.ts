/** A topic's metadata, with the leader of each partition; creates the topic if configured. */
import { BatonError } from "../../base/errors.ts";
import type { Address } from "../../base/sockets/connection.ts";
import { isNotAllowed, isRetriable, kafkaErrorName, kafkaErrors } from "./kafka_error_codes.ts";
import { createTopics, metadata, oldMetadata } from "./kafka_requests.ts";
import type { BrokerConnection } from "./broker_connection.ts";

export interface KafkaTopicMetadata {
  /**
   * The address of each partition's leader by partition number; null: it has none now. Empty: the topic does not exist,
   * or not yet.
   */
  readonly leaders: readonly (Address | null)[];
  /** The broker that creates topics. */
  readonly controller: Address | null;
  /** Why there are no leaders now, if that is temporary; null: the topic exists, or it does not. */
  readonly obstacle: string | null;
}

/** The settings of a new topic; -1 uses the broker's default. */
export interface KafkaTopicShape {
  readonly partitions: number;
  readonly replication: number;
}

/** Fetches the metadata. Rejects with REFUSED, or with CONFIG for an invalid name. */
export async function describeTopic(
  broker: BrokerConnection,
  topic: string,
  signal: AbortSignal,
): Promise<KafkaTopicMetadata> {
  // Brokers before 0.11 create every topic that a request names: request all topics instead.
  const { brokers, topics, controller } = broker.supports(metadata)
    ? await broker.request(metadata, { topics: [topic], makesTopics: false }, signal)
    : await broker.request(oldMetadata, { topics: null }, signal);
  const addresses = new Map(
    brokers?.map(({ nodeId, host, port }): [number, Address] => [nodeId, { kind: "tcp", host: host ?? "", port }]),
  );
  const found = topics?.find(({ name }) => name === topic);
  const { error = kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION, partitions = null } = found ?? {};
  if (error !== 0 && !isRetriable(error)) throw topicError(topic, error, null);
  const leaders: (Address | null)[] = [];
  for (const { index, leader } of partitions ?? []) leaders[index] = addresses.get(leader) ?? null;
  return {
    leaders: Array.from(leaders, (leader) => leader ?? null),
    controller: addresses.get(controller) ?? null,
    obstacle: error === 0 || error === kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION ? null : kafkaErrorName(error),
  };
}

/**
 * Creates the topic. Succeeds if another client has created it meanwhile. Returns an obstacle that may be gone at the
 * next attempt, or null. Rejects with REFUSED or CONFIG.
 */
export async function createTopic(
  broker: BrokerConnection,
  topic: string,
  { partitions, replication }: KafkaTopicShape,
  signal: AbortSignal,
): Promise<string | null> {
  if (!broker.supports(createTopics)) {
    await createTopicByMetadata(broker, topic, signal);
    return null;
  }
  const made = { name: topic, partitions, replication, assignments: [], configs: [] };
  const { topics } = await broker.request(
    createTopics,
    { topics: [made], timeoutMs: 10_000, validateOnly: false },
    signal,
  );
  const { error, message } = topics?.[0] ?? { error: 0, message: null };
  if (error === 0 || error === kafkaErrors.TOPIC_ALREADY_EXISTS) return null;
  if (!isRetriable(error)) throw topicError(topic, error, message);
  return kafkaErrorName(error);
}

/**
 * Creates a topic on brokers without CreateTopics: they may create a topic that a metadata request names
 * (auto.create.topics.enable).
 */
async function createTopicByMetadata(broker: BrokerConnection, topic: string, signal: AbortSignal): Promise<void> {
  if (broker.supports(metadata)) await broker.request(metadata, { topics: [topic], makesTopics: true }, signal);
  else await broker.request(oldMetadata, { topics: [topic] }, signal);
}

function topicError(topic: string, error: number, message: string | null): BatonError {
  const code = isNotAllowed(error) ? "REFUSED" : "CONFIG";
  const more = message === null ? "" : `: ${message}`;
  return new BatonError(code, `The Kafka topic "${topic}" cannot be used: ${kafkaErrorName(error)}${more}`);
}
