import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { ByteReader } from "../../../../../src/base/wire/bytes.ts";
import {
  type AnyJuteCodec,
  juteBooleanCodec,
  juteBytesCodec,
  type JuteCodec,
  juteIntCodec,
  juteLongCodec,
  juteRecordCodec,
  juteStringCodec,
  juteVectorCodec,
} from "../../../../../src/base/wire/record_codec.ts";
import {
  multiOperations,
  multiRequestCodec,
  multiResponseCodec,
} from "../../../../../src/protocols/zookeeper/jute/multi_request.ts";
import { zooKeeperOperations } from "../../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import * as records from "../../../../../src/protocols/zookeeper/jute/zookeeper_records.ts";
import {
  connectRequestCodec,
  connectResponseCodec,
} from "../../../../../src/protocols/zookeeper/jute/session_frames.ts";
import { anyBytes, multiRequests, multiResults, valuesOf } from "../../../../support/jute_arbitrary.ts";
import { property } from "../../../../support/property.ts";
import { decode, encode, hex, unlessProtocolError } from "../../../../support/wire.ts";

interface Subject {
  readonly codec: JuteCodec<unknown>;
  readonly values: fc.Arbitrary<unknown>;
}
const subject = (codec: AnyJuteCodec, values = valuesOf(codec)): Subject => ({
  codec: codec as JuteCodec<unknown>,
  values,
});

const primitives = {
  int: juteIntCodec,
  long: juteLongCodec,
  boolean: juteBooleanCodec,
  ustring: juteStringCodec,
  buffer: juteBytesCodec,
  "vector<long>": juteVectorCodec(juteLongCodec),
};
const opening = { connectRequest: records.ConnectRequest, connectResponse: records.ConnectResponse };
const withReadOnly = (codec: AnyJuteCodec) =>
  fc.tuple(valuesOf(codec), fc.boolean()).map(([value, readOnly]) => ({ ...value as object, readOnly }));

const subjects: Record<string, Subject> = {
  ...Object.fromEntries(Object.entries({ ...primitives, ...records }).map(([name, codec]) => [name, subject(codec)])),
  connectRequest: subject(connectRequestCodec, withReadOnly(opening.connectRequest)),
  connectResponse: subject(connectResponseCodec, withReadOnly(opening.connectResponse)),
  multiRequest: subject(multiRequestCodec, multiRequests),
  multiResponse: subject(multiResponseCodec, multiResults),
};

test("every record of every operation is among those that are tested", () => {
  const tested = new Set(Object.values(subjects).map(({ codec }) => codec as AnyJuteCodec));
  for (
    const { request, response } of [...Object.values(zooKeeperOperations), ...Object.values(multiOperations)] as const
  ) {
    for (const codec of [request, response] as AnyJuteCodec[]) {
      if (codec.bytesMin > 0) expect(tested.has(codec)).toBe(true);
    }
  }
});

describe.each(Object.keys(subjects))("%s", (name) => {
  const { codec, values } = subjects[name] as Subject;

  property("is read as it was written", values, (value) => {
    const bytes = encode(codec, value);
    expect(bytes.byteLength).toBeGreaterThanOrEqual(codec.bytesMin);
    expect(decode(codec, bytes)).toEqual(value);
  }, 100);

  property("is never read out of fewer bytes", values, (value) => {
    const bytes = encode(codec, value);
    for (let length = 0; length < bytes.byteLength; length++) {
      const early = unlessProtocolError(() => decode(codec, bytes.subarray(0, length)));
      // The one byte that may be missing: clients before 3.4 do not send it.
      if (early !== null) {
        expect({ early, length }).toEqual({
          early: { ...value as object, readOnly: undefined },
          length: bytes.byteLength - 1,
        });
      }
    }
  }, 20);

  property("answers garbage with a protocol error, or a value that is written the same way", anyBytes, (bytes) => {
    const value = unlessProtocolError(() => decode(codec, bytes));
    if (value !== null) expect(decode(codec, encode(codec, value))).toEqual(value);
  }, 100);

  property(
    "answers damage with a protocol error or another value",
    fc.tuple(values, fc.nat(), fc.nat(255)),
    ([value, at, byte]) => {
      const bytes = encode(codec, value);
      if (bytes.byteLength > 0) bytes[at % bytes.byteLength] = byte;
      unlessProtocolError(() => decode(codec, bytes));
    },
    100,
  );
});

describe("a length that lies", () => {
  const lies = ["7fffffff", "80000000", "fffffffe", "00000100"];

  test.each(lies)("%s is refused before anything is read or allocated", (length) => {
    let elements = 0;
    const element: JuteCodec<number> = { bytesMin: 1, read: (reader) => (elements++, reader.u8()), write: () => {} };
    for (const codec of [juteVectorCodec(element), juteBytesCodec, juteStringCodec] as JuteCodec<unknown>[]) {
      expect(unlessProtocolError(() => codec.read(new ByteReader(hex(`${length} 0102`))))).toBeNull();
    }
    expect(elements).toBe(0);
  });

  test("elements of no size do not get round it", () => {
    for (const element of [juteRecordCodec({}), juteStringCodec] as JuteCodec<unknown>[]) {
      expect(() => decode(juteVectorCodec(element), hex("7fffffff 00000000")))
        .toThrow("Cannot read a vector of 2147483647 elements: 4 bytes are left");
    }
  });
});

test("a buffer that was read outlives the frame it came in", () => {
  const bytes = hex("00000002 0102");
  const value = decode(juteBytesCodec, bytes);
  bytes.fill(9);
  expect(value).toEqual(hex("0102"));
});

describe("bytes as they stand in a capture", () => {
  const password = "000102030405060708090a0b0c0d0e0f";

  test("a ConnectRequest has 45 bytes, and 44 from clients before 3.4", () => {
    const request = {
      protocolVersion: 0,
      lastZxidSeen: 0x123n,
      timeOut: 10_000,
      sessionId: 0x1000_0000_0000_0001n,
      passwd: hex(password),
      readOnly: false,
    };
    const bytes = hex(`00000000 0000000000000123 00002710 1000000000000001 00000010 ${password} 00`);
    expect(bytes.byteLength).toBe(45);
    expect(encode(connectRequestCodec, request)).toEqual(bytes);
    expect(decode(connectRequestCodec, bytes)).toEqual(request);
    const old = { ...request, readOnly: undefined };
    expect(decode(connectRequestCodec, bytes.subarray(0, 44))).toEqual(old);
    expect(encode(connectRequestCodec, old)).toEqual(bytes.subarray(0, 44));
  });

  test("a ConnectResponse has 37 bytes", () => {
    const response = { protocolVersion: 0, timeOut: 4000, sessionId: -2n, passwd: hex(password), readOnly: true };
    const bytes = hex(`00000000 00000fa0 fffffffffffffffe 00000010 ${password} 01`);
    expect(bytes.byteLength).toBe(37);
    expect(encode(connectResponseCodec, response)).toEqual(bytes);
  });

  test("a create with one ACL entry", () => {
    const request = {
      path: "/a",
      data: hex("ff"),
      acl: [{ perms: 31, id: { scheme: "world", id: "anyone" } }],
      flags: 3,
    };
    expect(encode(records.CreateRequest, request)).toEqual(
      hex("00000002 2f61 00000001 ff 00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00000003"),
    );
  });

  test("null is not empty", () => {
    expect(encode(juteBytesCodec, null)).toEqual(hex("ffffffff"));
    expect(encode(juteBytesCodec, new Uint8Array(0))).toEqual(hex("00000000"));
    expect(encode(juteVectorCodec(juteIntCodec), null)).toEqual(hex("ffffffff"));
    expect(decode(juteStringCodec, hex("ffffffff"))).toBe("");
  });

  test("a multi of a check, a delete and the end", () => {
    const bytes = hex(`
      0000000d 00 ffffffff  00000002 2f61 00000007
      00000002 00 ffffffff  00000002 2f62 ffffffff
      ffffffff 01 ffffffff`);
    expect(encode(multiRequestCodec, [
      { type: "check", path: "/a", version: 7 },
      { type: "delete", path: "/b", version: -1 },
    ])).toEqual(bytes);
  });

  test("the results of a multi that failed at its second operation", () => {
    const bytes = hex(`
      ffffffff 00 00000000  00000000
      ffffffff 00 ffffff99  ffffff99
      ffffffff 00 fffffffe  fffffffe
      ffffffff 01 ffffffff`);
    expect(decode(multiResponseCodec, bytes)).toEqual([
      { type: "error", err: 0 },
      { type: "error", err: -103 },
      { type: "error", err: -2 },
    ]);
  });

  test("what is not allowed in a multi is refused", () => {
    expect(() => decode(multiRequestCodec, hex("00000003 00 ffffffff"))).toThrow(
      "Operation 3 is not allowed in a multi",
    );
    expect(() => decode(multiRequestCodec, hex("ffffffff 00 00000000 00000000"))).toThrow(
      "A multi request contains an error record",
    );
  });
});
