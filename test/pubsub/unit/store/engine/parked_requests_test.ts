/** Requests that need data which is not in memory, and those that come in the same batch. */
import { describe, expect, test } from "bun:test";
import { engineDrivers, rowPlaces } from "../engine_driver.ts";
import { codes, get, put, texts } from "../some_operations.ts";

const session = { number: 1, key: "k" };

describe.each(rowPlaces)("rows that are %s:", (place) => {
  const driver = engineDrivers(place);

  test("a get is cancelled by a cancel that follows it, also while its topic waits for data", () => {
    const store = driver();
    store.execute({ kind: "subscribe", client: "alice" });
    store.reopen();
    const end = put(0, "", { session, bodies: [] });
    const held = get(-1, { client: "alice", wait: true, ticket: 77 });
    expect(codes(store.execute(end, held, { kind: "cancel", cancelledTicket: 77 }))).toEqual(["OK", "NO_MESSAGE"]);
    expect(store.engine.waitingCount).toBe(0);
    store.close();
  });

  test("requests of a topic keep their order, and those of another topic are answered with them", () => {
    const store = driver();
    store.transfer.create("other", { incarnation: "o", baseOffset: 0, epoch: 1 });
    for (const topic of ["news", "other"]) store.execute({ kind: "subscribe", client: "alice", topic });
    store.execute(put(1, "first", { session }));
    store.reopen();
    const before = store.waits;
    const batch = [
      put(2, "second", { session, after: 1 }),
      put(3, "third", { session, after: 2 }),
      get(-1, { client: "alice", topic: "other" }),
      put(1, "first", { session }),
    ];
    expect(codes(store.execute(...batch))).toEqual(["OK", "OK", "NO_MESSAGE", "OK"]);
    expect(store.waits > before).toBe(place !== "here");
    const [read] = store.execute(get(-1, { client: "alice", max: 9 }));
    expect(read && texts(read)).toEqual(["first", "second", "third"]);
    store.close();
  });
});
