/** What becomes of a request under way: the whole table, and what it must never say. */
import { describe, expect, test } from "bun:test";
import {
  fateOf,
  lossesMax,
  mayBeDoneAfter,
  type RequestEvent,
  type RequestState,
} from "../../../../src/pubsub/proxy/decide_forwarding.ts";
import { traitsOf } from "../../../../src/pubsub/proxy/request_traits.ts";
import { statusCodes } from "../../../../src/wire/pubsub/status_codes.ts";

const sender = "c";
const topic = "t";
const put: RequestState["traits"] = { name: "PUT", changes: true, isRepeatable: true };
const get: RequestState["traits"] = { name: "GET", changes: false, isRepeatable: true };
const once: RequestState["traits"] = { name: "SEEK", changes: true, isRepeatable: false };

const state = (traits: RequestState["traits"], rest: Partial<RequestState> = {}): RequestState => ({
  traits,
  isSent: true,
  mayBeDone: false,
  tries: 1,
  losses: 0,
  ...rest,
});

/** Every state there can be. */
const states = [put, get, once].flatMap((traits) =>
  [true, false].flatMap((isSent) =>
    [true, false].map((mayBeDone) => state(traits, { isSent, mayBeDone: mayBeDone && traits.changes }))
  )
);

describe("an answer", () => {
  test("goes to the client as it is, if it is one", () => {
    for (const status of statusCodes) {
      if (status === "NOT_OWNER" || status === "OVERLOADED") continue;
      expect(fateOf(state(put), { kind: "answered", status })).toEqual({ do: "pass on" });
    }
  });

  test("NOT_OWNER sends it elsewhere, at once the first time", () => {
    const event = { kind: "answered", status: "NOT_OWNER" } as const;
    expect(fateOf(state(once), event)).toEqual({ do: "send again", when: "now" });
    expect(fateOf(state(once, { tries: 2 }), event)).toEqual({ do: "send again", when: "later" });
  });

  test("OVERLOADED sends it again in a moment: the topic may be on its way to another server", () => {
    const event = { kind: "answered", status: "OVERLOADED" } as const;
    expect(fateOf(state(once), event)).toEqual({ do: "send again", when: "later" });
  });

  test("that denies what an attempt before may have done is not believed", () => {
    for (const status of ["FULL", "FENCED", "DENIED", "NOT_SUBSCRIBED"] as const) {
      const event = { kind: "answered", status } as const;
      expect(fateOf(state(put, { mayBeDone: true, tries: 2 }), event)).toEqual({ do: "answer", status: "ERROR" });
      expect(fateOf(state(get, { tries: 2 }), event)).toEqual({ do: "pass on" });
    }
    const ok = { kind: "answered", status: "OK" } as const;
    expect(fateOf(state(put, { mayBeDone: true, tries: 2 }), ok)).toEqual({ do: "pass on" });
  });
});

describe("a server that is lost", () => {
  const lost: RequestEvent = { kind: "server lost" };

  test("has the request sent again only where the server would recognize it", () => {
    expect(fateOf(state(put), lost)).toEqual({ do: "send again", when: "now" });
    expect(fateOf(state(get), lost)).toEqual({ do: "send again", when: "now" });
    expect(fateOf(state(once), lost)).toEqual({ do: "answer", status: "ERROR" });
  });

  test("is not believed to be lost by chance for ever", () => {
    expect(fateOf(state(put, { losses: lossesMax - 1 }), lost).do).toBe("send again");
    expect(fateOf(state(put, { losses: lossesMax }), lost)).toEqual({ do: "answer", status: "ERROR" });
    expect(fateOf(state(get, { losses: lossesMax }), lost)).toEqual({ do: "answer", status: "OVERLOADED" });
  });

  test("may have done it, which is not forgotten", () => {
    expect(mayBeDoneAfter(state(put), lost)).toBe(true);
    expect(mayBeDoneAfter(state(get), lost)).toBe(false);
    expect(mayBeDoneAfter(state(put, { mayBeDone: true }), { kind: "answered", status: "NOT_OWNER" })).toBe(true);
  });
});

test("when the time is over, OVERLOADED is said only of what nobody can have done", () => {
  for (const one of states) {
    const fate = fateOf(one, { kind: "time over" });
    const mayHaveHappened = one.traits.changes && (one.isSent || one.mayBeDone);
    expect(fate).toEqual({ do: "answer", status: mayHaveHappened ? "ERROR" : "OVERLOADED" });
  }
});

test("whose client is gone is forgotten", () => {
  for (const one of states) expect(fateOf(one, { kind: "client gone" })).toEqual({ do: "forget" });
});

test("nonsense from a server is no answer", () => {
  expect(fateOf(state(put), { kind: "answered with nonsense" })).toEqual({ do: "answer", status: "ERROR" });
});

describe("what is known of a request", () => {
  test("an operation without a number is not repeated: a newer one of its client may have come in between", () => {
    const subscribe = { name: "SUBSCRIBE", sender, topic } as const;
    expect(traitsOf(subscribe, 5000)).toMatchObject({ isRepeatable: false, changes: true, hasHeaders: false });
    expect(traitsOf({ ...subscribe, headers: { op: 3 } }, 5000)).toMatchObject({
      isRepeatable: true,
      hasHeaders: true,
    });
    expect(traitsOf({ name: "MERGE", sender, topic, address: "s2" }, 5000).isRepeatable).toBe(false);
  });

  test("a plain put and a plain get are repeatable by their counter and their last", () => {
    expect(traitsOf({ name: "PUT", sender, topic, counter: 0 }, 5000).isRepeatable).toBe(true);
    expect(traitsOf({ name: "GET", sender, topic, last: -1 }, 5000)).toMatchObject({
      isRepeatable: true,
      mayWait: false,
    });
  });

  test("a get has its wait on top of the patience of everybody, unless it says its own", () => {
    const get = { name: "GET", sender, topic, last: 3 } as const;
    expect(traitsOf({ ...get, headers: { waitMs: 30_000 } }, 5000)).toMatchObject({
      patienceMs: 35_000,
      mayWait: true,
    });
    expect(traitsOf({ ...get, headers: { waitMs: 30_000, deadlineMs: 700 } }, 5000).patienceMs).toBe(630);
    expect(traitsOf({ ...get, headers: { waitMs: 1000, deadlineMs: 1075 } }, 5000).patienceMs).toBe(1067.5);
    expect(traitsOf({ ...get, headers: { deadlineMs: 20_000 } }, 5000).patienceMs).toBe(19_900);
    expect(traitsOf({ ...get, headers: { deadlineMs: 10 ** 12 } }, 5000).patienceMs).toBe(3_600_000);
  });
});

test("a topic that is not there: nobody is subscribed to it, unless an attempt before may have made it", () => {
  const event = { kind: "no topic" } as const;
  expect(fateOf(state(get, { isSent: false }), event)).toEqual({ do: "answer", status: "NOT_SUBSCRIBED" });
  expect(fateOf(state(once, { isSent: false }), event)).toEqual({ do: "answer", status: "NOT_SUBSCRIBED" });
  expect(fateOf(state(once, { mayBeDone: true }), event)).toEqual({ do: "answer", status: "ERROR" });
  const merge = { ...once, name: "MERGE" } as const;
  expect(fateOf(state(merge, { isSent: false }), event)).toEqual({ do: "answer", status: "NOT_OWNER" });
});
