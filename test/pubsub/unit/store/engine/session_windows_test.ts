/** Of how many sessions of a publisher the counters are remembered. */
import { describe, expect, test } from "bun:test";
import { type EngineDriver, engineDrivers, rowPlaces } from "../engine_driver.ts";
import { codes, get, put, texts } from "../some_operations.ts";

describe.each(rowPlaces)("rows that are %s:", (place) => {
  const driver = engineDrivers(place);

  const sessionOf = (number: number) => ({ number, key: `k${number}` });
  const putIn = (store: EngineDriver, number: number) =>
    codes(store.execute(put(1, `session ${number}`, { session: sessionOf(number) })));
  const resume = (store: EngineDriver, number: number, from: number) =>
    store.execute(put(1, `session ${from}`, { session: sessionOf(number), fromSession: sessionOf(from) }))[0];

  test("the counters of the last 8 sessions are known, whatever older one is resumed", () => {
    const store = driver();
    store.execute({ kind: "subscribe", client: "alice" });
    for (const number of [1, 2, 10, 11, 12, 13, 14, 15, 16, 17]) expect(putIn(store, number)).toEqual(["OK"]);
    expect(resume(store, 18, 2)).toMatchObject({ code: "STALE_OP" });
    // Nothing came of what session 5 has put, and nothing of it is forgotten: it is stored, and is known from then on.
    const first = resume(store, 18, 5);
    const again = resume(store, 18, 5);
    expect(first).toMatchObject({ code: "OK", ids: [{ first: 11, last: 11 }] });
    expect(again).toMatchObject({ code: "OK", ids: [{ first: 11, last: 11 }] });
    store.reopen();
    expect(resume(store, 19, 5)).toMatchObject({ code: "OK", ids: [{ first: 11, last: 11 }] });
    for (const number of [10, 11, 12, 13, 14, 15, 16, 17]) {
      expect(resume(store, 19, number)).toMatchObject({ code: "OK", ids: [{ first: number - 7 }] });
    }
    // The next that is stored has the oldest one forgotten.
    expect(putIn(store, 20)).toEqual(["OK"]);
    store.reopen();
    expect([5, 10].map((from) => resume(store, 21, from)?.code)).toEqual(["STALE_OP", "STALE_OP"]);
    expect(resume(store, 21, 11)).toMatchObject({ code: "OK", ids: [{ first: 4 }] });
    const had = store.execute(get(-1, { client: "alice", max: 100 })).flatMap(texts);
    expect(had.filter((text) => text === "session 5")).toHaveLength(1);
    store.close();
  });
});
