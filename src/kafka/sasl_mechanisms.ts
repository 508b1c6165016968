/** The ways to prove to a Kafka broker who one is. */
export const saslMechanisms = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] as const;

export interface KafkaCredentials {
  /** PLAIN (RFC 4616) tells the broker the password. */
  readonly mechanism: (typeof saslMechanisms)[number];
  readonly user: string;
  readonly password: string;
}
