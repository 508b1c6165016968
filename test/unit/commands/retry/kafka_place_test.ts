import { describe, expect, test } from "bun:test";
import { parseKafkaPlace } from "../../../../commands/retry/kafka_place.ts";

describe("a Kafka topic as it is written", () => {
  test("has brokers, a topic, and what is said behind it", () => {
    expect(parseKafkaPlace("kafka://a,b:9093,[::1]:1/Some.Topic-1_x")).toEqual({
      brokers: [
        { kind: "tcp", host: "a", port: 9092 },
        { kind: "tcp", host: "b", port: 9093 },
        { kind: "tcp", host: "::1", port: 1 },
      ],
      topic: "Some.Topic-1_x",
      makes: null,
      tls: null,
      login: null,
    });
    expect(parseKafkaPlace("kafka://a/T?create=yes")).toMatchObject({ makes: { partitions: -1, replication: -1 } });
    expect(parseKafkaPlace("kafka://a/T?create=yes&partitions=3&replication=2")).toMatchObject({
      makes: { partitions: 3, replication: 2 },
    });
    expect(parseKafkaPlace("kafka://a/T?tls=yes")).toMatchObject({ tls: {} });
    expect(parseKafkaPlace("kafka://a/T?ca=/etc/ca.pem&user=me&password-file=%2Fetc%2Fa%20b")).toMatchObject({
      tls: { ca: "/etc/ca.pem" },
      login: { mechanism: "PLAIN", user: "me", passwordFile: "/etc/a b" },
    });
    const scram = "kafka://a/T?user=me&password-file=x&mechanism=scram-sha-512";
    expect(parseKafkaPlace(scram)).toMatchObject({ login: { mechanism: "SCRAM-SHA-512" } });
  });

  const wrong: readonly [written: string, says: string][] = [
    ["kafka://broker", '"" cannot be a topic'],
    ["kafka://broker/..", '".." cannot be a topic'],
    ["kafka://broker/a/b", '"a/b" cannot be a topic'],
    [`kafka://broker/${"x".repeat(250)}`, "cannot be a topic"],
    ["kafka:///Dead", '"" is no broker'],
    ["kafka://a,,b/Dead", '"" is no broker'],
    ["kafka://broker:99999/Dead", '"broker:99999" is no broker'],
    ["kafka://me:secret@broker/Dead", "everybody can read argv"],
    ["kafka://broker/Dead?acks=1", 'there is no option "acks"'],
    ["kafka://broker/Dead?create=maybe", "create=maybe is not yes or no"],
    ["kafka://broker/Dead?partitions=3", "for a topic that is made, by create=yes"],
    ["kafka://broker/Dead?create=yes&partitions=0", "partitions=0 is not a number"],
    ["kafka://broker/Dead?tls=no&ca=x", "ca, cert and key are for tls=yes"],
    ["kafka://broker/Dead?user=me", "user and password-file go together"],
    [
      "kafka://broker/Dead?user=me&password-file=x&mechanism=gssapi",
      "mechanism=gssapi is none of PLAIN, SCRAM-SHA-256",
    ],
    ["kafka://broker/Dead?mechanism=plain", "mechanism is for a user"],
    ["kafka://broker/Dead?ca=", "ca is empty"],
  ];
  for (const [written, says] of wrong) {
    test(`that is wrong says why: ${says}`, () => expect(() => parseKafkaPlace(written)).toThrow(says));
  }
});
