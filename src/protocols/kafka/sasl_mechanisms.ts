/** How to authenticate at a Kafka broker. */
export const kafkaSaslMechanisms = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] as const;

export interface KafkaCredentials {
  /** The mechanism. PLAIN (RFC 4616) sends the password to the broker; the others do not. */
  readonly mechanism: (typeof kafkaSaslMechanisms)[number];
  readonly user: string;
  readonly password: string;
}
