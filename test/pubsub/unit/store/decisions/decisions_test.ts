import { describe, expect, test } from "bun:test";
import {
  decidePut,
  type PutDecisionFacts,
  toMessageIdRanges,
} from "../../../../../src/pubsub/store/decisions/decide_put.ts";
import {
  countMissedMessages,
  decideGet,
  decideSeek,
  decideSubscription,
} from "../../../../../src/pubsub/store/decisions/decide_read.ts";
import {
  checkClientSession,
  compareWithLastOperation,
} from "../../../../../src/pubsub/store/decisions/session_fence.ts";
import { fingerprintMessage } from "../../../../../src/pubsub/store/decisions/message_fingerprint.ts";
import { PublisherWindow } from "../../../../../src/pubsub/store/decisions/publisher_window.ts";
import { sessionWindowCountersMax } from "../../../../../src/pubsub/store/limits/topic_store_limits.ts";
import type {
  GetOperation,
  PutOperation,
  SeekOperation,
  SubscribeOperation,
} from "../../../../../src/pubsub/store/operations/store_operations.ts";

const client = { ticket: 1, topic: "news", epoch: 1, client: "alice", session: null };
const session = (number: number, key = "k") => ({ number, key });

describe("a session", () => {
  test.each([
    ["none", { session: 3, key: "k" }, null, { kind: "passed", raised: false }],
    ["the same", { session: 3, key: "k" }, session(3), { kind: "passed", raised: false }],
    ["a newer one", { session: 3, key: "k" }, session(4, "x"), { kind: "passed", raised: true }],
    ["the first", { session: 0, key: "" }, session(1), { kind: "passed", raised: true }],
    ["an older one", { session: 3, key: "k" }, session(2), {
      kind: "fenced",
      reason: "session 2 of this client was taken over by session 3",
    }],
    ["another state's of the same number", { session: 3, key: "k" }, session(3, "x"), {
      kind: "fenced",
      reason: "session 3 of this client belongs to another client state: this state was copied, restored or lost",
    }],
    ["the highest that any client may have", { session: 3, key: "k" }, session(2 ** 48), {
      kind: "passed",
      raised: true,
    }],
    ["one that leaves no room", { session: 3, key: "k" }, session(2 ** 53 - 1), {
      kind: "fenced",
      reason: "session 9007199254740991 leaves no room for later ones; the last one here was 3",
    }],
    ["a small step above a high one", { session: 2 ** 48, key: "k" }, session(2 ** 48 + 2 ** 20), {
      kind: "passed",
      raised: true,
    }],
    ["a large step above a high one", { session: 2 ** 48, key: "k" }, session(2 ** 48 + 2 ** 20 + 1), {
      kind: "fenced",
      reason: "session 281474977759233 leaves no room for later ones; the last one here was 281474976710656",
    }],
  ])("%s", (_, stored, said, expected) => expect(checkClientSession(stored, said)).toEqual(expected as never));
});

test.each(
  [
    ["none at all", { op: 0, opSession: 0 }, null, null, "any"],
    ["the first", { op: 0, opSession: 0 }, null, 1, "newer"],
    ["the same again", { op: 4, opSession: 2 }, session(2), 4, "repeated"],
    ["the next", { op: 4, opSession: 2 }, session(2), 5, "newer"],
    ["one before", { op: 4, opSession: 2 }, session(2), 3, "stale"],
    ["the first of a newer session", { op: 4, opSession: 2 }, session(3), 1, "newer"],
    ["a late one of an older session", { op: 4, opSession: 2 }, session(1), 9, "stale"],
    ["the last there is, without a session", { op: 4, opSession: 0 }, null, 2 ** 53 - 1, "no room"],
    ["a high one of a session", { op: 4, opSession: 2 }, session(2), 2 ** 53 - 1, "newer"],
  ] as const,
)("an operation's number: %s", (_, done, said, op, expected) => {
  expect(compareWithLastOperation(done, said, op)).toBe(expected);
});

test("messages behind the place are counted as gone, ids that a restore or a loss has left out are not", () => {
  expect(countMissedMessages(1420, 1424)).toBe(3);
  const first = 1420 + 2 ** 32;
  const second = 9000 + 2 * 2 ** 32;
  expect(countMissedMessages(1420, first + 2, first)).toBe(0);
  // A subscriber that lags behind the first of two losses.
  expect(countMissedMessages(1420, first + 2, second)).toBe(0);
  expect(countMissedMessages(first + 1, first + 5, second)).toBe(3);
  expect(countMissedMessages(1420, second + 2, second)).toBe(0);
});

describe("a put", () => {
  const bodies = [new Uint8Array([1]), new Uint8Array([2])];
  const fingerprints = bodies.map(fingerprintMessage);
  const put = (change: Partial<PutOperation>): PutOperation => ({
    kind: "put",
    ...client,
    session: session(1),
    counter: 5,
    fromSession: null,
    firstUnacked: 5,
    after: null,
    msgId: null,
    bodies,
    ...change,
  });
  const view = (change: Partial<PutDecisionFacts> = {}): PutDecisionFacts => ({
    window: new PublisherWindow(1, "k", 0),
    windowGone: false,
    sameMsgId: null,
    fingerprints,
    last: 100,
    fullReason: () => null,
    ...change,
  });
  const known = (counter: number, fingerprint: number, firstUnacked = 0) => {
    const window = new PublisherWindow(1, "k", firstUnacked);
    window.add({ counter, id: 42, fingerprint });
    return window;
  };

  test("of something new takes the next ids", () => {
    expect(decidePut(put({}), view())).toEqual({ kind: "done", bound: 5, newIndexes: [0, 1], ids: [101, 102] });
  });

  test("that is known in part stores the rest", () => {
    const decision = decidePut(put({}), view({ window: known(5, fingerprints[0] as number) }));
    expect(decision).toEqual({ kind: "done", bound: 5, newIndexes: [1], ids: [42, 101] });
  });

  test("is refused as a whole, with the counter it failed at", () => {
    const reuse = decidePut(put({}), view({ window: known(6, 1) }));
    expect(reuse).toMatchObject({
      code: "COUNTER_REUSE",
      failedAt: 6,
      reason: "counter 6 was used for another body, message 42",
    });
    const stale = decidePut(put({}), view({ window: known(9, 1, 6) }));
    expect(stale).toMatchObject({ code: "STALE_OP", failedAt: 5 });
  });

  test("that is full says why, unless it is all known", () => {
    const full = () => "it is full";
    expect(decidePut(put({}), view({ fullReason: full }))).toMatchObject({ code: "FULL", reason: "it is full" });
    const again = view({
      fullReason: full,
      window: known(5, fingerprints[0] as number),
      fingerprints: fingerprints.slice(0, 1),
    });
    expect(decidePut(put({ bodies: bodies.slice(0, 1) }), again)).toMatchObject({ kind: "done", ids: [42] });
  });

  test("with one before it that is not here waits for it", () => {
    const one = { bodies: bodies.slice(0, 1), counter: 8, after: 7, firstUnacked: 6 };
    const views = (window: PublisherWindow) => view({ window, fingerprints: fingerprints.slice(0, 1) });
    expect(decidePut(put(one), views(known(6, 1)))).toMatchObject({ code: "OVERLOADED" });
    expect(decidePut(put(one), views(known(7, 1)))).toMatchObject({ kind: "done" });
    expect(decidePut(put({ ...one, firstUnacked: 8 }), views(known(6, 1)))).toMatchObject({ kind: "done" });
  });

  test("that makes no sense is a bad request", () => {
    for (
      const change of [{ bodies: [] }, { firstUnacked: 6 }, { counter: Number.MAX_SAFE_INTEGER, firstUnacked: 0 }, {
        msgId: "k",
      }]
    ) {
      expect(decidePut(put(change), view())).toMatchObject({ code: "BAD_REQUEST" });
    }
  });

  test("of a publisher that never raises its firstUnacked is refused at the limit", () => {
    const window = new PublisherWindow(1, "k", 0);
    for (let counter = 10; counter < 10 + sessionWindowCountersMax; counter++) {
      window.add({ counter, id: counter, fingerprint: 0 });
    }
    expect(decidePut(put({ firstUnacked: 0 }), view({ window }))).toMatchObject({ code: "BAD_REQUEST" });
  });
});

test("ids of a batch are given as ranges", () => {
  expect(toMessageIdRanges([])).toEqual([]);
  expect(toMessageIdRanges([7])).toEqual([{ first: 7, last: 7 }]);
  expect(toMessageIdRanges([7, 8, 9, 3, 4, 4])).toEqual([{ first: 7, last: 9 }, { first: 3, last: 4 }, {
    first: 4,
    last: 4,
  }]);
});

describe("a get", () => {
  const log = { firstId: 5, lastId: 20 };
  const get = (last: number, change: Partial<GetOperation> = {}): GetOperation => ({
    kind: "get",
    ...client,
    op: null,
    last,
    max: 1,
    maxBytes: 0,
    wait: false,
    peek: false,
    ...change,
  });
  const at = (position: number | null) => ({ position, op: 3, opSession: 0 });

  test.each([
    ["moves to what it says it had", 10, 12, { position: 12, next: 13, missed: 0 }],
    ["again is the same", 12, 12, { position: 12, next: 13, missed: 0 }],
    ["that is older moves nothing back", 12, 10, { position: 12, next: 13, missed: 0 }],
    ["of somebody without a state goes on where the place is", 12, -1, { position: 12, next: 13, missed: 0 }],
    ["behind which something was given up says how much", 1, -1, { position: 1, next: 5, missed: 3 }],
    ["at the end has none", 20, 20, { position: 20, next: 21, missed: 0 }],
  ])("%s", (_, position, last, expected) => {
    expect(decideGet(get(last), at(position), log)).toEqual({ kind: "read", ...expected });
  });

  test("is refused without a subscription, of what was never given, and from before a newer operation", () => {
    expect(decideGet(get(1), at(null), log)).toMatchObject({ code: "NOT_SUBSCRIBED" });
    expect(decideGet(get(21), at(10), log)).toMatchObject({ code: "BAD_REQUEST" });
    expect(decideGet(get(12, { op: 2 }), at(10), log)).toMatchObject({ code: "STALE_OP" });
    expect(decideGet(get(12, { op: 3 }), at(10), log)).toMatchObject({ kind: "read" });
  });
});

describe("a subscriber's place", () => {
  const log = { firstId: 5, lastId: 20 };
  const subscription = (kind: "subscribe" | "unsubscribe", op: number | null): SubscribeOperation => ({
    kind,
    ...client,
    op,
  });
  const seek = (to: SeekOperation["to"], op: number | null = null): SeekOperation => ({
    kind: "seek",
    ...client,
    op,
    to,
  });
  const at = (position: number | null, op = 3) => ({ position, op, opSession: 0 });

  test("begins at the end, stays where it is when it is there, and goes", () => {
    expect(decideSubscription(subscription("subscribe", 4), at(null), log)).toMatchObject({
      position: 20,
      numbered: true,
    });
    expect(decideSubscription(subscription("subscribe", 4), at(7), log)).toMatchObject({ position: 7 });
    expect(decideSubscription(subscription("unsubscribe", 4), at(7), log)).toMatchObject({ position: null });
  });

  test("is not taken by an old unsubscribe, nor given back by an old subscribe", () => {
    expect(decideSubscription(subscription("unsubscribe", 2), at(7), log)).toMatchObject({ code: "STALE_OP" });
    expect(decideSubscription(subscription("subscribe", 2), at(null), log)).toMatchObject({ code: "STALE_OP" });
    expect(decideSubscription(subscription("subscribe", 3), at(null), log)).toMatchObject({
      position: null,
      numbered: false,
    });
  });

  test("is put where a seek says, if that is there", () => {
    expect(decideSeek(seek("start"), at(7), log)).toMatchObject({ position: 4 });
    expect(decideSeek(seek("end"), at(7), log)).toMatchObject({ position: 20 });
    expect(decideSeek(seek(9), at(7), log)).toMatchObject({ position: 9 });
    expect(decideSeek(seek(21), at(7), log)).toMatchObject({ code: "BAD_REQUEST" });
    expect(decideSeek(seek(3), at(7), log)).toMatchObject({
      code: "BAD_REQUEST",
      reason: "message 4 no longer exists: the oldest is 5",
    });
    expect(decideSeek(seek(9), at(null), log)).toMatchObject({ code: "NOT_SUBSCRIBED" });
  });
});

test("a window forgets rows together, and only what is below its bound", () => {
  const window = new PublisherWindow(0, "", 0);
  for (let row = 0; row < 4; row++) {
    const entries = [2 * row, 2 * row + 1].map((counter) => ({ counter, id: counter, fingerprint: 0 }));
    for (const entry of entries) window.add(entry);
    window.addRow(row, entries);
  }
  window.raiseBound(3);
  expect(window.forgetRows(2)).toBeNull();
  window.raiseBound(5);
  expect(window.forgetRows(2)).toBe(1);
  expect([0, 1, 2, 3, 4].map((counter) => window.get(counter)?.id)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
    4,
  ]);
  expect(window.entries().map(({ counter }) => counter)).toEqual([5, 6, 7]);
});
