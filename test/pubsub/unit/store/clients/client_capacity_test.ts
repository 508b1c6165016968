import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { decideClientRegistration } from "../../../../../src/pubsub/store/clients/client_admission.ts";
import type { StoreResponse } from "../../../../../src/pubsub/store/operations/store_operations.ts";
import { type EngineDriver, engineDrivers, rowPlaces, type Some } from "../engine_driver.ts";
import { codes, put } from "../some_operations.ts";

setDefaultTimeout(60_000); // thousands of transactions, on a busy machine

describe.each(rowPlaces)("rows that are %s:", (place) => {
  const driver = engineDrivers(place);
  /** 75 publishers, 50 without a session, 10 of them busy. */
  const clientsMax = 100;
  const session = { number: 1, key: "k" };
  const job = (number: number) => `job-${number}`;

  function once(number: number, more: Some<"put"> = {}): Some<"put"> {
    return put(1, `body ${number}`, { client: job(number), session, ...more });
  }

  /** What `baton pubsub client put` says at its end: a put of nothing. */
  function resolved(number: number, more: Some<"put"> = {}): Some<"put"> {
    return { kind: "put", client: job(number), session, counter: 2, firstUnacked: 2, bodies: [], ...more };
  }

  function known(store: EngineDriver): string[] {
    const rows = store.query("SELECT name FROM clients ORDER BY id");
    return rows.map(({ name }) => new TextDecoder().decode(name as Uint8Array));
  }

  /** Becomes known as a client does, with the number that it is answered, and puts. */
  function comes(store: EngineDriver, number: number): StoreResponse | undefined {
    let [response] = store.execute(once(number));
    for (let tries = 1; response?.code === "UNREGISTERED" && tries < 5; tries++) {
      [response] = store.execute(once(number, { registration: response.registration ?? 0 }));
    }
    return response;
  }

  test("a client's requests count from the number that the topic had when it came", () => {
    const decide = (carried: number, client: number | null, topic: number) =>
      decideClientRegistration(carried, { client, topic });
    expect([decide(0, null, 0), decide(3, null, 3), decide(4, null, 3)]).toEqual(["new", "new", "new"]);
    expect([decide(0, null, 1), decide(2, null, 3)]).toEqual(["unregistered", "unregistered"]);
    expect([decide(0, 0, 9), decide(3, 3, 9), decide(5, 3, 9)]).toEqual(["known", "known", "known"]);
    expect(decide(2, 3, 9)).toBe("unregistered");
  });

  describe("a topic with as many publishers as it can know", () => {
    test("forgets the oldest that have said that nothing is unresolved, and goes on for ever", () => {
      const store = driver({ clientsMax });
      store.execute({ kind: "subscribe", client: "reader", op: 1 });
      for (let number = 0; number < 500; number++) {
        expect([number, comes(store, number)?.code]).toEqual([number, "OK"]);
        if (number % 2 === 0) store.execute(resolved(number, { registration: 999 }));
      }
      const names = known(store);
      expect(names.length).toBeLessThanOrEqual(76);
      expect(names).toContain("reader");
      // Those that were busy last are there, and of the others those whose outcome may not be known.
      for (let number = 490; number < 500; number++) expect(names).toContain(job(number));
      expect(store.engine.capacity.forgottenCount).toBe(500 - (names.length - 1));
      expect(store.engine.topics.get("news")?.clientCount).toBe(names.length);
      store.reopen();
      expect(store.engine.topics.get("news")).toMatchObject({ clientCount: names.length, damagedClients: null });
      store.close();
    });

    test("refuses what a forgotten one asked for before, whenever it comes, and stores it once", () => {
      const store = driver({ clientsMax });
      store.execute({ kind: "subscribe", client: "reader", op: 1 });
      for (let number = 0; number < 76; number++) comes(store, number);
      expect(known(store)).not.toContain(job(0));
      const end = () => store.engine.topics.get("news")?.log.lastId;
      const before = end();
      expect(codes(store.execute(once(0), once(0)))).toEqual(["UNREGISTERED", "UNREGISTERED"]);
      store.reopen();
      const [late] = store.execute(once(0));
      expect(late).toMatchObject({ code: "UNREGISTERED", registration: 1 });
      expect(end()).toBe(before);
      // It comes again by itself, as a new one: what it asked for before does not count for that one either.
      expect(codes(store.execute(put(7, "new", { client: job(0), session, registration: 1 }), once(0)))).toEqual([
        "OK",
        "UNREGISTERED",
      ]);
      expect(end()).toBe((before ?? 0) + 1);
      store.close();
    });

    test("keeps its number on the way to another server", () => {
      const from = driver({ clientsMax }), to = driver({ clientsMax });
      for (let number = 0; number < 76; number++) comes(from, number);
      from.transfer.seal("news", 1, "s2");
      const { pieces, hash } = from.exported();
      to.transfer.drop("news", 2);
      const transfer = to.transfer.importBegin("news", { incarnation: "b", baseOffset: 0, owner: "s1", epoch: 1 });
      for (const piece of pieces) to.transfer.importPiece(transfer, piece);
      to.transfer.importDone(transfer, hash);
      to.transfer.activate("news", 2, "staged");
      expect(to.execute({ ...once(0), epoch: 2 })[0]).toMatchObject({ code: "UNREGISTERED", registration: 1 });
      expect(to.execute({ ...once(75), epoch: 2, registration: 1 })[0]).toMatchObject({ code: "OK" });
      from.close();
      to.close();
    });

    test("has room for subscribers, and never forgets one, nor one that has been one", () => {
      const store = driver({ clientsMax });
      store.execute({ kind: "subscribe", client: "old", op: 1, session }, {
        kind: "unsubscribe",
        client: "old",
        op: 2,
        session,
      });
      store.execute({ kind: "subscribe", client: "reader", op: 1, session });
      for (let number = 0; number < 200; number++) comes(store, number);
      for (let number = 0; number < 20; number++) {
        const subscribe = { kind: "subscribe", client: `s${number}`, op: 1 } as const;
        expect(codes(store.execute(subscribe))).toEqual(["OK"]);
      }
      const names = known(store);
      for (const name of ["old", "reader", "s0", "s19"]) expect(names).toContain(name);
      store.close();
    });

    test("forgets none that has msg-ids, or has put without a session", () => {
      const store = driver({ clientsMax });
      for (let number = 0; number < 5; number++) store.execute(once(number, { msgId: "order" }));
      store.execute(put(1, "plain", { client: "both" }), put(1, "x", { client: "both", session }));
      for (let number = 10; number < 300; number++) expect(comes(store, number)?.code).toBe("OK");
      const names = known(store);
      for (const name of [job(0), job(4), "both"]) expect(names).toContain(name);
      store.close();
    });

    test("that has only such as it must keep is full, says what makes room, and warned before", () => {
      const warned: string[] = [];
      const store = driver({ clientsMax }, { warn: (sentence) => warned.push(sentence) });
      for (let number = 0; number < 75; number++) {
        expect(codes(store.execute(once(number, { msgId: "order" })))).toEqual(["OK"]);
      }
      expect(store.execute(once(75))[0]).toMatchObject({
        code: "FULL",
        reason: expect.stringContaining("forget-client"),
      });
      const subscribe = (number: number) => ({ kind: "subscribe", client: `s${number}`, op: 1, session }) as const;
      for (let number = 0; number < 25; number++) expect(codes(store.execute(subscribe(number)))).toEqual(["OK"]);
      expect(codes(store.execute(subscribe(25), once(0, { msgId: "order" })))).toEqual(["FULL", "OK"]);
      expect(warned).toEqual([expect.stringContaining(`topic "news" has 8`)]);
      expect(store.engine.clientsShare).toBe(1);
      store.close();
    });

    test("keeps clients without a session to a part of it: what they repeat could be told from nothing", () => {
      const store = driver({ clientsMax });
      const plain = (number: number) => store.execute(put(1, "x", { client: `p${number}` }))[0]?.code;
      for (let number = 0; number < 50; number++) expect(plain(number)).toBe("OK");
      expect([plain(50), plain(0)]).toEqual(["FULL", "OK"]);
      expect(comes(store, 1)?.code).toBe("OK");
      store.reopen();
      expect([plain(51), plain(49)]).toEqual(["FULL", "OK"]);
      store.close();
    });
  });

  describe("the content that a topic begins again with", () => {
    const baseOffset = 2 ** 44;
    /** An operator has publishers forgotten, so that clients know a number of the topic; then one more client comes. */
    function forgetful(): EngineDriver {
      const store = driver({ clientsMax });
      store.execute({ kind: "subscribe", client: "reader", op: 1 });
      for (const number of [1, 2, 3]) {
        comes(store, number);
        store.maintenance.forgetClient("news", 1, job(number), true);
      }
      return store;
    }

    test("knows no client by a number of the content before it", () => {
      const store = forgetful();
      const early = once(4, { registration: 3 });
      expect(codes(store.execute(early))).toEqual(["OK"]);
      store.transfer.drop("news", 2);
      store.transfer.create("news", { incarnation: "c", baseOffset, epoch: 2 });
      const again = { ...early, epoch: 2 };
      expect(store.execute(again)[0]).toMatchObject({ code: "UNREGISTERED", registration: baseOffset });
      expect(codes(store.execute({ ...once(5), epoch: 2, registration: baseOffset }))).toEqual(["OK"]);
      store.maintenance.forgetClient("news", 2, job(5), true);
      expect(codes(store.execute({ ...once(5), epoch: 2, registration: baseOffset }, again))).toEqual([
        "UNREGISTERED",
        "UNREGISTERED",
      ]);
      store.close();
    });

    test("after a restore knows the clients of its copy, and no other by a number that was given since", () => {
      const store = forgetful();
      const early = once(4, { registration: 3 });
      expect(codes(store.execute(early))).toEqual(["OK"]);
      store.transfer.raiseBaseOffset("news", baseOffset);
      expect(codes(store.execute(early, once(5, { registration: 7 })))).toEqual(["OK", "UNREGISTERED"]);
      expect(codes(store.execute(once(5, { registration: baseOffset })))).toEqual(["OK"]);
      store.maintenance.forgetClient("news", 1, job(5), true);
      expect(codes(store.execute(once(5, { registration: baseOffset })))).toEqual(["UNREGISTERED"]);
      store.close();
    });
  });

  describe("a client that an operator has forgotten", () => {
    test("comes as a new one, and what it asked for before is refused", () => {
      const store = driver({ clientsMax });
      store.execute({ kind: "subscribe", client: "reader", op: 1 }, once(1), resolved(1));
      store.maintenance.forgetClient("news", 1, job(1), false);
      expect(known(store)).toEqual(["reader"]);
      expect(codes(store.execute(once(1)))).toEqual(["UNREGISTERED"]);
      expect(comes(store, 1)?.code).toBe("OK");
      expect(store.maintenance.show("news", 1)).toMatchObject({
        epoch: 1,
        first: 1,
        end: 2,
        clients: 2,
        plainClients: 1,
        clientsMax,
        subscribers: 1,
        damage: null,
        slowest: [{ client: "reader", position: 0, pending: 2 }],
        undeliveredSinceMs: expect.any(Number),
      });
      expect(() => store.maintenance.show("news", 2)).toThrow("is not served here in epoch 2");
      store.reopen();
      expect(store.engine.topics.get("news")).toMatchObject({ clientCount: 2, registration: 1, damagedClients: null });
      store.close();
    });

    test("has to be given up where something is lost by it", () => {
      const store = driver({ clientsMax });
      store.execute(
        { kind: "subscribe", client: "reader", op: 1 },
        once(1),
        once(2, { msgId: "key" }),
        put(1, "x", { client: "p" }),
      );
      const why = {
        reader: /is subscribed, with 3 undelivered messages/,
        [job(1)]: /whose outcome it does not know/,
        [job(2)]: /msg-ids/,
        p: /without a session/,
      };
      for (const [client, reason] of Object.entries(why)) {
        expect(() => store.maintenance.forgetClient("news", 1, client, false)).toThrow(reason);
        store.maintenance.forgetClient("news", 1, client, true);
        expect(() => store.maintenance.forgetClient("news", 1, client, true)).toThrow("has no client");
      }
      expect(known(store)).toEqual([]);
      store.engine.writePending();
      expect(store.value("SELECT count(*) AS n FROM messages")).toBe(0);
      expect(store.engine.topics.get("news")).toMatchObject({ clientCount: 0, plainCount: 0 });
      store.close();
    });
  });
});
