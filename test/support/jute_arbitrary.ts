/** Random values for whatever a jute codec can carry, read off its declaration. */
import * as fc from "fast-check";
import {
  type AnyJuteCodec,
  juteBooleanCodec,
  juteBytesCodec,
  type JuteCodecValue,
  juteIntCodec,
  juteLongCodec,
  juteStringCodec,
} from "../../src/base/wire/record_codec.ts";
import {
  type MultiOperationName,
  multiOperations,
  type MultiRequest,
  type MultiResult,
} from "../../src/protocols/zookeeper/jute/multi_request.ts";

/** Any 32-bit number, the edges often. */
export const anyInt = fc.oneof(fc.integer(), fc.constantFrom(-1, 0, 1, 0x7fffffff, -0x80000000));
const anyLong = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
export const anyBytes = fc.uint8Array({ maxLength: 200 });
/** Well-formed text, other planes included. */
export const anyText = fc.string({ unit: "binary", maxLength: 40 });

/** Values of a codec. */
export function valuesOf<C extends AnyJuteCodec>(codec: C): fc.Arbitrary<JuteCodecValue<C>> {
  return anyValuesOf(codec) as fc.Arbitrary<JuteCodecValue<C>>;
}

function anyValuesOf(codec: AnyJuteCodec): fc.Arbitrary<unknown> {
  if (codec === juteIntCodec) return anyInt;
  if (codec === juteLongCodec) return anyLong;
  if (codec === juteBooleanCodec) return fc.boolean();
  if (codec === juteStringCodec) return anyText;
  if (codec === juteBytesCodec) return fc.option(anyBytes);
  if ("element" in codec) return fc.option(fc.array(anyValuesOf(codec.element as AnyJuteCodec), { maxLength: 6 }));
  if ("fields" in codec) {
    const fields = Object.entries(codec.fields as Record<string, AnyJuteCodec>);
    return fc.record(Object.fromEntries(fields.map(([name, field]) => [name, anyValuesOf(field)])));
  }
  return fc.constant({});
}

const names = Object.keys(multiOperations) as MultiOperationName[];

function items(side: "request" | "response"): fc.Arbitrary<unknown>[] {
  return names.map((type) => anyValuesOf(multiOperations[type][side]).map((value) => ({ type, ...value as object })));
}

export const multiRequests = fc.array(fc.oneof(...items("request"))) as fc.Arbitrary<MultiRequest[]>;

const anyError = fc.record({ type: fc.constant("error" as const), err: anyInt });
export const multiResults = fc.array(fc.oneof(...items("response"), anyError)) as fc.Arbitrary<MultiResult[]>;
