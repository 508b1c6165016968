/** The producer against librdkafka's broker, read back by librdkafka's consumer. */
import { expect, test } from "bun:test";
import { KafkaProducer } from "../../src/clients/kafka/kafka_producer.ts";
import { dial } from "../../src/sockets/dial.ts";
import { parseAddress } from "../../src/sockets/parse_address.ts";
import { systemClock } from "../../src/support/clock.ts";
import { failureCode } from "../support/failure_code.ts";
import { MockKafka } from "../support/kcat.ts";
import { describeWithPeer } from "../support/peers.ts";

const never = new AbortController().signal;

function producerOf(address: string, topic: string, makes: { partitions: number; replication: number } | null) {
  const parsed = parseAddress(address);
  if (parsed === null) throw new Error(address);
  return new KafkaProducer({
    addresses: [parsed],
    topic,
    makes,
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
    const read = kafka.read("Dead").sort((a, b) => (a.key < b.key ? -1 : 1));
    // kcat shows no body as none.
    expect(read.map(({ payload }) => payload ?? "")).toEqual(bodies);
    expect(read.map(({ key }) => key)).toEqual(bodies.map((_, at) => `id-${at}`));
    expect(read.map(({ headers }) => headers)).toEqual(bodies.map((_, at) => ({ n: `${at}`, größe: "ü".repeat(at) })));
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
