import { describe, expect, setDefaultTimeout, test } from "bun:test";
import * as fc from "fast-check";
import type { ClientOperation, StoreResponse } from "../../../../../src/pubsub/store/operations/store_operations.ts";
import { dose } from "../../../../support/dose.ts";
import { property } from "../../../../support/property.ts";
import { engineDrivers, rowPlaces, runsIn } from "../engine_driver.ts";
import { essence, type Expected, ReferenceStore } from "../reference_store.ts";
import { bodies, codes, get, put, texts } from "../some_operations.ts";

setDefaultTimeout(dose({ gate: 60_000, full: 900_000 }));

describe.each(rowPlaces)("rows that are %s:", (place) => {
  const driver = engineDrivers(place);

  describe("against a plain model of the rules", () => {
    const client = fc.constantFrom("alice", "bob");
    const session = fc.option(fc.record({ number: fc.integer({ min: 1, max: 3 }), key: fc.constantFrom("x", "y") }));
    const op = fc.option(fc.integer({ min: 1, max: 4 }));
    const common = { client, session };
    const operation = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          ...common,
          kind: fc.constant("put" as const),
          counter: fc.integer({ min: 0, max: 8 }),
          firstUnacked: fc.integer({ min: 0, max: 3 }),
          after: fc.option(fc.integer({ min: 0, max: 6 }), { freq: 4 }),
          fromSession: fc.option(
            fc.record({ number: fc.integer({ min: 1, max: 3 }), key: fc.constantFrom("x", "y") }),
            {
              freq: 4,
            },
          ),
          msgId: fc.constant(null),
          bodies: fc.array(fc.constantFrom("A", "B"), { minLength: 1, maxLength: 3 }).map((list) => bodies(...list)),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          ...common,
          kind: fc.constant("put" as const),
          counter: fc.integer({ min: 0, max: 20 }),
          msgId: fc.constantFrom("k1", "k2"),
          bodies: fc.constantFrom("A", "B").map((body) => bodies(body)),
        }),
      },
      {
        weight: 5,
        arbitrary: fc.record({
          ...common,
          kind: fc.constant("get" as const),
          op,
          last: fc.integer({ min: -1, max: 12 }),
          max: fc.integer({ min: 0, max: 3 }),
          peek: fc.boolean(),
        }),
      },
      {
        weight: 3,
        arbitrary: fc.record({ ...common, kind: fc.constantFrom("subscribe" as const, "unsubscribe" as const), op }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ ...common, kind: fc.constant("seek" as const), op, to: fc.constant("end" as const) }),
      },
    );
    const step = fc.oneof(
      { weight: 8, arbitrary: fc.array(operation, { minLength: 1, maxLength: 6 }) },
      { weight: 1, arbitrary: fc.constantFrom("restart" as const, "crash" as const, "settle" as const) },
    );

    property(
      "every response is the model's, through batches, restarts and crashes",
      fc.array(step, { maxLength: 25 }),
      (steps) => {
        const real = driver();
        const model = new ReferenceStore();
        for (const step of steps) {
          if (typeof step === "string") {
            if (step === "settle" || step === "restart") {
              real.engine.writePending();
              model.committed();
            }
            if (step !== "settle") {
              real.reopen();
              model.crash();
            }
            continue;
          }
          const commits = real.commits;
          const responses = real.execute(...step);
          const expected = step.map((operation) => model.do(real.complete(operation) as ClientOperation));
          // In one batch all reads come after all moves; what they bring was there when they were decided.
          expect(responses.map(essence)).toEqual(expected as Expected[]);
          if (real.commits > commits) model.committed();
        }
        real.close();
      },
      runsIn(place, { gate: 120, full: 5000 }),
    );
  });

  describe("a put", () => {
    test("is OK again with the same id, after a restart and after everybody has had it", () => {
      const store = driver();
      store.execute({ kind: "subscribe" });
      expect(store.execute(put(1, "one"), put(2, "two")).map(({ ids }) => ids)).toEqual([
        [{ first: 1, last: 1 }],
        [{ first: 2, last: 2 }],
      ]);
      store.execute(get(2));
      store.reopen();
      expect(store.execute(put(1, "one"))[0]).toMatchObject({ code: "OK", ids: [{ first: 1, last: 1 }] });
      expect(store.execute(put(1, "uno"))[0]).toMatchObject({ code: "COUNTER_REUSE", failedAt: 1 });
      expect(codes(store.execute(get(2)))).toEqual(["NO_MESSAGE"]);
      store.close();
    });

    test("into a topic without subscribers says that nothing is stored; with one, or repeated, it does not", () => {
      const store = driver();
      expect(store.execute(put(1, "one"))).toMatchObject([{ code: "OK", subscribers: 0 }]);
      expect(store.execute(put(1, "one"))[0]).not.toHaveProperty("subscribers");
      store.execute({ kind: "subscribe" });
      expect(store.execute(put(2, "two"))[0]).not.toHaveProperty("subscribers");
      store.execute({ kind: "unsubscribe" });
      expect(store.execute(put(3, "three"))).toMatchObject([{ code: "OK", subscribers: 0 }]);
      store.close();
    });

    test("below firstUnacked is stale, also when it was never stored and the store was killed in between", () => {
      const store = driver();
      const session = { number: 1, key: "k" };
      store.execute(put(1, "one", { session }));
      store.execute(put(9, "nine", { session, firstUnacked: 8 }));
      for (const counter of [1, 5, 7]) {
        expect(codes(store.execute(put(counter, "x", { session, firstUnacked: 0 })))).toEqual(["STALE_OP"]);
      }
      store.reopen();
      for (const counter of [1, 5, 7]) {
        expect(codes(store.execute(put(counter, "x", { session, firstUnacked: 0 })))).toEqual(["STALE_OP"]);
      }
      store.close();
    });

    test("that is known raises firstUnacked as well, durably", () => {
      const store = driver();
      const session = { number: 1, key: "k" };
      store.execute(put(1, "one", { session }), put(9, "nine", { session }));
      expect(codes(store.execute(put(9, "nine", { session, firstUnacked: 8 })))).toEqual(["OK"]);
      store.reopen();
      expect(codes(store.execute(put(5, "five", { session })))).toEqual(["STALE_OP"]);
      store.close();
    });

    test("without a session remembers the last 10,000 counters, and nothing of those below", () => {
      const store = driver();
      store.execute(put(1, "one"), put(5, "five"));
      expect(
        codes(
          store.execute(
            put(10_000, "x"),
            put(1, "one"),
            put(10_001, "y"),
            put(1, "one"),
            put(5, "five"),
            put(3, "new"),
          ),
        ),
      )
        .toEqual(["OK", "OK", "OK", "STALE_OP", "OK", "OK"]);
      store.close();
    });

    test("of an older session is fenced, and one of two copies of a session", () => {
      const store = driver();
      expect(codes(store.execute(put(1, "a", { session: { number: 2, key: "x" } })))).toEqual(["OK"]);
      const older = store.execute(put(2, "b", { session: { number: 1, key: "w" } }))[0];
      expect(older).toMatchObject({ code: "FENCED", currentSession: 2 });
      expect(codes(store.execute(put(1, "a", { session: { number: 2, key: "y" } })))).toEqual(["FENCED"]);
      store.reopen();
      expect(codes(store.execute(put(1, "a", { session: { number: 1, key: "w" } })))).toEqual(["FENCED"]);
      store.close();
    });

    test("that is resumed by the next session is the same one, and is stored once", () => {
      const store = driver();
      store.execute({ kind: "subscribe", client: "alice" });
      const first = { number: 1, key: "x" }, second = { number: 2, key: "y" };
      store.execute(put(1, "a", { session: first }));
      const resumed = put(1, "a", { session: second, fromSession: first });
      expect(store.execute(resumed)[0]).toMatchObject({ code: "OK", ids: [{ first: 1, last: 1 }] });
      // Its own counters begin anew.
      expect(store.execute(put(1, "b", { session: second }))[0]).toMatchObject({
        code: "OK",
        ids: [{ first: 2, last: 2 }],
      });
      expect(store.execute(put(2, "c", { session: second, fromSession: first }))[0]).toMatchObject({ code: "OK" });
      expect(codes(store.execute(put(3, "c", { session: second, fromSession: { number: 1, key: "z" } })))).toEqual([
        "STALE_OP",
      ]);
      expect(codes(store.execute(put(3, "c", { session: second, fromSession: { number: 3, key: "y" } })))).toEqual([
        "STALE_OP",
      ]);
      store.close();
    });

    test("of a session whose counters are forgotten is stale, never OK", () => {
      const store = driver();
      for (let number = 1; number <= 10; number++) store.execute(put(1, "a", { session: { number, key: "k" } }));
      const session = { number: 10, key: "k" };
      const resume = (number: number) => put(1, "a", { session, fromSession: { number, key: "k" } });
      expect(codes(store.execute(resume(2), resume(3)))).toEqual(["STALE_OP", "OK"]);
      store.reopen();
      expect(codes(store.execute(resume(2), resume(3)))).toEqual(["STALE_OP", "OK"]);
      store.close();
    });

    test("in another epoch, or of a topic that is not here, is not this server's", () => {
      const store = driver();
      expect(codes(store.execute(put(1, "a", { epoch: 2 }), put(1, "a", { topic: "other" })))).toEqual([
        "NOT_OWNER",
        "NOT_OWNER",
      ]);
      store.close();
    });

    test("with a msg-id is stored once, whatever its counter and session", () => {
      const store = driver();
      store.execute({ kind: "subscribe", client: "alice" });
      expect(store.execute(put(1, "a", { msgId: "k" }), put(2, "a", { msgId: "k" })).map(({ ids }) => ids)).toEqual([
        [{ first: 1, last: 1 }],
        [{ first: 1, last: 1 }],
      ]);
      store.reopen();
      const session = { number: 1, key: "x" };
      expect(store.execute(put(7, "a", { msgId: "k", session }))[0]).toMatchObject({ ids: [{ first: 1, last: 1 }] });
      expect(codes(store.execute(put(8, "b", { msgId: "k", session })))).toEqual(["COUNTER_REUSE"]);
      expect(texts(store.execute(get(-1, { client: "alice", max: 9 }))[0] as StoreResponse)).toEqual(["a"]);
      store.close();
    });
  });

  test("counters and msg-ids that were forgotten in memory are read again", () => {
    const store = driver();
    const session = { number: 1, key: "k" };
    const puts = () => [
      put(1, "a", { session }),
      put(9, "b", { session, firstUnacked: 5 }),
      put(3, "c"),
      put(4, "d", { msgId: "key" }),
      put(1, "e", { client: "alice" }),
    ];
    store.execute({ kind: "subscribe" });
    const first = store.execute(...puts()).map(({ ids }) => ids);
    store.engine.topics.clients.forgetWindows();
    expect(store.execute(...puts().slice(1)).map(({ ids }) => ids)).toEqual(first.slice(1));
    expect(codes(store.execute(put(4, "x", { session }), put(5, "x", { msgId: "key" })))).toEqual([
      "STALE_OP",
      "COUNTER_REUSE",
    ]);
    store.close();
  });

  describe("a get", () => {
    test("moves the cursor durably before the next message, and gives the same one to the same last", () => {
      const store = driver();
      store.execute({ kind: "subscribe" });
      store.execute(put(1, "one"), put(2, "two"), put(3, "three"));
      for (let round = 0; round < 2; round++) {
        expect(texts(store.execute(get(1))[0] as StoreResponse)).toEqual(["two"]);
        store.reopen();
      }
      // Its client has lost its state: what was had is not given again.
      expect(texts(store.execute(get(-1))[0] as StoreResponse)).toEqual(["two"]);
      store.close();
    });

    test("says how many of its messages were handed out before", () => {
      const store = driver();
      store.execute({ kind: "subscribe" });
      store.execute(put(1, "one"), put(2, "two"), put(3, "three"));
      expect(store.execute(get(-1, { max: 2 }))[0]).toMatchObject({ redelivered: 0 });
      expect(store.execute(get(-1, { max: 3 }))[0]).toMatchObject({ redelivered: 2 });
      store.close();
    });

    test("that waits is answered by the next put, in the same commit, and by a cancel", () => {
      const store = driver();
      store.execute({ kind: "subscribe", client: "alice" }, { kind: "subscribe", client: "carol" });
      expect(store.execute(get(-1, { client: "alice", wait: true, ticket: 7 }))).toEqual([]);
      expect(store.execute(get(-1, { client: "carol", wait: true, ticket: 8 }))).toEqual([]);
      const commits = store.commits;
      const responses = store.execute(put(1, "one"));
      expect(responses.map(({ ticket, code }) => [ticket, code]).slice(1)).toEqual([[7, "OK"], [8, "OK"]]);
      expect(store.commits).toBe(commits + 1);
      expect(store.execute(get(1, { client: "alice", wait: true, ticket: 9 }))).toEqual([]);
      expect(store.execute({ kind: "cancel", cancelledTicket: 9 })).toMatchObject([{ ticket: 9, code: "NO_MESSAGE" }]);
      store.close();
    });

    test.skipIf(place === "in PostgreSQL")(
      "that is cancelled in a transaction that finds the disk full is answered all the same",
      () => {
        const store = driver();
        store.execute({ kind: "subscribe" });
        store.execute(get(-1, { wait: true, ticket: 7 }));
        const responses: StoreResponse[] = [];
        store.onResponse = (response) => responses.push(response);
        store.database.commit = () => {
          throw new Error("database or disk is full");
        };
        expect(() => store.execute({ kind: "cancel", cancelledTicket: 7 }, put(1, "one"))).toThrow("disk is full");
        store.database.rollBack();
        store.engine.abandon("the disk is full");
        expect(responses.map(({ ticket, code }) => [ticket, code])).toEqual([[7, "OVERLOADED"]]);
        store.close();
      },
    );

    test("that waits is ended by an unsubscribe and by a newer session", () => {
      const store = driver();
      const session = { number: 1, key: "x" };
      store.execute({ kind: "subscribe", session, op: 1 });
      store.execute(get(-1, { session, wait: true, ticket: 7 }));
      expect(codes(store.execute({ kind: "unsubscribe", session, op: 2 }))).toEqual(["OK", "NOT_SUBSCRIBED"]);
      store.execute({ kind: "subscribe", session, op: 3 });
      store.execute(get(-1, { session, wait: true, ticket: 8 }));
      const responses = store.execute(get(-1, { session: { number: 2, key: "y" } }));
      expect(responses.map(({ ticket, code }) => [ticket, code])).toContainEqual([8, "FENCED"]);
      store.close();
    });

    test("that knows an older place is stale once the subscriber was put elsewhere", () => {
      const store = driver();
      const session = { number: 1, key: "x" };
      store.execute({ kind: "subscribe", session, op: 1 });
      store.execute(put(1, "one"), put(2, "two"), put(3, "three"));
      store.execute(get(1, { session, op: 1 }));
      store.execute({ kind: "seek", session, op: 2, to: 1 });
      // It was sent before the seek, and comes after it: it must not move the cursor over what is sought.
      expect(codes(store.execute(get(3, { session, op: 1 })))).toEqual(["STALE_OP"]);
      expect(texts(store.execute(get(-1, { session, op: 2 }))[0] as StoreResponse)).toEqual(["two"]);
      store.close();
    });
  });
});
