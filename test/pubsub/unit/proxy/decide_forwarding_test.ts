/** What becomes of a request under way: the whole table, and what it must never say. */
import { describe, expect, test } from "bun:test";
import {
  decideRequestForwarding,
  mayRequestBeDone,
  requestConnectionLossesMax,
  type RequestForwardingEvent,
  type RequestForwardingState,
} from "../../../../src/pubsub/proxy/decide_forwarding.ts";
import { readRequestTraits } from "../../../../src/pubsub/proxy/request_traits.ts";
import { statusCodes } from "../../../../src/pubsub/wire/status_codes.ts";

const sender = "c";
const topic = "t";
const put: RequestForwardingState["traits"] = { name: "PUT", changesState: true, isRepeatable: true };
const get: RequestForwardingState["traits"] = { name: "GET", changesState: false, isRepeatable: true };
const once: RequestForwardingState["traits"] = { name: "SEEK", changesState: true, isRepeatable: false };

const state = (
  traits: RequestForwardingState["traits"],
  rest: Partial<RequestForwardingState> = {},
): RequestForwardingState => ({
  traits,
  isSent: true,
  mayBeDone: false,
  tries: 1,
  connectionLosses: 0,
  ...rest,
});

/** Every state there can be. */
const states = [put, get, once].flatMap((traits) =>
  [true, false].flatMap((isSent) =>
    [true, false].map((mayBeDone) => state(traits, { isSent, mayBeDone: mayBeDone && traits.changesState }))
  )
);

describe("an answer", () => {
  test("goes to the client as it is, if it is one", () => {
    for (const status of statusCodes) {
      if (status === "NOT_OWNER" || status === "OVERLOADED") continue;
      expect(decideRequestForwarding(state(put), { kind: "response", status })).toEqual({ do: "forward response" });
    }
  });

  test("NOT_OWNER sends it elsewhere, at once the first time", () => {
    const event = { kind: "response", status: "NOT_OWNER" } as const;
    expect(decideRequestForwarding(state(once), event)).toEqual({ do: "retry", when: "now" });
    expect(decideRequestForwarding(state(once, { tries: 2 }), event)).toEqual({ do: "retry", when: "later" });
  });

  test("OVERLOADED sends it again in a moment: the topic may be on its way to another server", () => {
    const event = { kind: "response", status: "OVERLOADED" } as const;
    expect(decideRequestForwarding(state(once), event)).toEqual({ do: "retry", when: "later" });
  });

  test("that denies what an attempt before may have done is not believed", () => {
    for (const status of ["FULL", "FENCED", "DENIED", "NOT_SUBSCRIBED"] as const) {
      const event = { kind: "response", status } as const;
      expect(decideRequestForwarding(state(put, { mayBeDone: true, tries: 2 }), event)).toEqual({
        do: "respond",
        status: "ERROR",
      });
      expect(decideRequestForwarding(state(get, { tries: 2 }), event)).toEqual({ do: "forward response" });
    }
    const ok = { kind: "response", status: "OK" } as const;
    expect(decideRequestForwarding(state(put, { mayBeDone: true, tries: 2 }), ok)).toEqual({ do: "forward response" });
  });
});

describe("a server that is lost", () => {
  const lost: RequestForwardingEvent = { kind: "server lost" };

  test("has the request sent again only where the server would recognize it", () => {
    expect(decideRequestForwarding(state(put), lost)).toEqual({ do: "retry", when: "now" });
    expect(decideRequestForwarding(state(get), lost)).toEqual({ do: "retry", when: "now" });
    expect(decideRequestForwarding(state(once), lost)).toEqual({ do: "respond", status: "ERROR" });
  });

  test("is not believed to be lost by chance for ever", () => {
    expect(decideRequestForwarding(state(put, { connectionLosses: requestConnectionLossesMax - 1 }), lost).do).toBe(
      "retry",
    );
    expect(decideRequestForwarding(state(put, { connectionLosses: requestConnectionLossesMax }), lost)).toEqual({
      do: "respond",
      status: "ERROR",
    });
    expect(decideRequestForwarding(state(get, { connectionLosses: requestConnectionLossesMax }), lost)).toEqual({
      do: "respond",
      status: "OVERLOADED",
    });
  });

  test("may have done it, which is not forgotten", () => {
    expect(mayRequestBeDone(state(put), lost)).toBe(true);
    expect(mayRequestBeDone(state(get), lost)).toBe(false);
    expect(mayRequestBeDone(state(put, { mayBeDone: true }), { kind: "response", status: "NOT_OWNER" })).toBe(true);
  });
});

test("when the time is over, OVERLOADED is said only of what nobody can have done", () => {
  for (const one of states) {
    const decision = decideRequestForwarding(one, { kind: "deadline" });
    const mayHaveHappened = one.traits.changesState && (one.isSent || one.mayBeDone);
    expect(decision).toEqual({ do: "respond", status: mayHaveHappened ? "ERROR" : "OVERLOADED" });
  }
});

test("whose client is gone is forgotten", () => {
  for (const one of states) expect(decideRequestForwarding(one, { kind: "client gone" })).toEqual({ do: "forget" });
});

test("nonsense from a server is no answer", () => {
  expect(decideRequestForwarding(state(put), { kind: "invalid response" })).toEqual({ do: "respond", status: "ERROR" });
});

describe("what is known of a request", () => {
  test("an operation without a number is not repeated: a newer one of its client may have come in between", () => {
    const subscribe = { name: "SUBSCRIBE", sender, topic } as const;
    expect(readRequestTraits(subscribe, 5000)).toMatchObject({
      isRepeatable: false,
      changesState: true,
    });
    expect(readRequestTraits({ ...subscribe, headers: { op: 3 } }, 5000)).toMatchObject({
      isRepeatable: true,
    });
    expect(readRequestTraits({ name: "MERGE", sender, topic, address: "s2" }, 5000).isRepeatable).toBe(false);
  });

  test("a plain put and a plain get are repeatable by their counter and their last", () => {
    expect(readRequestTraits({ name: "PUT", sender, topic, counter: 0 }, 5000).isRepeatable).toBe(true);
    expect(readRequestTraits({ name: "GET", sender, topic, last: -1 }, 5000)).toMatchObject({
      isRepeatable: true,
      mayWait: false,
    });
  });

  test("a get has its wait on top of the patience of everybody, unless it says its own", () => {
    const get = { name: "GET", sender, topic, last: 3 } as const;
    expect(readRequestTraits({ ...get, headers: { waitMs: 30_000 } }, 5000)).toMatchObject({
      timeoutMs: 35_000,
      mayWait: true,
    });
    expect(readRequestTraits({ ...get, headers: { waitMs: 30_000, deadlineMs: 700 } }, 5000).timeoutMs).toBe(630);
    expect(readRequestTraits({ ...get, headers: { waitMs: 1000, deadlineMs: 1075 } }, 5000).timeoutMs).toBe(1067.5);
    expect(readRequestTraits({ ...get, headers: { deadlineMs: 20_000 } }, 5000).timeoutMs).toBe(19_900);
    expect(readRequestTraits({ ...get, headers: { deadlineMs: 10 ** 12 } }, 5000).timeoutMs).toBe(3_600_000);
  });
});

test("a topic that is not there: nobody is subscribed to it, unless an attempt before may have made it", () => {
  const event = { kind: "no topic" } as const;
  expect(decideRequestForwarding(state(get, { isSent: false }), event)).toEqual({
    do: "respond",
    status: "NOT_SUBSCRIBED",
  });
  expect(decideRequestForwarding(state(once, { isSent: false }), event)).toEqual({
    do: "respond",
    status: "NOT_SUBSCRIBED",
  });
  expect(decideRequestForwarding(state(once, { mayBeDone: true }), event)).toEqual({ do: "respond", status: "ERROR" });
  const merge = { ...once, name: "MERGE" } as const;
  expect(decideRequestForwarding(state(merge, { isSent: false }), event)).toEqual({
    do: "respond",
    status: "NOT_OWNER",
  });
});
