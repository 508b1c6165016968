import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BatonError } from "../../../../../src/base/errors.ts";
import type { SqlValue } from "../../../../../src/base/storage/sql_row.ts";
import { verifyTopicStore } from "../../../../../src/pubsub/store/sqlite/verify_topic_store.ts";
import { type EngineDriver, engineDrivers } from "../engine_driver.ts";
import { codes, get, put, texts } from "../some_operations.ts";

const driver = engineDrivers();
const damagedRows = (...ids: number[]) =>
  ids.map((id) => `row ${id} of the messages of topic "news" is damaged (message ${id})`);

/** Messages 1 to 5 in a row each, for bob; the store was opened again, so that nothing of them is in memory. */
function filled(): EngineDriver {
  const store = driver();
  store.transfer.create("other", { incarnation: "o", baseOffset: 0, epoch: 1 });
  store.execute({ kind: "subscribe", op: 1 }, { kind: "subscribe", topic: "other", op: 1 });
  for (let id = 1; id <= 5; id++) store.execute(put(id, `body ${id}`, { client: "ann" }));
  store.execute(put(1, "of the other", { client: "ann", topic: "other" }));
  store.engine.writePending();
  store.reopen();
  return store;
}

function damage(store: EngineDriver, sql: string, ...values: SqlValue[]): void {
  store.database.run(sql, ...values);
  store.reopen();
}

/** A bit in the middle of a blob. */
function flipped(store: EngineDriver, table: string, column: string, id: number): void {
  const value = store.database.get(`SELECT ${column} FROM ${table} WHERE id = ?`, id)?.[column];
  if (!(value instanceof Uint8Array)) throw new Error(`${column} of ${table} is not there`);
  const other = value.slice();
  other[other.length >> 1] = (other[other.length >> 1] as number) ^ 4;
  damage(store, `UPDATE ${table} SET ${column} = ? WHERE id = ?`, other, id);
}

/** Changes a client's name behind the store's back, in its row or in the index, so that they say different things. */
function changeName(store: EngineDriver, from: string, to: string, place: number): void {
  store.close();
  const path = join(store.folder, "topics.sqlite");
  const bytes = readFileSync(path);
  const places: number[] = [];
  for (let at = bytes.indexOf(from); at >= 0; at = bytes.indexOf(from, at + 1)) places.push(at);
  expect(places.length).toBeGreaterThanOrEqual(2); // in messages, too
  bytes.write(to, places.at(place) ?? 0);
  writeFileSync(path, bytes);
  store.reopen();
}

/** In the file: the row and the index. */
const namePlaces = [-1, -2];

describe("a damaged row of messages", () => {
  test("is refused and named; what comes before it is brought, and nothing is passed over", () => {
    const store = filled();
    flipped(store, "messages", "records", 3);
    const told: string[] = [];
    store.database.damage.onFound = (sentence) => void told.push(sentence);
    const [before] = store.execute(get(0, { max: 10 }));
    expect(before && texts(before)).toEqual(["body 1", "body 2"]);
    for (let time = 0; time < 2; time++) {
      const [refused] = store.execute(get(2));
      expect(refused).toMatchObject({ code: "DAMAGED", reason: damagedRows(3)[0] });
    }
    expect(told).toEqual(damagedRows(3));
    expect(store.database.damage.count).toBe(1);
    const [of] = store.execute(get(0, { topic: "other" }));
    expect(of && texts(of)).toEqual(["of the other"]);
  });

  test("is passed by a subscriber that goes behind it by itself", () => {
    const store = filled();
    flipped(store, "messages", "records", 3);
    expect(codes(store.execute(get(2), { kind: "seek", to: 3, op: 2 }))).toEqual(["DAMAGED", "OK"]);
    const [next] = store.execute(get(-1, { max: 10, op: 2 }));
    expect(next && texts(next)).toEqual(["body 4", "body 5"]);
    store.execute(get(5));
    store.engine.writePending();
    expect(store.database.get("SELECT count(*) AS n FROM messages WHERE topic = 1")?.["n"]).toBe(0);
  });

  test("is not handed off: the topic stays where it is, and is served", () => {
    const store = filled();
    flipped(store, "messages", "records", 4);
    let refusal: BatonError | null = null;
    try {
      store.exported();
    } catch (error) {
      refusal = error as BatonError;
    }
    expect(refusal).toMatchObject({ code: "BAD_DATA", message: `Topic "news" cannot be sent: ${damagedRows(4)[0]}` });
    expect(codes(store.execute(get(0), put(6, "more", { client: "ann" })))).toEqual(["OK", "OK"]);
  });

  test("whose numbers are damaged deletes nothing that others have not had", () => {
    const store = filled();
    damage(store, "UPDATE messages SET last = 0 WHERE id = 1");
    const reason = `row 1 of the messages of topic "news" is damaged`;
    expect(store.execute(get(0))[0]).toMatchObject({ code: "DAMAGED", reason });
    store.engine.writePending();
    expect(store.database.get("SELECT count(*) AS n FROM messages WHERE topic = 1")?.["n"]).toBe(5);
  });

  for (const [id, which] of [[1, "message 1"], [3, "message 3"], [5, "message 5"]] as const) {
    test(`that is missing is noticed: ${which}`, () => {
      const store = filled();
      damage(store, "DELETE FROM messages WHERE id = ?", id);
      const [refused] = store.execute(get(id - 1));
      expect(refused).toMatchObject({ code: "DAMAGED", reason: `${which} of topic "news": the row is missing` });
      expect(() => store.exported()).toThrow("the row is missing");
    });
  }
});

describe("a damaged client", () => {
  test("is refused, and so is an unknown one, which may be the same; others are served, nothing is deleted", () => {
    const store = filled();
    store.execute({ kind: "subscribe", client: "carl", op: 1 });
    damage(store, "UPDATE clients SET position = 4 WHERE id = 1");
    const rows = () => store.database.get("SELECT count(*) AS n FROM messages WHERE topic = 1")?.["n"];
    expect(codes(store.execute(get(0), put(1, "from a new one", { client: "dora" })))).toEqual(["DAMAGED", "DAMAGED"]);
    expect(codes(store.execute(put(6, "body 6", { client: "ann" }), get(5, { client: "carl" })))).toEqual(["OK", "OK"]);
    store.execute(get(6, { client: "carl" }));
    store.engine.writePending();
    expect(rows()).toBe(6);
    expect(() => store.exported()).toThrow("row 1 of the clients of topic");
  });

  test("that is missing is noticed", () => {
    const store = filled();
    damage(store, "DELETE FROM clients WHERE id = 1");
    const reason = `2 clients of topic "news" were stored, but 1 were found`;
    expect(store.execute(get(0))[0]).toMatchObject({ code: "NOT_SUBSCRIBED" });
    expect(store.execute({ kind: "subscribe", op: 2 })[0]).toMatchObject({ code: "DAMAGED", reason });
    store.engine.writePending();
    expect(store.database.get("SELECT count(*) AS n FROM messages WHERE topic = 1")?.["n"]).toBe(5);
  });

  for (const table of ["resolved", "windows", "msg_ids"] as const) {
    test(`whose ${table} are damaged puts nothing: what it repeats could not be told from what is new`, () => {
      const store = filled();
      store.execute(put(9, "keyed", { client: "ann", msgId: "key" }));
      store.execute(put(10, "of eve", { client: "eve" }));
      const client = store.database.get("SELECT id FROM clients WHERE topic = 1 AND name = CAST('ann' AS BLOB)")
        ?.["id"];
      const column = { resolved: "first_unacked", windows: "first_unacked", msg_ids: "message" }[table];
      damage(store, `UPDATE ${table} SET ${column} = 77 WHERE client = ?`, client as number);
      const again = put(9, "keyed", { client: "ann", msgId: "key" });
      expect(store.execute(again)[0]).toMatchObject({ code: "DAMAGED" });
      expect(codes(store.execute(put(11, "more", { client: "eve" }), get(0)))).toEqual(["OK", "OK"]);
    });
  }
});

describe("a damaged row of a topic", () => {
  test("makes this topic unavailable, and no other", () => {
    const store = filled();
    damage(store, "UPDATE topics SET last = 2 WHERE id = 1");
    expect(store.transfer.copiesOf("news").copy).toBe(null);
    expect(store.transfer.topics()).toEqual(["other"]);
    expect(codes(store.execute(get(0), get(0, { topic: "other" })))).toEqual(["NOT_OWNER", "OK"]);
  });

  test("is named with the topic's name, and does not make a store an empty one: nor does one that is lost", () => {
    const store = filled();
    damage(store, "UPDATE topics SET last = 2");
    expect(store.transfer.topics()).toEqual([]);
    expect(verifyTopicStore(store.folder).problems).toContain(
      'row 1 of the topics of this store (named "news") is damaged',
    );
    expect(store.transfer.isEmpty()).toBe(false);
    damage(store, "DELETE FROM topics");
    expect(store.transfer.isEmpty()).toBe(false);
    expect(driver({}, { creates: false }).transfer.isEmpty()).toBe(true);
  });

  test("is put aside when an operator has the topic begin again", () => {
    const store = filled();
    damage(store, "UPDATE topics SET last = 2 WHERE id = 1");
    store.transfer.create("news", { incarnation: "later", baseOffset: 100, epoch: 2 });
    expect(store.transfer.copiesOf("news").copy).toMatchObject({ incarnation: "later", epoch: 2 });
    store.reopen();
    expect(store.transfer.copiesOf("news").copy).toMatchObject({ incarnation: "later", epoch: 2 });
    expect(store.database.get("SELECT state FROM topics WHERE id = 1")?.["state"]).toBe(4);
  });
});

describe("an index that is damaged while the store is open", () => {
  const session = { number: 1, key: "k" };
  const once = (counter: number, more = {}) => put(counter, "x", { client: "somebody", session, ...more });

  /** Changes the file below the open store; nothing of it is in memory afterwards. */
  function damageOpen(store: EngineDriver, change: (bytes: Buffer) => void): void {
    store.engine.writePending();
    store.reopen();
    store.database.run("PRAGMA wal_checkpoint(TRUNCATE)");
    const path = join(store.folder, "topics.sqlite");
    const bytes = readFileSync(path);
    change(bytes);
    writeFileSync(path, bytes);
    store.database.run("PRAGMA shrink_memory");
  }

  test("does not make a client a new one, and a repair finds it", () => {
    for (const place of namePlaces) {
      const store = filled();
      store.execute(once(1), put(1, "y", { client: "anybody", session }));
      damageOpen(store, (bytes) => {
        const places: number[] = [];
        for (let at = bytes.indexOf("somebody"); at >= 0; at = bytes.indexOf("somebody", at + 1)) places.push(at);
        bytes.write("sumebody", places.at(place) ?? 0);
      });
      expect([place, store.execute(once(1))[0]?.code]).toEqual([place, "DAMAGED"]);
      expect(codes(store.execute(put(1, "z", { client: "new", session })))).toEqual(["OK"]);
      expect(store.maintenance.repair("news", 1).length).toBeGreaterThan(0);
      expect(["OK", "UNREGISTERED"]).toContain(store.execute(once(1))[0]?.code ?? "");
      store.close();
      expect(verifyTopicStore(store.folder).problems).toEqual([]);
    }
  });

  for (const table of ["windows", "resolved", "msg_ids"] as const) {
    test(`does not make a repeated put a new one: it finds fewer ${table}`, () => {
      const store = filled();
      for (const counter of [1, 2, 3]) store.execute(once(counter, { msgId: `key ${counter}` }));
      damageOpen(store, () => {});
      const id = store.database.get("SELECT id FROM clients WHERE name = CAST('somebody' AS BLOB)")?.["id"] as number;
      const some = table === "windows" ? "" : "AND id = (SELECT max(id) FROM " + table + ")";
      store.database.run(`DELETE FROM ${table} WHERE client = ? ${some}`, id);
      expect(store.execute(once(3, { msgId: "key 3" }))[0]).toMatchObject({ code: "DAMAGED" });
      expect(codes(store.execute(put(1, "z", { client: "new", session })))).toEqual(["OK"]);
    });
  }

  test("is no damage where rows were stored and deleted since the store was opened", () => {
    const store = filled();
    for (let number = 1; number <= 12; number++) {
      store.execute(put(number, "x", { client: "somebody", session: { number, key: "k" }, msgId: `key ${number}` }));
      store.engine.topics.clients.forgetWindows();
    }
    const last = put(12, "x", { client: "somebody", session: { number: 12, key: "k" }, msgId: "key 12" });
    const [again] = store.execute(last);
    expect(again).toMatchObject({ code: "OK" });
    store.reopen();
    expect(store.execute(last)[0]).toEqual({ ...again, ticket: expect.any(Number) } as never);
  });
});

describe("a client that its index does not lead to", () => {
  const session = { number: 1, key: "k" };
  const once = put(1, "x", { client: "somebody", session });

  for (const place of namePlaces) {
    test(`is not taken for a new one, until an operator gives it up: place ${place} of its name`, () => {
      const store = filled();
      store.execute(once, put(1, "y", { client: "anybody", session }));
      changeName(store, "somebody", "somebodz", place);
      expect(codes(store.execute(once, put(1, "y", { client: "anybody", session })))).toEqual(["DAMAGED", "OK"]);
      expect(store.maintenance.repair("news", 1)).toHaveLength(1);
      const again = store.execute(once)[0];
      if (again?.code === "OK") expect(again.ids).toEqual([{ first: 6, last: 6 }]);
      else expect(again).toMatchObject({ code: "UNREGISTERED" });
      store.close();
      expect(verifyTopicStore(store.folder).problems).toEqual([]);
    });
  }
});

describe("a topic that is dropped", () => {
  for (const place of namePlaces) {
    test(`is deleted also where a row and its index say different things: place ${place}`, () => {
      const store = filled();
      store.execute(put(1, "x", { client: "somebody", session: { number: 1, key: "k" } }));
      store.engine.writePending();
      changeName(store, "somebody", "somebodz", place);
      store.transfer.drop("news", 2);
      for (let commits = 0; store.rows.hasGarbage; commits++) {
        expect(commits).toBeLessThan(20);
        store.engine.writePending();
      }
      for (const table of ["messages", "clients"]) {
        expect(store.database.get(`SELECT count(*) AS n FROM ${table} WHERE topic = 1`)?.["n"]).toBe(0);
      }
      store.close();
      expect(verifyTopicStore(store.folder).problems).toEqual([]);
    });
  }
});

describe("what an operator gives up as damaged", () => {
  /** Gets message after message from the beginning on; how many are missed, and which come. */
  const rest = (store: EngineDriver, client = "bob") => {
    const had: string[] = [];
    let last = 0;
    let missed = 0;
    for (;;) {
      const [response] = store.execute(get(last, { client }));
      missed += response?.missed ?? 0;
      if (response?.code !== "OK") return { code: response?.code, missed, had };
      had.push(...texts(response));
      last = response.messages?.at(-1)?.id ?? last;
    }
  };

  test("leaves nothing behind of a client that it forgets: the next one is taken for new", () => {
    const store = filled();
    const shop = { client: "shop", session: { number: 1, key: "k" }, counter: 1 };
    store.execute({ ...put(1, "tick"), ...shop, msgId: "key" }, put(2, "tick", { ...shop, counter: 2 }));
    damage(store, "UPDATE clients SET op = 7 WHERE name = CAST('shop' AS BLOB)");
    expect(store.maintenance.repair("news", 1)).toEqual(["clients whose names cannot be read: 1"]);
    store.reopen();
    const till = { client: "till", session: { number: 1, key: "other" }, registration: 1 };
    expect(codes(store.execute(put(1, "tick", { ...till, msgId: "key" })))).toEqual(["OK"]);
    store.reopen();
    const [second] = store.execute(put(2, "tick", till));
    expect(second).toMatchObject({ code: "OK", ids: [{ first: 9, last: 9 }] });
    expect(rest(store).had.slice(5)).toEqual(["tick", "tick", "tick", "tick"]);
    store.close();
    expect(verifyTopicStore(store.folder).problems).toEqual([]);
  });

  test("has those who wait for a message of the topic be given the next one", () => {
    const store = filled();
    flipped(store, "messages", "records", 3);
    const given: string[] = [];
    store.onResponse = (response) => given.push(...texts(response));
    store.execute({ kind: "subscribe", client: "late", op: 1 });
    store.execute(get(5, { client: "late", wait: true }));
    expect(store.maintenance.repair("news", 1)).toEqual(["message 3"]);
    expect(store.engine.waitingCount).toBe(1);
    store.execute(put(6, "body 6", { client: "ann" }));
    expect([given, store.engine.waitingCount]).toEqual([["body 6"], 0]);
  });

  test("of messages is told to subscribers as missed; the rest is served and handed off", () => {
    const store = filled();
    damage(store, "UPDATE messages SET last = 9 WHERE id = 2");
    damage(store, "DELETE FROM messages WHERE id = 4");
    flipped(store, "messages", "records", 5);
    expect(store.maintenance.repair("news", 1)).toEqual(["message 2", "messages 4 to 5"]);
    expect(store.maintenance.repair("news", 1)).toEqual([]);
    store.execute(put(6, "body 6", { client: "ann" }));
    const content = store.exported.bind(store);
    store.transfer.seal("news", 1, "s2");
    expect(content().pieces.length).toBeGreaterThan(0);
    store.transfer.activate("news", 2, "copy");
    store.close();
    expect(verifyTopicStore(store.folder).problems).toEqual([]);
    store.reopen();
    const all: string[] = [];
    let missed = 0;
    for (let last = 0;;) {
      const [response] = store.execute(get(last, { epoch: 2 }));
      missed += response?.missed ?? 0;
      if (response?.code !== "OK") break;
      all.push(...texts(response));
      last = response.messages?.at(-1)?.id ?? last;
    }
    expect([all, missed]).toEqual([["body 1", "body 3", "body 6"], 3]);
  });

  test("of a client forgets it, and what it has put before is refused, not stored again", () => {
    const store = filled();
    const session = { number: 1, key: "k" };
    const paid = put(1, "paid", { client: "shop", session });
    store.execute(paid, { kind: "subscribe", client: "carl", op: 1 });
    damage(store, "UPDATE clients SET op = 7 WHERE name = CAST('carl' AS BLOB)");
    damage(store, "UPDATE resolved SET first_unacked = 1 WHERE session = 1");
    expect(codes(store.execute(paid, get(5, { client: "carl" })))).toEqual(["DAMAGED", "DAMAGED"]);
    expect(store.maintenance.repair("news", 1)).toEqual([
      "clients whose names cannot be read: 1",
      'what client "shop" has put',
    ]);
    expect(store.execute(paid)[0]).toMatchObject({ code: "UNREGISTERED", registration: 1 });
    expect(codes(store.execute({ ...paid, counter: 2, registration: 1 }, put(1, "new", { client: "dora" })))).toEqual([
      "OK",
      "OK",
    ]);
    expect(rest(store).had).toEqual(["body 1", "body 2", "body 3", "body 4", "body 5", "paid", "paid", "new"]);
    store.close();
    expect(verifyTopicStore(store.folder).problems).toEqual([]);
  });
});

test("the age of a store that is damaged is not taken for an age", () => {
  const store = filled();
  store.transfer.raiseGeneration(10);
  damage(store, "UPDATE generation SET generation = 5");
  expect(() => store.transfer.generation()).toThrow("of the generation of this store is damaged");
  expect(store.transfer.raiseGeneration(20)).toBe(21);
  expect(store.transfer.generation()).toBe(21);
});
