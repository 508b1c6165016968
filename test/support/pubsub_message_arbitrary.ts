/** Any message of the publish/subscribe protocol, by the tables that declare them. */
import * as fc from "fast-check";
import * as types from "../../src/pubsub/wire/field_types.ts";
import { toCamelCase } from "../../src/pubsub/wire/encode_message.ts";
import {
  headerFields,
  messageBodyKinds,
  messageFields,
  optionalMessageFields,
  type PubsubMessage,
  type PubsubMessageName,
} from "../../src/pubsub/wire/pubsub_messages.ts";
import { statusCodes } from "../../src/pubsub/wire/status_codes.ts";

const tokenValue = fc.string({ unit: "binary", minLength: 1, maxLength: 40 });
const numberValue = fc.oneof(fc.nat(), fc.constantFrom(0, 1, Number.MAX_SAFE_INTEGER));
const rangeValue = fc.record({ first: fc.nat(), more: fc.nat(1000) }).map(({ first, more }) => ({
  first,
  last: first + more,
}));
const keyValue = fc.string({ unit: "binary", minLength: 1, maxLength: 30 });

const values = new Map<unknown, fc.Arbitrary<unknown>>([
  [types.encodedTextField, tokenValue],
  [types.numberField, numberValue],
  [types.messageIdOrNoneField, fc.oneof(numberValue, fc.constant(types.noMessageId))],
  [types.yesFlagField, fc.constant(true)],
  [types.sessionField, fc.record({ number: fc.integer({ min: 1 }), key: keyValue })],
  [types.statusCodeField, fc.constantFrom(...statusCodes)],
  [types.seekPositionField, fc.oneof(numberValue, fc.constantFrom("start", "end"))],
  [types.idRangesField, fc.array(rangeValue, { minLength: 1, maxLength: 5 })],
]);
const body = fc.uint8Array({ maxLength: 60 });

function valueOf(type: unknown): fc.Arbitrary<unknown> {
  const value = values.get(type);
  if (value === undefined) throw new Error("A field has a type that no test knows: give it values here");
  return value;
}

const recordOf = (fields: Record<string, unknown>, requiredKeys?: []) =>
  fc.record(
    Object.fromEntries(Object.entries(fields).map(([name, type]) => [toCamelCase(name), valueOf(type)])),
    requiredKeys === undefined ? {} : { requiredKeys },
  );

const { count: _, ...headersWithoutCount } = headerFields;
const headers = fc.option(recordOf(headersWithoutCount, []).filter((some) => Object.keys(some).length > 0), {
  nil: undefined,
});

function messageNamed(name: PubsubMessageName): fc.Arbitrary<PubsubMessage> {
  const kind: "none" | "one" | "batch" =
    (messageBodyKinds as Partial<Record<PubsubMessageName, "one" | "batch">>)[name] ??
      "none";
  const content = fc.oneof(
    fc.constant({}),
    ...(kind === "none" ? [] : [body.filter(({ length }) => length > 0).map((body) => ({ body }))]),
    ...(kind === "batch"
      ? [fc.array(body, { minLength: name === "PUT" ? 0 : 1, maxLength: 8 }).map((batch) => ({ batch }))]
      : []),
  );
  const optional = recordOf(optionalMessageFields[name as keyof typeof optionalMessageFields] ?? {}, []);
  return fc.tuple(recordOf(messageFields[name]), optional, headers, content).map(([fields, more, said, rest]) => {
    // A batch says its count in a line, so whoever sends one knows headers.
    const known = said === undefined && "batch" in rest ? {} : said;
    return {
      name,
      ...fields,
      ...more,
      ...rest,
      ...(known === undefined ? {} : { headers: known }),
    } as unknown as PubsubMessage;
  });
}

export const anyMessage: fc.Arbitrary<PubsubMessage> = fc.oneof(
  ...(Object.keys(messageFields) as PubsubMessageName[]).map(messageNamed),
);
