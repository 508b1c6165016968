/** How to authenticate at a Kafka broker. */
export const kafkaSaslMechanisms = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] as const;

export interface KafkaCredentials {
  /** PLAIN (RFC 4616) sends the password to the broker. */
  readonly mechanism: (typeof kafkaSaslMechanisms)[number];
  readonly user: string;
  readonly password: string;
}
