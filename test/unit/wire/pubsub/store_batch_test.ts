import { expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  OperationPacker,
  ResponsePacker,
  unpackOperations,
  unpackResponses,
} from "../../../../src/wire/pubsub/store_batch.ts";
import { statusCodes } from "../../../../src/wire/pubsub/status_codes.ts";
import type { StoreOperation, StoreResponse } from "../../../../src/wire/pubsub/store_operations.ts";
import { property } from "../../../support/property.ts";

const text = fc.string({ unit: "binary", maxLength: 12 });
const number = fc.oneof(fc.nat(), fc.constantFrom(0, Number.MAX_SAFE_INTEGER));
const optional = fc.option(number);
const body = fc.uint8Array({ maxLength: 50 });
const session = fc.option(fc.record({ number: fc.integer({ min: 1 }), key: text }));
const common = { ticket: fc.nat(), topic: text, epoch: number, client: text, session };

const operation = fc.oneof(
  fc.record({
    kind: fc.constant("put"),
    ...common,
    counter: number,
    fromSession: session,
    firstUnacked: number,
    after: optional,
    msgId: fc.option(text),
    bodies: fc.array(body, { maxLength: 4 }),
  }),
  fc.record({
    kind: fc.constant("get"),
    ...common,
    op: optional,
    last: fc.oneof(number, fc.constant(-1)),
    max: number,
    maxBytes: number,
    wait: fc.boolean(),
    peek: fc.boolean(),
  }),
  fc.record({ kind: fc.constantFrom("subscribe", "unsubscribe"), ...common, op: optional }),
  fc.record({
    kind: fc.constant("seek"),
    ...common,
    op: optional,
    to: fc.oneof(number, fc.constantFrom("start", "end")),
  }),
  fc.record({ kind: fc.constant("info"), ...common }),
  fc.record({ kind: fc.constant("cancel"), cancelledTicket: fc.nat() }),
) as unknown as fc.Arbitrary<StoreOperation>;

const message = fc.record({ id: number, msgId: fc.option(text), body });
const answer = fc.record({
  ticket: fc.nat(),
  code: fc.constantFrom(...statusCodes),
  reason: text,
  ids: fc.array(fc.record({ first: number, last: number })),
  hasNoSubscriber: fc.constant(true),
  failedAt: number,
  currentSession: number,
  registration: number,
  info: fc.record({
    first: number,
    end: number,
    position: fc.option(number),
    pending: number,
    subscribers: number,
    bytes: number,
  }),
}, { requiredKeys: ["ticket", "code", "reason"] });
const withMessages = fc.tuple(
  answer,
  fc.option(fc.record({ messages: fc.array(message), missed: number, redelivered: number }), { nil: {} }),
).map(([some, more]) => ({ ...some, ...more })) as unknown as fc.Arbitrary<StoreResponse>;

/** What a client with a session says of registrations; others say nothing, which is 0. */
const registered = fc.tuple(operation, number).map(([some, registration]): StoreOperation => {
  if (some.kind === "cancel" || some.kind === "info") return some;
  return { ...some, registration: some.session === null ? 0 : registration };
});

property("operations are unpacked as they were packed", fc.array(registered, { maxLength: 12 }), (operations) => {
  const packer = new OperationPacker();
  for (let round = 0; round < 2; round++) {
    for (const each of operations) packer.add(each);
    expect(packer.count).toBe(operations.length);
    expect([...unpackOperations(packer.take())]).toEqual(operations);
    expect(packer.count).toBe(0);
  }
});

property("answers are unpacked as they were packed", fc.array(withMessages, { maxLength: 8 }), (answers) => {
  const packer = new ResponsePacker();
  for (const each of answers) packer.add(each);
  expect(unpackResponses(packer.take())).toEqual(answers);
});

test("a name that comes again is written once", () => {
  const packer = new OperationPacker();
  const one = { kind: "info", ticket: 1, topic: "t".repeat(1000), epoch: 1, client: "c", session: null } as const;
  for (let ticket = 0; ticket < 100; ticket++) packer.add({ ...one, ticket });
  expect(packer.take().byteLength).toBeLessThan(6000);
});
