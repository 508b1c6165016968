import { describe, expect, test } from "bun:test";
import { KafkaProducer, type KafkaProducerOptions } from "../../../src/protocols/kafka/kafka_producer.ts";
import { dial } from "../../../src/base/sockets/dial.ts";
import { listen } from "../../../src/base/sockets/listen.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { kafkaErrors } from "../../../src/protocols/kafka/kafka_error_codes.ts";
import { failureCode } from "../../support/failure_code.ts";
import { FakeKafkaBroker } from "../../support/fake_kafka_broker.ts";

const never = new AbortController().signal;

function producerOf(broker: FakeKafkaBroker, options: Partial<KafkaProducerOptions> = {}) {
  const producer = new KafkaProducer({
    addresses: [broker.address],
    topic: "Dead",
    createAs: null,
    clientId: "test",
    dial,
    tls: null,
    credentials: null,
    clock: systemClock(),
    timeoutMs: 3000,
    ...options,
  });
  return { producer, [Symbol.dispose]: () => producer.close() };
}

function record(key: string) {
  return { key, value: new Uint8Array([1]), headers: [], timestampMs: 1 };
}

describe("a Kafka producer", () => {
  test("numbers its records, so that the broker can tell a repetition", async () => {
    await using broker = await FakeKafkaBroker.start();
    using it = producerOf(broker);
    for (const key of ["a", "b", "c"]) await it.producer.send(record(key), never);
    expect(broker.produced.map(({ producerId, sequence }) => [producerId, sequence])).toEqual([[1n, 0], [1n, 1], [
      1n,
      2,
    ]]);
  });

  test("sends a record whose answer was lost again under the same number, and takes DUPLICATE for there", async () => {
    await using broker = await FakeKafkaBroker.start();
    using it = producerOf(broker);
    const answers = ["close", kafkaErrors.DUPLICATE_SEQUENCE, 0] as const;
    broker.onProduce = () => answers[broker.produced.length - 1] ?? 0;
    await it.producer.send(record("a"), never);
    await it.producer.send(record("b"), never);
    expect(broker.produced.map(({ producerId, sequence }) => [producerId, sequence])).toEqual([[1n, 0], [1n, 0], [
      1n,
      1,
    ]]);
  });

  test("takes a new number when another record goes before the one in doubt", async () => {
    await using broker = await FakeKafkaBroker.start();
    using it = producerOf(broker, { timeoutMs: 300 });
    broker.onProduce = () => (broker.produced.length === 1 ? "silent" : 0);
    expect(await failureCode(it.producer.send(record("a"), never))).toBe("CONNECTION_LOST");
    await it.producer.send(record("b"), never);
    await it.producer.send(record("a"), never);
    expect(broker.produced.map(({ producerId, sequence }) => [producerId, sequence])).toEqual([[1n, 0], [2n, 0], [
      2n,
      1,
    ]]);
  });

  test("finds the new leader of a partition, and gets a new producer ID when its own is unknown", async () => {
    await using broker = await FakeKafkaBroker.start();
    using it = producerOf(broker);
    const answers = [kafkaErrors.NOT_LEADER_OR_FOLLOWER, 0, kafkaErrors.UNKNOWN_PRODUCER_ID, 0];
    broker.onProduce = () => answers[broker.produced.length - 1] ?? 0;
    await it.producer.send(record("a"), never);
    await it.producer.send(record("b"), never);
    expect(broker.produced.map(({ producerId, sequence }) => [producerId, sequence])).toEqual(
      [[1n, 0], [1n, 0], [1n, 1], [2n, 0]],
    );
    expect(broker.asked.filter((name) => name === "Metadata").length).toBe(2);
  });

  test("says which records are never taken, and goes on with others", async () => {
    await using broker = await FakeKafkaBroker.start();
    using it = producerOf(broker);
    broker.onProduce = () => (broker.produced.length === 1 ? kafkaErrors.MESSAGE_TOO_LARGE : 0);
    expect(await failureCode(it.producer.send(record("a"), never))).toBe("BAD_DATA");
    await it.producer.send(record("b"), never);
    expect(broker.produced.map(({ sequence }) => sequence)).toEqual([0, 0]);
  });

  test("gives a record up at which the connection ends again and again, and sends others", async () => {
    await using broker = await FakeKafkaBroker.start();
    using it = producerOf(broker, { timeoutMs: 30_000 });
    broker.onProduce = ({ bytes }) => (bytes > 1000 ? "close" : 0);
    const failure = it.producer.send({ ...record("a"), value: new Uint8Array(2000) }, never);
    expect(await failureCode(failure)).toBe("CONNECTION_LOST");
    expect(broker.produced.length).toBe(3);
    await it.producer.send(record("b"), never);
  });

  test("waits for replicas up to its time, and says what was in the way", async () => {
    await using broker = await FakeKafkaBroker.start();
    using it = producerOf(broker, { timeoutMs: 400 });
    broker.onProduce = () => kafkaErrors.NOT_ENOUGH_REPLICAS;
    const failure = it.producer.send(record("a"), never);
    expect(await failure.catch(String)).toContain("NOT_ENOUGH_REPLICAS");
    expect(broker.produced.length).toBeGreaterThan(1);
    expect(new Set(broker.produced.map(({ sequence }) => sequence))).toEqual(new Set([0]));
  });

  test("says what was in the way, also when the last try has no answer", async () => {
    await using broker = await FakeKafkaBroker.start();
    using it = producerOf(broker, { timeoutMs: 600 });
    broker.onProduce = () => broker.produced.length > 1 ? "silent" : kafkaErrors.NOT_ENOUGH_REPLICAS;
    expect(await it.producer.send(record("a"), never).catch(String)).toContain("NOT_ENOUGH_REPLICAS");
    expect(broker.produced.length).toBe(2);
  });

  test("repeats its requests for the producer ID and the topic while their answers may still change", async () => {
    const passing = [14, 15, 16, 7, 13, 41];
    await using broker = await FakeKafkaBroker.start();
    using it = producerOf(broker, { timeoutMs: 20_000 });
    broker.errors.producer.push(...passing);
    broker.errors.view.push(kafkaErrors.LEADER_NOT_AVAILABLE, kafkaErrors.REQUEST_TIMED_OUT);
    await it.producer.send(record("a"), never);
    expect([broker.produced.length, broker.asked.filter((name) => name === "InitProducerId").length]).toEqual([1, 7]);

    using made = producerOf(broker, { topic: "New", createAs: { partitions: 1, replication: 1 }, timeoutMs: 20_000 });
    broker.errors.create.push(kafkaErrors.NOT_CONTROLLER, kafkaErrors.THROTTLING_QUOTA_EXCEEDED);
    await made.producer.check(never);
    expect(broker.topics.get("New")).toBe(1);
  });

  test("asks again up to its time, and at once gives up what does not change by itself", async () => {
    await using broker = await FakeKafkaBroker.start();
    using it = producerOf(broker, { timeoutMs: 300 });
    broker.errors.producer.push(...Array(100).fill(kafkaErrors.COORDINATOR_NOT_AVAILABLE));
    expect(await it.producer.send(record("a"), never).catch(String)).toContain("COORDINATOR_NOT_AVAILABLE");
    expect(broker.produced.length).toBe(0);
    broker.errors.producer.length = 0;
    broker.errors.view.push(...Array(100).fill(kafkaErrors.LEADER_NOT_AVAILABLE));
    using other = producerOf(broker, { timeoutMs: 300 });
    expect(await failureCode(other.producer.check(never))).toBe("UNREACHABLE");
    broker.errors.view.length = 0;
    broker.errors.producer.push(kafkaErrors.UNSUPPORTED_VERSION);
    using refused = producerOf(broker, { timeoutMs: 30_000 });
    expect(await failureCode(refused.producer.send(record("a"), never))).toBe("UNREACHABLE");
  });

  test("makes a topic that is missing only when it was told to", async () => {
    await using broker = await FakeKafkaBroker.start({ topics: {} });
    using strict = producerOf(broker);
    expect(await failureCode(strict.producer.check(never))).toBe("CONFIG");
    expect(broker.topics.size).toBe(0);
    using made = producerOf(broker, { createAs: { partitions: 3, replication: 2 } });
    await made.producer.send(record("a"), never);
    expect(broker.topics.get("Dead")).toBe(3);
    broker.topics.clear();
    broker.makesTopics = false;
    using slow = producerOf(broker, { createAs: { partitions: 3, replication: 2 }, timeoutMs: 300 });
    expect(await slow.producer.check(never).catch(String)).toContain("yet; its creation was requested");
    broker.makesTopics = true;
    await slow.producer.send(record("b"), never);
  });

  test("refusals have a code of their own: of the topic, of the password", async () => {
    await using broker = await FakeKafkaBroker.start();
    broker.topicError = kafkaErrors.TOPIC_AUTHORIZATION_FAILED;
    using plain = producerOf(broker);
    expect(await failureCode(plain.producer.check(never))).toBe("REFUSED");
    broker.topicError = 0;
    using noPlain = producerOf(broker, { credentials: { mechanism: "PLAIN", user: "me", password: "right" } });
    expect(await failureCode(noPlain.producer.check(never))).toBe("REFUSED");
    broker.password = "right";
    for (const mechanism of ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] as const) {
      using wrong = producerOf(broker, { credentials: { mechanism, user: "me", password: "wrong" } });
      expect([mechanism, await failureCode(wrong.producer.check(never))]).toEqual([mechanism, "REFUSED"]);
      using right = producerOf(broker, { credentials: { mechanism, user: "me", password: "right" } });
      await right.producer.send(record("a"), never);
    }
  });

  test("says so when who answers speaks something else", async () => {
    const listener = await listen({ kind: "tcp", host: "127.0.0.1", port: 0 }, (connection) => ({
      onData: () => connection.write(new TextEncoder().encode("HTTP/1.1 400 Bad Request\r\n\r\n")),
      onClosed: () => {},
    }));
    await using broker = await FakeKafkaBroker.start();
    using it = producerOf(broker, { addresses: [listener.address] });
    expect(await it.producer.check(never).catch(String)).toContain("does not use Kafka's protocol, or only over TLS");
    // Another one that does is found behind it.
    using both = producerOf(broker, { addresses: [listener.address, broker.address] });
    await both.producer.send(record("a"), never);
    await listener.close();
  });

  test("ends with the signal, and says when nobody is there", async () => {
    await using broker = await FakeKafkaBroker.start();
    using it = producerOf(broker);
    broker.onProduce = () => "silent";
    const ending = new AbortController();
    const sending = it.producer.send(record("a"), ending.signal);
    const end = new Error("over");
    setTimeout(() => ending.abort(end), 20);
    expect(await sending.catch((error) => error)).toBe(end);
    const address = broker.address;
    await broker[Symbol.asyncDispose]();
    using alone = producerOf(broker, { addresses: [address] });
    expect(await failureCode(alone.producer.check(never))).toBe("UNREACHABLE");
  });
});
