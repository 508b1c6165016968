/** The error codes that a Kafka producer may get. Source: Kafka protocol guide, "Error Codes". */

export const kafkaErrors = {
  NONE: 0,
  CORRUPT_MESSAGE: 2,
  UNKNOWN_TOPIC_OR_PARTITION: 3,
  LEADER_NOT_AVAILABLE: 5,
  NOT_LEADER_OR_FOLLOWER: 6,
  REQUEST_TIMED_OUT: 7,
  REPLICA_NOT_AVAILABLE: 9,
  MESSAGE_TOO_LARGE: 10,
  NETWORK_EXCEPTION: 13,
  COORDINATOR_LOAD_IN_PROGRESS: 14,
  COORDINATOR_NOT_AVAILABLE: 15,
  NOT_COORDINATOR: 16,
  INVALID_TOPIC: 17,
  RECORD_LIST_TOO_LARGE: 18,
  NOT_ENOUGH_REPLICAS: 19,
  NOT_ENOUGH_REPLICAS_AFTER_APPEND: 20,
  TOPIC_AUTHORIZATION_FAILED: 29,
  CLUSTER_AUTHORIZATION_FAILED: 31,
  UNSUPPORTED_SASL_MECHANISM: 33,
  UNSUPPORTED_VERSION: 35,
  TOPIC_ALREADY_EXISTS: 36,
  INVALID_PARTITIONS: 37,
  INVALID_REPLICATION_FACTOR: 38,
  NOT_CONTROLLER: 41,
  POLICY_VIOLATION: 44,
  OUT_OF_ORDER_SEQUENCE: 45,
  DUPLICATE_SEQUENCE: 46,
  INVALID_PRODUCER_EPOCH: 47,
  CONCURRENT_TRANSACTIONS: 51,
  KAFKA_STORAGE_ERROR: 56,
  SASL_AUTHENTICATION_FAILED: 58,
  UNKNOWN_PRODUCER_ID: 59,
  LISTENER_NOT_FOUND: 72,
  FENCED_LEADER_EPOCH: 74,
  UNKNOWN_LEADER_EPOCH: 75,
  INVALID_RECORD: 87,
  THROTTLING_QUOTA_EXCEEDED: 89,
  PRODUCER_FENCED: 90,
} as const;

type KafkaErrorName = keyof typeof kafkaErrors;

const names = new Map<number, string>(Object.entries(kafkaErrors).map(([name, code]) => [code, name]));

/** Returns the protocol guide's name of an error code; for an unknown code, "error" and the number. */
export function kafkaErrorName(code: number): string {
  return names.get(code) ?? `error ${code}`;
}

function isOneOf(...members: KafkaErrorName[]): (code: number) => boolean {
  const codes = new Set<number>(members.map((name) => kafkaErrors[name]));
  return (code) => codes.has(code);
}

/**
 * Returns true if the same request may succeed a moment later, perhaps at another broker: the guide's column
 * "Retriable".
 */
export const isRetriableKafkaError = isOneOf(
  "CORRUPT_MESSAGE",
  "UNKNOWN_TOPIC_OR_PARTITION",
  "LEADER_NOT_AVAILABLE",
  "NOT_LEADER_OR_FOLLOWER",
  "REQUEST_TIMED_OUT",
  "REPLICA_NOT_AVAILABLE",
  "NETWORK_EXCEPTION",
  "COORDINATOR_LOAD_IN_PROGRESS",
  "COORDINATOR_NOT_AVAILABLE",
  "NOT_COORDINATOR",
  "NOT_ENOUGH_REPLICAS",
  "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
  "NOT_CONTROLLER",
  "CONCURRENT_TRANSACTIONS",
  "KAFKA_STORAGE_ERROR",
  "LISTENER_NOT_FOUND",
  "FENCED_LEADER_EPOCH",
  "UNKNOWN_LEADER_EPOCH",
  "THROTTLING_QUOTA_EXCEEDED",
);

/** Returns true if the broker does not know the producer's ID or sequence. The producer then needs a new ID. */
export const isStaleKafkaProducerError = isOneOf(
  "OUT_OF_ORDER_SEQUENCE",
  "UNKNOWN_PRODUCER_ID",
  "INVALID_PRODUCER_EPOCH",
  "PRODUCER_FENCED",
);

/** Returns true if the broker will never accept this record, but may accept other records. */
export const isKafkaRecordRefusedError = isOneOf(
  "MESSAGE_TOO_LARGE",
  "RECORD_LIST_TOO_LARGE",
  "INVALID_RECORD",
  "POLICY_VIOLATION",
);

export const isKafkaAccessDeniedError = isOneOf(
  "TOPIC_AUTHORIZATION_FAILED",
  "CLUSTER_AUTHORIZATION_FAILED",
  "SASL_AUTHENTICATION_FAILED",
  "UNSUPPORTED_SASL_MECHANISM",
);
