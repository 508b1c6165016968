import { describe, expect, test } from "bun:test";
import { crc32c, encodeKafkaRecordBatch, noKafkaProducerStamp } from "../../../../src/protocols/kafka/record_batch.ts";
import { encodeKafkaRequest, kafkaMetadataRequest } from "../../../../src/protocols/kafka/kafka_requests.ts";

describe("what Kafka's brokers are sent", () => {
  test("the checksum is the one of RFC 3720", () => {
    expect(crc32c(new TextEncoder().encode("123456789"))).toBe(0xe3069283);
    expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
    expect(crc32c(new Uint8Array(32).fill(0xff))).toBe(0x62a8ab43);
  });

  test("a batch has the record's length in two bytes where it takes two, and a checksum over what follows it", () => {
    const value = new Uint8Array(100).fill(0x61);
    const batch = encodeKafkaRecordBatch(
      { key: "k", value, headers: [["h", "é"]], timestampMs: 1 },
      noKafkaProducerStamp,
    );
    const bytes = batch.toHex();
    // Zigzag: 113 is e2 01, 100 is c8 01.
    expect(bytes.slice(2 * 61)).toBe(`e201000000026bc801${"61".repeat(100)}02026804c3a9`);
    const view = new DataView(batch.buffer, batch.byteOffset, batch.byteLength);
    expect(view.getInt32(8)).toBe(batch.byteLength - 12);
    expect(view.getUint8(16)).toBe(2);
    expect(view.getUint32(17)).toBe(crc32c(batch.subarray(21)));
    expect(view.getBigInt64(43)).toBe(-1n);
    expect(view.getInt32(57)).toBe(1);
  });

  test("a request is a length, its header, and the body", () => {
    const frame = encodeKafkaRequest(kafkaMetadataRequest, { topics: ["t"], makesTopics: false }, {
      correlation: 7,
      clientId: "me",
    });
    expect(frame.toHex()).toBe("00000014" + "0003" + "0004" + "00000007" + "00026d65" + "00000001" + "000174" + "00");
  });
});
