/** What the cluster says of one topic: who leads each of its partitions. Asks a broker; makes the topic where that is wanted. */
import { BatonError } from "../errors.ts";
import type { Address } from "../sockets/connection.ts";
import { isNotAllowed, isRetriable, kafkaErrorName, kafkaErrors } from "../wire/kafka/kafka_error_codes.ts";
import { createTopics, metadata, oldMetadata } from "../wire/kafka/kafka_requests.ts";
import type { BrokerConnection } from "./broker_connection.ts";

export interface KafkaTopicMetadata {
  /** Address of each partition's leader, by its number; null: it has none now. None at all: the topic is not there, or not yet. */
  readonly leaders: readonly (Address | null)[];
  /** Who makes topics. */
  readonly controller: Address | null;
  /** Why there are no leaders to be had now, where that passes by itself; null: the topic is there, or it is not. */
  readonly obstacle: string | null;
}

/** How a topic that is not there is made; -1 leaves it to the broker. */
export interface KafkaTopicShape {
  readonly partitions: number;
  readonly replication: number;
}

/** Rejects with REFUSED, and CONFIG for a name that cannot be. */
export async function describeTopic(
  broker: BrokerConnection,
  topic: string,
  signal: AbortSignal,
): Promise<KafkaTopicMetadata> {
  // A broker of before 0.11 makes every topic it is asked about: it is asked about all there are.
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
 * Asks for it; that another one has made it meanwhile is as good. A text: what was in the way, and may not be the next time. Rejects
 * with REFUSED or CONFIG.
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

/** Brokers that cannot be asked to make a topic may make one that they are asked about (auto.create.topics.enable). */
async function createTopicByMetadata(broker: BrokerConnection, topic: string, signal: AbortSignal): Promise<void> {
  if (broker.supports(metadata)) await broker.request(metadata, { topics: [topic], makesTopics: true }, signal);
  else await broker.request(oldMetadata, { topics: [topic] }, signal);
}

function topicError(topic: string, error: number, message: string | null): BatonError {
  const code = isNotAllowed(error) ? "REFUSED" : "CONFIG";
  const more = message === null ? "" : `: ${message}`;
  return new BatonError(code, `The Kafka topic "${topic}" cannot be used: ${kafkaErrorName(error)}${more}`);
}
