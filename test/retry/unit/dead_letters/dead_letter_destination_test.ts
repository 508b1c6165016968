import { describe, expect, test } from "bun:test";
import { parseKafkaDestination } from "../../../../src/retry/dead_letters/dead_letter_destination.ts";

describe("a Kafka topic as it is written", () => {
  test("has brokers, a topic, and what is said behind it", () => {
    expect(parseKafkaDestination("kafka://a,b:9093,[::1]:1/Some.Topic-1_x")).toEqual({
      brokers: [
        { kind: "tcp", host: "a", port: 9092 },
        { kind: "tcp", host: "b", port: 9093 },
        { kind: "tcp", host: "::1", port: 1 },
      ],
      topic: "Some.Topic-1_x",
      create: null,
      tls: null,
      login: null,
    });
    expect(parseKafkaDestination("kafka://a/T?create=yes")).toMatchObject({
      create: { partitions: -1, replication: -1 },
    });
    expect(parseKafkaDestination("kafka://a/T?create=yes&partitions=3&replication=2")).toMatchObject({
      create: { partitions: 3, replication: 2 },
    });
    expect(parseKafkaDestination("kafka://a/T?tls=yes")).toMatchObject({ tls: {} });
    expect(parseKafkaDestination("kafka://a/T?ca=/etc/ca.pem&user=me&password-file=%2Fetc%2Fa%20b")).toMatchObject({
      tls: { ca: "/etc/ca.pem" },
      login: { mechanism: "PLAIN", user: "me", passwordFile: "/etc/a b" },
    });
    const scram = "kafka://a/T?user=me&password-file=x&mechanism=scram-sha-512";
    expect(parseKafkaDestination(scram)).toMatchObject({ login: { mechanism: "SCRAM-SHA-512" } });
  });

  const wrong: readonly [written: string, says: string][] = [
    ["kafka://broker", '"" is not a valid topic name'],
    ["kafka://broker/..", '".." is not a valid topic name'],
    ["kafka://broker/a/b", '"a/b" is not a valid topic name'],
    [`kafka://broker/${"x".repeat(250)}`, "is not a valid topic name"],
    ["kafka:///Dead", '"" is not a broker address'],
    ["kafka://a,,b/Dead", '"" is not a broker address'],
    ["kafka://broker:99999/Dead", '"broker:99999" is not a broker address'],
    ["kafka://me:secret@broker/Dead", "visible to all users"],
    ["kafka://broker/Dead?acks=1", 'unknown option "acks"'],
    ["kafka://broker/Dead?create=maybe", "create=maybe is not yes or no"],
    ["kafka://broker/Dead?partitions=3", "need create=yes"],
    ["kafka://broker/Dead?create=yes&partitions=0", "partitions=0 is not a number"],
    ["kafka://broker/Dead?tls=no&ca=x", "ca, cert and key need tls=yes"],
    ["kafka://broker/Dead?user=me", "user and password-file need each other"],
    [
      "kafka://broker/Dead?user=me&password-file=x&mechanism=gssapi",
      "mechanism=gssapi is unknown; known are PLAIN, SCRAM-SHA-256",
    ],
    ["kafka://broker/Dead?mechanism=plain", "mechanism needs user"],
    ["kafka://broker/Dead?ca=", "ca is empty"],
  ];
  for (const [written, says] of wrong) {
    test(`that is wrong says why: ${says}`, () => expect(() => parseKafkaDestination(written)).toThrow(says));
  }
});
