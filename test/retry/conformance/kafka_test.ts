/** The producer against librdkafka's broker, read back by librdkafka's consumer. */
import { expect, test } from "bun:test";
import { KafkaProducer } from "../../../src/protocols/kafka/kafka_producer.ts";
import { dial } from "../../../src/base/sockets/dial.ts";
import { parseAddress } from "../../../src/base/sockets/parse_address.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { failureCode } from "../../support/failure_code.ts";
import { MockKafka } from "../../support/kcat.ts";
import { describeWithPeer } from "../../support/peers.ts";

const never = new AbortController().signal;

function producerOf(address: string, topic: string, makes: { partitions: number; replication: number } | null) {
  const parsed = parseAddress(address);
  if (parsed === null) throw new Error(address);
  return new KafkaProducer({
    addresses: [parsed],
    topic,
    createAs: makes,
    clientId: "test",
    dial,
    tls: null,
    credentials: null,
    clock: systemClock(),
    timeoutMs: 10_000,
  });
}

describeWithPeer("kcat", "Kafka's protocol with librdkafka", () => {
  test("a consumer that is not ours reads keys, bodies and headers as they were sent, each once", async () => {
    await using kafka = await MockKafka.start();
    const producer = producerOf(kafka.address, "Dead", { partitions: -1, replication: -1 });
    const bodies = ["", "plain", 'Umlaut ü, newline \n, quote "', "x".repeat(300_000)];
    for (const [at, body] of bodies.entries()) {
      const value = new TextEncoder().encode(body);
      await producer.send({
        key: `id-${at}`,
        value,
        headers: [["n", `${at}`], ["größe", "ü".repeat(at)]],
        timestampMs: at,
      }, never);
    }
    producer.close();
    const read = (await kafka.read("Dead")).sort((a, b) => (a.key < b.key ? -1 : 1));
    // kcat shows no body as none.
    expect(read.map(({ payload }) => payload ?? "")).toEqual(bodies);
    expect(read.map(({ key }) => key)).toEqual(bodies.map((_, at) => `id-${at}`));
    expect(read.map(({ headers }) => headers)).toEqual(bodies.map((_, at) => ({ n: `${at}`, größe: "ü".repeat(at) })));
  });

  test("each record goes to the broker that leads its partition, found through any of them", async () => {
    await using kafka = await MockKafka.start({ brokers: 3 });
    const producer = producerOf(kafka.address, "Spread", { partitions: -1, replication: -1 });
    const keys = Array.from({ length: 40 }, (_, at) => `id-${at}`);
    for (const key of keys) await producer.send({ key, value: new Uint8Array(1), headers: [], timestampMs: 1 }, never);
    producer.close();
    const read = await kafka.read("Spread");
    expect(new Set(read.map(({ key }) => key))).toEqual(new Set(keys));
    expect([read.length, new Set(read.map(({ partition }) => partition)).size]).toEqual([40, 4]);
  });

  test("a topic that is missing is not made by looking for it", async () => {
    await using kafka = await MockKafka.start();
    for (let round = 0; round < 2; round++) {
      const producer = producerOf(kafka.address, "Nowhere", null);
      expect(await failureCode(producer.check(never))).toBe("CONFIG");
      producer.close();
    }
  });
});
