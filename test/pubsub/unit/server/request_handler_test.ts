import { expect, test } from "bun:test";
import type { TopicAvailability, TopicPermit } from "../../../../src/pubsub/ownership/topic_state.ts";
import type { ResponseStatusMessage } from "../../../../src/pubsub/status_message.ts";
import {
  type ClientRequestMessage,
  storeResponseToStatusMessage,
} from "../../../../src/pubsub/store/thread/client_request.ts";
import { ServerRequestHandler } from "../../../../src/pubsub/server/request_handler.ts";
import { heldGetMsMax, pendingAdmissionsMax } from "../../../../src/pubsub/server/server_limits.ts";
import type { StoreResponse } from "../../../../src/pubsub/store/operations/store_operations.ts";
import type { EncodedResponse, SubmittedRequest } from "../../../../src/pubsub/store/topic_store.ts";
import { decodePubsubMessage, type InvalidPubsubMessage } from "../../../../src/pubsub/wire/decode_message.ts";
import { encodePubsubMessage } from "../../../../src/pubsub/wire/encode_message.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (body: Uint8Array | undefined) => new TextDecoder().decode(body);
const envelope = [bytes("proxy"), bytes("7"), new Uint8Array(0)];

/** The request as the storage thread sees it. */
function decoded({ frames }: SubmittedRequest): ClientRequestMessage {
  return decodePubsubMessage(frames) as ClientRequestMessage;
}

function storeResponse(request: SubmittedRequest, response: Partial<StoreResponse>): EncodedResponse {
  const whole = { ticket: request.ticket, code: "OK", reason: "", ...response } as const;
  const frames = encodePubsubMessage(storeResponseToStatusMessage("s1", decoded(request), whole, request.epoch));
  return { ticket: whole.ticket, code: whole.code, frames };
}

/** A handler between a store and an ownership that do what the test says. */
function rig() {
  const clock = new FakeClock();
  const submitted: SubmittedRequest[] = [];
  const invalid: InvalidPubsubMessage[] = [];
  const cancelled: number[] = [];
  const responses: ResponseStatusMessage[] = [];
  const lookups: ((availability: TopicAvailability) => void)[] = [];
  const world = { isHeld: true, epoch: 3 as number | null, isFull: false, confirmations: 0 };
  const lease = {
    isConfirmed() {
      world.confirmations++;
      return world.isHeld;
    },
  };
  const permit = (): TopicPermit => ({
    epoch: world.epoch ?? 0,
    incarnation: "b",
    lease,
  });
  const handler = new ServerRequestHandler({
    server: "s1",
    clock,
    ownership: {
      currentPermit: () => world.epoch === null ? null : permit(),
      availability: () => new Promise((resolve) => lookups.push(resolve)),
    },
    store: {
      submit(request) {
        if (!world.isFull) submitted.push(request);
        return !world.isFull;
      },
      cancel: (ticket) => void cancelled.push(ticket),
    },
    reply: (to, response) => {
      expect(to).toBe(envelope);
      responses.push("frames" in response ? decodePubsubMessage(response.frames) as ResponseStatusMessage : response);
    },
    refuseInvalid: (_, message) => void invalid.push(message),
    endpointOf: (id) => id === "s2" ? "tcp://b:1" : null,
  });
  const take = (message: ClientRequestMessage) => {
    const { name, topic } = message;
    const isPut = name === "PUT";
    handler.handle({ envelope, frames: encodePubsubMessage(message), name, topic, message: isPut ? null : message });
  };
  const response = (code: StoreResponse["code"], more: Partial<StoreResponse> = {}) => {
    const request = submitted.at(-1);
    if (request !== undefined) handler.handleStoreResponses([storeResponse(request, { code, ...more })]);
  };
  return { handler, clock, world, submitted, invalid, cancelled, responses, lookups, take, response, permit };
}

const put: ClientRequestMessage = {
  name: "PUT",
  sender: "bob",
  topic: "t",
  counter: 1,
  body: bytes("x"),
  headers: { version: 1 },
};
const get: ClientRequestMessage = { name: "GET", sender: "alice", topic: "t", last: -1, headers: {} };

test("nothing is answered before the store has answered, and OK only while the lease holds", () => {
  const { responses, take, response, submitted } = rig();
  take(put);
  expect(submitted).toMatchObject([{ epoch: 3, wait: false }]);
  expect(submitted.map(decoded)).toMatchObject([{ name: "PUT", topic: "t", sender: "bob", counter: 1 }]);
  expect(responses).toEqual([]);
  response("OK", { ids: [{ first: 5, last: 5 }] });
  expect(responses).toEqual([{
    name: "STATUS",
    sender: "s1",
    status: "OK",
    headers: { ids: [{ first: 5, last: 5 }] },
  }]);
});

const unconfirmed: [ClientRequestMessage, StoreResponse["code"], string, boolean | undefined][] = [
  [put, "OK", "ERROR", true],
  [{ name: "SUBSCRIBE", sender: "a", topic: "t", headers: {} }, "OK", "ERROR", true],
  [get, "OK", "OVERLOADED", undefined],
  [get, "NO_MESSAGE", "OVERLOADED", undefined],
  [get, "NOT_SUBSCRIBED", "OVERLOADED", undefined],
  [put, "FULL", "OVERLOADED", undefined],
];
test.each(unconfirmed)(
  "a lease that ends between submit and response: %j, stored as %s, is answered %s",
  (message, code, said, unknown) => {
    const { responses, take, response, world } = rig();
    take(message);
    world.isHeld = false;
    response(code, { messages: [] });
    expect(responses).toMatchObject([{ status: said }]);
    expect(responses[0]?.headers?.unknown).toBe(unknown as true);
  },
);

test("how many messages are gone is said with the next message, once", () => {
  const { responses, take, response } = rig();
  take({ ...get, headers: { max: 2 } });
  response("NO_MESSAGE", { missed: 3 });
  expect(responses.at(-1)).toEqual({ name: "STATUS", sender: "s1", status: "NO_MESSAGE" });
});

test("the lease is checked once for all responses that come together", () => {
  const { handler, responses, take, submitted, world } = rig();
  for (let counter = 1; counter <= 50; counter++) take({ ...put, counter });
  handler.handleStoreResponses(submitted.map((request) => storeResponse(request, {})));
  expect(responses).toHaveLength(50);
  expect(world.confirmations).toBe(1);
});

test("requests for a topic that is being looked at stay in their order, and one look serves all", async () => {
  const { take, lookups, submitted, world, permit } = rig();
  world.epoch = null;
  take(put);
  take({ ...put, counter: 2 });
  world.epoch = 4;
  take({ ...put, counter: 3 });
  expect([lookups.length, submitted.length]).toEqual([1, 0]);
  lookups[0]?.({ kind: "serving", permit: permit() });
  await Promise.resolve();
  expect(submitted.map((request) => (decoded(request) as { counter?: number }).counter)).toEqual([1, 2, 3]);
});

const refusals: [TopicAvailability, string, string][] = [
  [{ kind: "elsewhere", owner: "s2", epoch: 9 }, "NOT_OWNER", "tcp://b:1"],
  [{ kind: "unassigned" }, "NOT_OWNER", ""],
  [{ kind: "moving" }, "OVERLOADED", ""],
  [{ kind: "away" }, "OVERLOADED", ""],
  [{ kind: "missing" }, "DAMAGED", ""],
] as const;
test.each(refusals)("%j is answered %s and nothing is stored", async (availability, code, endpoint) => {
  const { take, lookups, responses, submitted, world } = rig();
  world.epoch = null;
  take(put);
  lookups[0]?.(availability);
  await Promise.resolve();
  expect(responses[0]?.status).toBe(code as ResponseStatusMessage["status"]);
  expect(responses[0]?.headers?.endpoint ?? "").toBe(endpoint);
  expect(responses[0]?.headers?.unknown).toBeUndefined();
  expect(text(responses[0]?.body)).not.toBe("");
  expect(submitted).toEqual([]);
});

test.each(
  [
    [{ kind: "moving" }, 'topic "t" is moving; ask again'],
    [{ kind: "moving", why: "its rows are locked" }, 'topic "t" cannot be opened: its rows are locked; ask again'],
  ] as const,
)("the response to a request says why the topic is not served: %j", async (availability, reason) => {
  const { take, lookups, responses, world } = rig();
  world.epoch = null;
  take(put);
  lookups[0]?.(availability);
  await Promise.resolve();
  expect(text(responses[0]?.body)).toBe(reason);
});

test("a request whose topic nobody knows is answered by its deadline, and never done afterwards", async () => {
  const { take, clock, responses, lookups, submitted, world, permit } = rig();
  world.epoch = null;
  take({ ...put, headers: { deadlineMs: 200 } });
  await clock.advance(199);
  expect(responses).toEqual([]);
  await clock.advance(1);
  expect(responses).toMatchObject([{ status: "OVERLOADED" }]);
  lookups[0]?.({ kind: "serving", permit: permit() });
  await Promise.resolve();
  expect(submitted).toEqual([]);
  expect(responses).toHaveLength(1);
});

test("a put of which only the names are read is refused as invalid where it is decoded: by the store or before", () => {
  const { handler, submitted, invalid, responses, world } = rig();
  const frames = [bytes("PUT bob t first\r\n\r\n")];
  const request = { envelope, frames, name: "PUT", topic: "t", message: null } as const;
  handler.handle(request);
  expect([submitted.length, invalid.length]).toEqual([1, 0]);
  handler.handleStoreResponses([{ ticket: submitted[0]?.ticket ?? -1, code: "BAD_REQUEST", frames: [] }]);
  expect(invalid).toMatchObject([{ field: "counter", value: "first" }]);
  world.epoch = null;
  handler.handle(request);
  expect([invalid.length, responses.length, handler.inFlight, handler.pendingAdmissions]).toEqual([2, 0, 0, 0]);
});

test("a get waits as long as it says, as its deadline says, or as the server allows: the shortest", async () => {
  for (
    const [headers, ms] of [[{ waitMs: 300 }, 300], [{ waitMs: 300, deadlineMs: 100 }, 100], [
      { waitMs: 1e9 },
      heldGetMsMax,
    ]] as const
  ) {
    const { take, clock, cancelled, submitted, handler, response, responses } = rig();
    take({ ...get, headers });
    expect(submitted).toMatchObject([{ wait: true }]);
    expect(handler.pendingGets).toBe(1);
    await clock.advance(ms - 1);
    expect(cancelled).toEqual([]);
    await clock.advance(1);
    expect(cancelled).toEqual([submitted[0]?.ticket ?? -1]);
    response("NO_MESSAGE");
    expect(responses.map(({ status }) => status)).toEqual(["NO_MESSAGE"]);
    expect([handler.pendingGets, handler.inFlight]).toEqual([0, 0]);
  }
});

test("too much is pushed back: at the store, and before it", () => {
  const full = rig();
  full.world.isFull = true;
  full.take(put);
  expect(full.responses).toMatchObject([{ status: "OVERLOADED" }]);
  const waiting = rig();
  waiting.world.epoch = null;
  for (let topic = 0; topic <= pendingAdmissionsMax; topic++) waiting.take({ ...put, topic: `t${topic}` });
  expect(waiting.responses).toMatchObject([{ status: "OVERLOADED" }]);
  expect([waiting.handler.pendingAdmissions, waiting.lookups.length]).toEqual([
    pendingAdmissionsMax,
    pendingAdmissionsMax,
  ]);
});

test("a broken store: whoever is not answered hears that nobody knows", () => {
  const { handler, take, responses } = rig();
  take(put);
  take(get);
  handler.handleStoreFailure();
  expect(responses.map(({ status, headers }) => [status, headers?.unknown])).toEqual([["ERROR", true], [
    "ERROR",
    true,
  ]]);
});

test("a server that shuts down completes held gets, admits nothing new, and ends with the last response", async () => {
  const { handler, take, response, responses, cancelled, submitted, world } = rig();
  take({ ...get, headers: { waitMs: 5000 } });
  world.epoch = null;
  take({ ...put, topic: "u" });
  const left = handler.drain();
  expect(cancelled).toEqual([submitted[0]?.ticket ?? -1]);
  take(put);
  expect(responses.map(({ status }) => status)).toEqual(["OVERLOADED", "OVERLOADED"]);
  response("NO_MESSAGE");
  await left;
  expect(handler.inFlight).toBe(0);
});

test("a get without a receiver is cancelled: by its envelope, by its connection, while its topic is read", () => {
  const { handler, take, cancelled, submitted, world, responses, response } = rig();
  take({ ...get, headers: { waitMs: 20_000 } });
  take(get); // it does not wait
  const waiting = submitted[0]?.ticket ?? -1;
  handler.cancel([bytes("proxy"), bytes("8"), new Uint8Array(0)]);
  handler.cancelDisconnected(() => true);
  expect([handler.pendingGets, cancelled]).toEqual([1, []]);
  handler.cancel(envelope.map((frame) => frame.slice()));
  handler.cancelDisconnected((peer) => text(peer) !== "proxy");
  expect(cancelled).toEqual([waiting, waiting]);
  handler.handleStoreResponses([storeResponse(submitted[0] as SubmittedRequest, { code: "NO_MESSAGE" })]);
  expect([handler.pendingGets, responses.length]).toEqual([0, 1]);
  response("OK");
  world.epoch = null;
  take({ ...get, headers: { waitMs: 20_000 } });
  handler.cancel(envelope);
  expect([handler.pendingAdmissions, responses.at(-1)?.status]).toEqual([0, "OVERLOADED"]);
});
