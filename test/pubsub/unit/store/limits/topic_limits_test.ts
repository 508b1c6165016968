import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { rmSync } from "node:fs";
import type { PutOperation, StoreResponse } from "../../../../../src/pubsub/store/operations/store_operations.ts";
import { RefusedPuts } from "../../../../../src/pubsub/store/limits/refused_puts.ts";
import { refusedPutsMax } from "../../../../../src/pubsub/store/limits/topic_store_limits.ts";
import { RowsUnavailable } from "../../../../../src/pubsub/store/rows/loaded_data.ts";
import type { MessageReader } from "../../../../../src/pubsub/store/rows/topic_rows.ts";
import { engineDrivers, rowPlaces } from "../engine_driver.ts";
import { bodies, codes, get, put, texts } from "../some_operations.ts";

setDefaultTimeout(60_000);

describe.each(rowPlaces)("rows that are %s:", (place) => {
  const driver = engineDrivers(place);

  describe("what is stored", () => {
    test("goes when everybody has had it, and its ids never come again", () => {
      const store = driver();
      store.execute({ kind: "subscribe", client: "alice" }, { kind: "subscribe", client: "bob" });
      for (let counter = 1; counter <= 300; counter++) store.execute(put(counter, `message ${counter}`));
      const rows = () => store.value("SELECT count(*) AS n FROM messages");
      expect(rows()).toBe(300);
      store.execute(get(300, { client: "alice" }));
      while (store.engine.writePending());
      expect(rows()).toBe(300);
      store.execute(get(299, { client: "bob" }));
      while (store.engine.writePending());
      expect(rows()).toBe(1);
      store.execute({ kind: "unsubscribe", client: "bob" }, { kind: "unsubscribe", client: "alice" });
      while (store.engine.writePending());
      expect(rows()).toBe(0);
      store.reopen();
      expect(store.execute(put(301, "x"))[0]).toMatchObject({ ids: [{ first: 301, last: 301 }] });
      expect(rows()).toBe(0);
      store.close();
    });

    test("stays as long as somebody has had only a part of its row, also after a restart", () => {
      const store = driver();
      for (const client of ["alice", "bob", "carol"]) store.execute({ kind: "subscribe", client });
      for (const counter of [1, 11]) {
        store.execute(
          put(counter, "", { bodies: bodies(...Array.from({ length: 10 }, (_, index) => `message ${index}`)) }),
        );
      }
      store.execute(get(15, { client: "alice" }));
      store.execute(get(5, { client: "carol" }));
      store.reopen();
      store.execute(get(20, { client: "bob" }), put(21, "x"));
      while (store.engine.writePending());
      expect(texts(store.execute(get(5, { client: "carol", max: 20 }))[0] as StoreResponse)).toHaveLength(16);
      store.execute(get(12, { client: "carol" }), put(22, "x"));
      while (store.engine.writePending());
      // The first row is gone, and the second is needed by two.
      expect(store.value("SELECT min(first) AS first FROM messages")).toBe(11);
      expect(texts(store.execute(get(12, { client: "carol", max: 20 }))[0] as StoreResponse)).toHaveLength(10);
      store.close();
    });

    test("of a publisher is bounded by what it says is resolved", () => {
      const store = driver();
      const session = { number: 1, key: "x" };
      for (let counter = 1; counter <= 500; counter++) {
        store.execute(put(counter, "x", { session, firstUnacked: Math.max(0, counter - 3) }));
      }
      expect(Number(store.value("SELECT count(*) AS n FROM resolved"))).toBeLessThan(40);
      store.close();
    });

    test.skipIf(place === "in PostgreSQL")(
      "costs as many statements at a backlog of 20,000 as at none, and with 300 subscribers as with one",
      () => {
        const cost = (backlog: number, subscribers: number) => {
          const store = driver();
          for (let client = 0; client < subscribers; client++) {
            store.execute({ kind: "subscribe", client: `client ${client}` });
          }
          for (let counter = 1; counter <= backlog; counter += 100) {
            store.execute(put(counter, "x", { bodies: bodies(...Array<string>(100).fill("x")) }));
          }
          const before = store.database.statements;
          store.execute(put(backlog + 1, "x"));
          store.close();
          return store.database.statements - before;
        };
        const empty = cost(0, 1);
        const full = cost(20_000, 1);
        const crowded = cost(0, 300);
        // The first put of a publisher writes a row for it and one for its window, and none of that depends on others.
        expect(full).toBeLessThanOrEqual(empty);
        expect(crowded).toBe(empty);
        expect(empty).toBeLessThan(10);
      },
    );

    test("takes messages that came together and are more than a limit, once there is room for one of them", () => {
      const five = (counter: number, body = "x") => put(counter, "", { bodies: bodies(body, body, body, body, body) });
      for (const limits of [{ maxPending: 3 }, { maxTopicBytes: 300 }]) {
        const store = driver(limits);
        store.execute({ kind: "subscribe", client: "alice" });
        expect(codes(store.execute(five(1, "x".repeat(100))))).toEqual(["OK"]);
        const refused = store.execute(five(6, "x".repeat(100)), put(11, "x"));
        expect(codes(refused)).toEqual(["FULL", "FULL"]);
        store.execute(get(5, { client: "alice" }));
        while (store.engine.writePending());
        expect(codes(store.execute(five(6, "x".repeat(100))))).toEqual(["OK"]);
        store.close();
      }
      // Those that fit in a limit wait until they do.
      const store = driver({ maxPending: 7 });
      store.execute({ kind: "subscribe", client: "alice" });
      expect(codes(store.execute(five(1), five(6), put(11, "x")))).toEqual(["OK", "FULL", "OK"]);
      expect(store.execute(five(6))[0]?.reason).toContain(
        "6 undelivered messages for the slowest subscriber, and 5 more in this batch",
      );
      store.close();
    });

    test("has limits that refuse, and say which", () => {
      const store = driver({ maxPending: 3 });
      store.execute({ kind: "subscribe", client: "alice" }, { kind: "subscribe", client: "bob" });
      expect(codes(store.execute(put(1, "a"), put(2, "b"), put(3, "c"), put(4, "d")))).toEqual([
        "OK",
        "OK",
        "OK",
        "FULL",
      ]);
      expect(store.execute(put(4, "d"))[0]?.reason).toContain(
        "3 undelivered messages for the slowest subscriber; the limit is 3",
      );
      store.execute(get(3, { client: "alice" }));
      expect(codes(store.execute(put(4, "d")))).toEqual(["FULL"]);
      // What was stored is OK again, full or not.
      expect(codes(store.execute(put(3, "c")))).toEqual(["OK"]);
      store.execute(get(1, { client: "bob" }));
      expect(codes(store.execute(put(4, "d"), put(5, "e")))).toEqual(["OK", "FULL"]);
      store.close();
    });

    test.skipIf(place === "in PostgreSQL")("of the whole store refuses what goes beyond it, and nothing else", () => {
      const small = driver({ maxDiskBytes: 200_000 });
      small.execute({ kind: "subscribe", client: "alice" });
      let stored = 0;
      while (stored < 100 && codes(small.execute(put(stored, "x".repeat(10_000))))[0] === "OK") stored++;
      expect(stored).toBeGreaterThan(5);
      expect(stored).toBeLessThan(20);
      expect(small.engine.disk.warningSentence()).toContain("of 200000 bytes");
      expect(codes(small.execute(get(3, { client: "alice" }), { kind: "unsubscribe", client: "alice" }))).toEqual([
        "OK",
        "OK",
      ]);
      small.close();
    });

    test("is given up by retention, and the reader who was passed over is told how much", () => {
      const store = driver({ retainMessages: 10 });
      store.execute({ kind: "subscribe", client: "alice" });
      for (let counter = 1; counter <= 30; counter++) store.execute(put(counter, `message ${counter}`));
      const [response] = store.execute(get(-1, { client: "alice" }));
      expect(response).toMatchObject({ code: "OK", missed: 20, messages: [{ id: 21 }] });
      expect(store.execute(get(-1, { client: "alice" }))[0]).toMatchObject({ missed: 20, messages: [{ id: 21 }] });
      expect(store.execute(get(21, { client: "alice" }))[0]).toMatchObject({ missed: 0, messages: [{ id: 22 }] });
      store.close();
    });
  });

  test.skipIf(place === "in PostgreSQL")(
    "where the disk is full nothing of the batch is answered, and what was OK before is there afterwards",
    () => {
      const store = driver();
      store.execute({ kind: "subscribe", client: "alice" });
      expect(codes(store.execute(put(1, "one")))).toEqual(["OK"]);
      store.database.run("PRAGMA max_page_count = 40");
      const responded: StoreResponse[] = [];
      store.onResponse = (response) => responded.push(response);
      const large = "x".repeat(500_000);
      expect(() => store.execute(put(2, "two"), get(-1, { client: "alice" }), put(3, large))).toThrow("full");
      expect(responded).toEqual([]);
      store.reopen();
      expect(texts(store.execute(get(-1, { client: "alice", max: 9 }))[0] as StoreResponse)).toEqual(["one"]);
      expect(codes(store.execute(put(2, "two"), put(3, large)))).toEqual(["OK", "OK"]);
      store.close();
    },
  );

  test.skipIf(place === "in PostgreSQL")(
    "without room what is stored is read, what would change something is refused, and who waits is to ask again",
    () => {
      const store = driver();
      store.execute({ kind: "subscribe", client: "alice" }, { kind: "subscribe", client: "bob" });
      store.execute(put(1, "one"), put(2, "two"));
      const waiting = get(2, { client: "bob", wait: true });
      expect(store.execute(waiting)).toEqual([]);
      store.noRoom = "the disk is full";
      const { commits } = store;
      const session = { number: 1, key: "k" };
      const responses = store.execute(
        get(-1, { client: "alice" }),
        { kind: "info", client: "alice" },
        get(-1, { client: "alice", session }),
        get(1, { client: "alice" }),
        put(1, "one"),
        put(3, "three"),
        { kind: "subscribe", client: "carol" },
        { kind: "unsubscribe", client: "alice" },
        { kind: "seek", client: "alice", to: "end" },
      );
      expect(codes(responses)).toEqual(["OK", "OK", ...Array<string>(7).fill("FULL")]);
      expect(responses[5]?.reason).toBe("the disk is full");
      // All that is left is to be asked again; nothing more is there than was before.
      const late: StoreResponse[] = [];
      store.onResponse = (response) => late.push(response);
      store.engine.abandon("the disk is full");
      expect(codes(late)).toEqual(["OVERLOADED"]);
      expect(store.commits).toBe(commits);
      store.noRoom = null;
      store.reopen();
      expect(codes(store.execute(get(1, { client: "alice" }), put(3, "three")))).toEqual(["OK", "OK"]);
      store.close();
    },
  );

  test("messages that have become too old go without anybody's doing, and not from a sealed topic", () => {
    const store = driver({ retainMs: 1000 });
    store.execute({ kind: "subscribe", client: "alice" });
    store.execute(put(1, "old"));
    store.engine.markExpiredTopics();
    expect(store.engine.writePending()).toBe(false);
    store.nowMs += 2000;
    store.transfer.seal("news", 1, "s2");
    store.engine.markExpiredTopics();
    expect(store.engine.writePending()).toBe(false);
    store.transfer.activate("news", 2, "copy");
    store.engine.markExpiredTopics();
    expect(store.engine.writePending()).toBe(true);
    expect(store.execute(get(-1, { client: "alice", epoch: 2 }))[0]).toMatchObject({ code: "NO_MESSAGE", missed: 1 });
    store.close();
  });

  test.skipIf(place === "in PostgreSQL")("while old messages cannot be read, nothing fails; they go later", () => {
    const store = driver({ retainMs: 1000 });
    store.execute({ kind: "subscribe", client: "alice" });
    store.execute(put(1, "old"));
    store.nowMs += 2000;
    const messages = store.engine.topics.get("news")?.log.messages as { load: MessageReader["load"] };
    const { load } = messages;
    messages.load = () => {
      throw new RowsUnavailable("the database does not respond");
    };
    store.engine.markExpiredTopics();
    expect(store.engine.writePending()).toBe(false);
    messages.load = load;
    store.engine.markExpiredTopics();
    expect(store.engine.writePending()).toBe(true);
    store.close();
  });

  test("a topic with rows left to delete keeps its content from the seal on", () => {
    const store = driver();
    store.execute({ kind: "subscribe", client: "alice" });
    for (let counter = 1; counter <= 300; counter++) store.execute(put(counter, "x"));
    store.execute({ kind: "unsubscribe", client: "alice" });
    store.transfer.seal("news", 1, "s2");
    const rows = () => store.value("SELECT count(*) AS n FROM messages");
    const sealed = rows();
    while (store.engine.writePending());
    expect(rows()).toBe(sealed as number);
    expect(sealed).toBeGreaterThan(0);
    store.close();
  });

  test.skipIf(place === "in PostgreSQL")(
    "files that were removed while in use are noticed before anything more is answered",
    () => {
      const store = driver();
      store.execute({ kind: "subscribe", client: "alice" });
      rmSync(store.database.folder, { recursive: true });
      const responded: StoreResponse[] = [];
      store.onResponse = (response) => responded.push(response);
      store.database.invalidateFileCheck();
      expect(() => store.execute(put(1, "one"))).toThrow("topics.sqlite was removed or replaced while it was in use");
      expect(responded).toEqual([]);
      store.close();
    },
  );

  test("A put of a session that was refused for want of room is refused when the network delivers it again", () => {
    const store = driver();
    store.execute({ kind: "subscribe", client: "alice" });
    const session = { number: 1, key: "k" };
    const refused = put(1, "one", { session });
    const plain = put(1, "one", { client: "carol" });
    const taken = put(2, "two", { session });
    expect(codes(store.execute(taken))).toEqual(["OK"]);
    store.noRoom = "the disk is full";
    expect(codes(store.execute(refused, plain, taken))).toEqual(["FULL", "FULL", "FULL"]);
    store.noRoom = null;
    // A plain client has nothing but this counter to ask with; what was stored before stays stored.
    const responses = store.execute(refused, plain, taken, put(3, "three", { session }), refused);
    expect(codes(responses)).toEqual(["FULL", "OK", "OK", "OK", "FULL"]);
    expect(responses[0]?.reason).toContain("this put was refused before");
    expect(store.execute(get(-1, { client: "alice", max: 10 })).flatMap(texts)).toEqual(["two", "one", "three"]);
  });

  test("Of puts that were refused for want of room the newest are known", () => {
    const known = new RefusedPuts();
    const some = (counter: number) => putOperation({ counter, session: { number: 1, key: "k" } });
    for (let counter = 0; counter <= refusedPutsMax; counter++) known.add(some(counter));
    known.add(putOperation({ counter: -1 }));
    expect([0, 1, refusedPutsMax].map((counter) => known.whyRefused(some(counter)) !== null)).toEqual([
      false,
      true,
      true,
    ]);
    expect(known.whyRefused(putOperation({ counter: -1 }))).toBeNull();
  });

  function putOperation(put: Partial<PutOperation>): PutOperation {
    const common = { kind: "put", ticket: 0, topic: "news", epoch: 1, client: "bob", session: null } as const;
    return { ...common, counter: 0, fromSession: null, firstUnacked: 0, after: null, msgId: null, bodies: [], ...put };
  }
});
