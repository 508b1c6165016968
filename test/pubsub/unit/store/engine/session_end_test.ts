/** The end of a session at a topic, by a put of nothing in a newer one: what was refused in it is never stored. */
import { describe, expect, test } from "bun:test";
import { type EngineDriver, engineDrivers, rowPlaces, type Some } from "../engine_driver.ts";
import { bodies, codes, get, put, texts } from "../some_operations.ts";

describe.each(rowPlaces)("rows that are %s:", (place) => {
  const driver = engineDrivers(place);

  const session = { number: 4, key: "old" };
  const newer = { number: 5, key: "new" };
  const end = (counter: number, more: Some<"put"> = {}) =>
    put(counter, "", { bodies: [], session: newer, fromSession: session, ...more });

  const had = (store: EngineDriver) => store.execute(get(-1, { client: "alice", max: 100 })).flatMap(texts);

  /** Puts that are refused, each by another cause, and what takes the cause away. */
  const refusals: readonly [string, Some<"put">, (store: EngineDriver) => void][] = [
    ["OVERLOADED", put(3, "three", { session, after: 2 }), (store) => store.execute(put(2, "two", { session }))],
    ["FULL", put(2, "two", { session }), (store) => store.execute(get(1, { client: "alice" }))],
    ["NOT_OWNER", put(2, "two", { session, epoch: 2 }), (store) => {
      store.transfer.seal("news", 1, "s2");
      store.transfer.activate("news", 2, "copy");
    }],
  ];

  test.each(refusals)(
    "a put that was %s is FENCED from its session's end on, also after a crash",
    (code, refused, heal) => {
      const store = driver({ maxPending: code === "FULL" ? 1 : null });
      store.execute({ kind: "subscribe", client: "alice" }, put(1, "one", { session }));
      expect(codes(store.execute(refused))).toEqual([code]);
      expect(store.execute(end(refused.counter as number))[0]).toMatchObject({ code: "OK" });
      store.reopen();
      heal(store);
      const epoch = store.engine.topics.get("news")?.epoch as number;
      expect(codes(store.execute({ ...refused, epoch }))).toEqual(["FENCED"]);
      store.close();
    },
  );

  test("the first put of a publisher that the topic has never heard of is fenced like any other", () => {
    const store = driver();
    store.execute({ kind: "subscribe", client: "alice" });
    store.noRoom = "the disk is full";
    expect(codes(store.execute(put(1, "one", { session })))).toEqual(["FULL"]);
    // Nothing can be promised while nothing can be written; whoever asks tries it again.
    expect(codes(store.execute(end(1)))).toEqual(["OVERLOADED"]);
    store.noRoom = null;
    expect(codes(store.execute(end(1)))).toEqual(["OK"]);
    store.reopen();
    expect(codes(store.execute(put(1, "one", { session })))).toEqual(["FENCED"]);
    expect(had(store)).toEqual([]);
    store.close();
  });

  test("a message that was stored meanwhile is told by its id, whatever comes in the same batch", () => {
    const store = driver();
    store.execute({ kind: "subscribe", client: "alice" });
    const [stored, ended, late] = store.execute(
      put(1, "one", { session }),
      end(1),
      put(2, "two", { session, after: 1 }),
    );
    expect(stored).toMatchObject({ code: "OK", ids: [{ first: 1, last: 1 }] });
    expect(ended).toMatchObject({ code: "OK", ids: [{ first: 1, last: 1 }] });
    expect(late).toMatchObject({ code: "FENCED", currentSession: 5 });
    expect(store.execute(end(2))[0]?.ids).toBeUndefined();
    // A session of that number that another process had, of which this server knows nothing.
    expect(store.execute(end(1, { fromSession: { number: 4, key: "another" } }))[0]?.ids).toBeUndefined();
    // What is not known to have been done is put again by the session after that, and is the same message.
    const next = { number: 6, key: "next" };
    const again = store.execute(put(1, "", { bodies: bodies("one", "two"), session: next, fromSession: session }));
    expect(again[0]).toMatchObject({ code: "OK", ids: [{ first: 1, last: 2 }] });
    expect(had(store)).toEqual(["one", "two"]);
    store.close();
  });

  test("ends of sessions cost none of the sessions that are remembered", () => {
    const store = driver();
    store.execute({ kind: "subscribe", client: "alice" });
    expect(codes(store.execute(put(1, "one", { session })))).toEqual(["OK"]);
    for (let number = 5; number < 50; number++) {
      const responses = store.execute(end(1, { session: { number, key: "k" } }));
      expect(responses[0]).toMatchObject({ code: "OK", ids: [{ first: 1 }] });
    }
    store.close();
  });

  test("whose session is older, or unknown, ends nothing", () => {
    const store = driver();
    store.execute({ kind: "subscribe", client: "alice" });
    expect(codes(store.execute(put(1, "one", { session: newer })))).toEqual(["OK"]);
    expect(codes(store.execute(end(1, { session })))).toEqual(["FENCED"]);
    expect(codes(store.execute(end(1, { session: null, fromSession: null })))).toEqual(["BAD_REQUEST"]);
    expect(codes(store.execute(put(2, "two", { session: newer })))).toEqual(["OK"]);
    store.close();
  });
});
