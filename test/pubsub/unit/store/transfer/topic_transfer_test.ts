import { describe, expect, setDefaultTimeout, test } from "bun:test";
import * as fc from "fast-check";
import { createHash } from "node:crypto";
import { BatonError } from "../../../../../src/base/errors.ts";
import { runArriving } from "../late_rows.ts";
import { awaitAnswer } from "../../../../../src/base/support/steps.ts";
import { exportTopic } from "../../../../../src/pubsub/store/transfer/export_topic.ts";
import { dose } from "../../../../support/dose.ts";
import { property } from "../../../../support/property.ts";
import { type EngineDriver, engineDrivers, rowPlaces, runsIn } from "../engine_driver.ts";
import { bodies } from "../some_operations.ts";

setDefaultTimeout(dose({ gate: 60_000, full: 900_000 }));

describe.each(rowPlaces)("rows that are %s:", (place) => {
  const driver = engineDrivers(place);

  function codeThrown(work: () => void): string | undefined {
    try {
      work();
      return undefined;
    } catch (error) {
      return error instanceof BatonError ? error.code : String(error);
    }
  }

  function received({ transfer }: EngineDriver, { pieces, hash }: { pieces: Uint8Array[]; hash: string }, epoch = 1) {
    const importId = transfer.importBegin("news", { incarnation: "b", baseOffset: 0, owner: "s1", epoch });
    for (const piece of pieces) transfer.importPiece(importId, piece);
    transfer.importDone(importId, hash);
  }

  function filled(): EngineDriver {
    const store = driver();
    const session = { number: 3, key: "k" };
    store.execute({ kind: "subscribe", client: "alice", session, op: 2 }, { kind: "subscribe", client: "zoë" });
    for (let counter = 1; counter <= 50; counter++) {
      store.execute({ kind: "put", counter, bodies: bodies(`body ${counter}`) });
    }
    store.execute({ kind: "put", counter: 1, session, firstUnacked: 1, msgId: "key", bodies: bodies("keyed") });
    store.execute({ kind: "get", client: "alice", session, last: 7, max: 2 });
    return store;
  }

  describe("a handoff", () => {
    test("moves the log, the cursors, the windows and the msg-ids, with the hash compared, and ids go on", () => {
      const from = filled(), to = driver();
      to.transfer.drop("news", 2);
      from.transfer.seal("news", 1, "s2");
      const content = from.exported();
      received(to, content);
      expect(to.transfer.copiesOf("news")).toMatchObject({
        copy: null,
        staged: { incarnation: "b", owner: "s1", epoch: 1 },
        dropped: { incarnation: "b", epoch: 2 },
      });
      to.reopen();
      to.transfer.activate("news", 2, "staged");
      from.transfer.drop("news", 2);
      const at = { epoch: 2, client: "alice", session: { number: 3, key: "k" } };
      expect(to.execute({ kind: "get", ...at, last: -1, max: 100 })[0]?.messages?.map(({ id }) => id)).toEqual(
        Array.from({ length: 44 }, (_, index) => index + 8),
      );
      expect(
        to.execute(
          { kind: "put", counter: 50, epoch: 2, bodies: bodies("body 50") },
          { kind: "put", counter: 50, epoch: 2, bodies: bodies("other") },
          { kind: "put", counter: 51, epoch: 2, bodies: bodies("new") },
          { kind: "put", counter: 60, epoch: 2, msgId: "key", bodies: bodies("keyed") },
          { kind: "put", counter: 1, epoch: 2, client: "alice", session: { number: 2, key: "k" }, bodies: bodies("x") },
          { kind: "unsubscribe", ...at, op: 1 },
        ).map(({ code, ids }) => [code, ids?.[0]?.first]),
      ).toEqual([
        ["OK", 50],
        ["COUNTER_REUSE", undefined],
        ["OK", 52],
        ["OK", 51],
        ["FENCED", undefined],
        ["STALE_OP", undefined],
      ]);
      from.close();
      to.close();
    });

    test.skipIf(place === "in PostgreSQL")("conserves the hash: what was received gives the same stream again", () => {
      const from = filled(), to = driver();
      from.transfer.seal("news", 1, "s2");
      const content = from.exported();
      to.transfer.drop("news", 2);
      received(to, content);
      const id = Number(to.value("SELECT id FROM topics WHERE state = 1"));
      const last = Number(to.value("SELECT last FROM topics WHERE state = 1"));
      const again = exportTopic(to.rows, {
        id,
        messages: runArriving(awaitAnswer(to.rows.open(id))).messages,
        isSealed: () => true,
        record: () => ({ name: "news", incarnation: "b", baseOffset: 0, epoch: 1, last, registration: 0 }),
        logEnds: () => ({ gone: 0, stored: last }),
      });
      expect(runArriving(again)).toBe(content.hash);
      from.close();
      to.close();
    });

    test("begins while the topic is open, and has what was put, got and trimmed until the seal", () => {
      const from = filled(), to = driver();
      const expected = filled();
      to.transfer.drop("news", 2);
      const more = (store: EngineDriver) => {
        store.execute({ kind: "put", counter: 51, bodies: bodies("later") });
        store.execute({ kind: "put", counter: 52, msgId: "another", bodies: bodies("last") });
        // Both have had the beginning: it goes.
        store.execute({ kind: "get", client: "alice", session: { number: 3, key: "k" }, last: 20, max: 1 });
        store.execute({ kind: "get", client: "zoë", last: 30, max: 1 });
      };
      const transfer = from.transfer.exportBegin("news", 1);
      const pieces: Uint8Array[] = [];
      let hash: string | null = null;
      for (let rounds = 0; hash === null;) {
        const step = from.transfer.exportNext(transfer);
        if (step.piece !== null) pieces.push(step.piece);
        hash = step.hash;
        if (!step.isCaughtUp) continue;
        if (rounds++ === 0) more(from);
        else from.transfer.seal("news", 1, "s2");
      }
      expect(pieces.length).toBe(3);
      more(expected);
      received(to, { pieces, hash });
      for (const store of [to, expected]) store.transfer.activate("news", 2, store === to ? "staged" : "copy");
      const read = (store: EngineDriver) =>
        store.execute(
          { kind: "get", epoch: 2, client: "zoë", last: -1, max: 100 },
          { kind: "get", epoch: 2, client: "alice", session: { number: 3, key: "k" }, last: -1, max: 100 },
          { kind: "put", epoch: 2, counter: 52, bodies: bodies("last") },
          { kind: "put", epoch: 2, counter: 51, bodies: bodies("other") },
        ).map(({ code, messages, ids }) => [code, messages?.map(({ id, body }) => [id, body.length]), ids]);
      expect(read(to)).toEqual(read(expected));
      for (const store of [from, to, expected]) store.close();
    });

    test("gives no more of a topic that has gone on since", () => {
      const store = filled();
      const begin = () => store.transfer.exportBegin("news", 1);
      const sealed = begin();
      const replaced = begin();
      store.transfer.seal("news", 1, "s2");
      expect(store.transfer.exportNext(sealed).piece).not.toBeNull();
      store.transfer.activate("news", 2, "copy");
      for (const transfer of [sealed, replaced]) {
        expect(codeThrown(() => store.transfer.exportNext(transfer))).toBe("STALE_TOKEN");
      }
      store.close();
    });

    test("cuts a long message into pieces that a message has room for", () => {
      const from = driver(), to = driver();
      to.transfer.drop("news", 2);
      from.execute({ kind: "subscribe", client: "alice" });
      from.execute({ kind: "put", counter: 1, bodies: [new Uint8Array(5_000_000).fill(7)] });
      from.transfer.seal("news", 1, "s2");
      const content = from.exported();
      expect(Math.max(...content.pieces.map(({ byteLength }) => byteLength))).toBeLessThan(2 ** 21);
      received(to, content);
      to.transfer.activate("news", 2, "staged");
      const [response] = to.execute({ kind: "get", epoch: 2, client: "alice", last: -1, max: 1 });
      expect(response?.messages?.[0]?.body.byteLength).toBe(5_000_000);
      for (const store of [from, to]) store.close();
    });

    test("answers no client between the seal and a higher epoch, whatever happens to the process", () => {
      const store = filled();
      store.transfer.seal("news", 1, "s2");
      const get = { kind: "get", client: "zoë", last: -1 } as const;
      expect(store.execute(get, { kind: "put", counter: 99, bodies: bodies("x") }).map(({ code }) => code)).toEqual([
        "OVERLOADED",
        "OVERLOADED",
      ]);
      store.reopen();
      expect(store.execute(get)[0]?.code).toBe("OVERLOADED");
      expect(codeThrown(() => store.transfer.activate("news", 1, "copy"))).toBe("STALE_TOKEN");
      store.transfer.activate("news", 2, "copy");
      expect(store.execute(get)[0]?.code).toBe("NOT_OWNER");
      expect(store.execute({ ...get, epoch: 2 })[0]?.messages?.[0]?.id).toBe(1);
      store.close();
    });

    test("ends gets that wait", () => {
      const store = driver();
      store.execute({ kind: "subscribe" });
      store.execute({ kind: "get", wait: true, ticket: 5 });
      const responses: string[] = [];
      store.onResponse = ({ ticket, code }) => responses.push(`${ticket} ${code}`);
      store.transfer.seal("news", 1, "s2");
      expect(responses).toEqual(["5 OVERLOADED"]);
      store.close();
    });

    test("refuses data that was cut, changed or mixed up, and keeps nothing of it", () => {
      const from = filled(), to = driver();
      from.transfer.seal("news", 1, "s2");
      const { pieces, hash } = from.exported();
      const whole = Uint8Array.from(pieces.flatMap((piece) => [...piece]));
      const cut = { pieces: [whole.subarray(0, whole.byteLength - 5)], hash };
      const changed = { pieces: [whole.with(whole.byteLength - 100, 7)], hash };
      for (const wrong of [cut, changed, { pieces: [whole, whole], hash }, { pieces: [whole.subarray(9)], hash }]) {
        expect(["BAD_DATA", "PROTOCOL"]).toContain(codeThrown(() => received(to, wrong)) ?? "nothing was thrown");
        expect(to.transfer.copiesOf("news").staged).toBeNull();
      }
      while (to.engine.writePending());
      expect(to.value("SELECT count(*) AS n FROM messages")).toBe(0);
      // In other pieces it is the same.
      received(to, { pieces: [whole.subarray(0, 3), whole.subarray(3, 500), whole.subarray(500)], hash });
      expect(to.transfer.copiesOf("news").staged).not.toBeNull();
      from.close();
      to.close();
    });

    test("of a higher epoch takes the place of what is here, and a lower one does not", () => {
      const from = filled(), to = driver();
      from.transfer.seal("news", 1, "s2");
      received(to, from.exported());
      // It is served in this epoch already.
      expect(codeThrown(() => to.transfer.activate("news", 1, "staged"))).toBeUndefined();
      expect(to.execute({ kind: "info", client: "zoë" })[0]?.end).toBe(0);
      to.transfer.activate("news", 2, "staged");
      expect(to.execute({ kind: "info", client: "zoë", epoch: 2 })[0]).toMatchObject({ end: 51, pending: 51 });
      expect(codeThrown(() => to.transfer.create("news", { incarnation: "b", baseOffset: 0, epoch: 1 }))).toBe(
        "STALE_TOKEN",
      );
      to.transfer.drop("news", 2);
      expect(to.transfer.copiesOf("news").copy?.epoch).toBe(2);
      to.transfer.drop("news", 3);
      expect(to.transfer.copiesOf("news")).toMatchObject({ copy: null, dropped: { incarnation: "b", epoch: 3 } });
      from.close();
      to.close();
    });

    property(
      "of any content conserves it, in pieces of any size",
      fc.record({
        puts: fc.array(fc.record({ client: fc.constantFrom("a", "b", "ä"), counter: fc.nat(30), size: fc.nat(300) }), {
          maxLength: 40,
        }),
        acked: fc.nat(40),
        piece: fc.integer({ min: 1, max: 2000 }),
      }),
      ({ puts, acked, piece }) => {
        const from = driver(), to = driver();
        from.execute({ kind: "subscribe", client: "reader" }, { kind: "subscribe", client: "late" });
        for (const { client, counter, size } of puts) {
          from.execute({ kind: "put", client, counter, bodies: [new Uint8Array(size).fill(counter)] });
        }
        const end = from.execute({ kind: "info" })[0]?.end ?? 0;
        for (const client of ["reader", "late"]) {
          from.execute({ kind: "get", client, last: Math.min(acked, end), max: 1 });
        }
        from.transfer.seal("news", 1, "s2");
        const { pieces, hash } = from.exported();
        const whole = Uint8Array.from(pieces.flatMap((bytes) => [...bytes]));
        const cut: Uint8Array[] = [];
        for (let at = 0; at < whole.byteLength; at += piece) cut.push(whole.subarray(at, at + piece));
        received(to, { pieces: cut, hash });
        to.transfer.activate("news", 2, "staged");
        from.transfer.activate("news", 2, "copy");
        const read = (store: EngineDriver) =>
          store.execute({ kind: "get", epoch: 2, client: "late", last: -1, max: 100, peek: true }).map((response) => ({
            ...response,
            ticket: 0,
            redelivered: 0,
          }));
        expect(read(to)).toEqual(read(from));
        from.close();
        to.close();
      },
      runsIn(place, { gate: 15, full: 500 }),
    );
  });

  property(
    "damaged data with a hash that fits it is refused or taken, and never breaks the store",
    fc.record({
      changes: fc.array(fc.record({ at: fc.nat(), to: fc.nat(255) }), { minLength: 1, maxLength: 3 }),
      move: fc.option(fc.record({ from: fc.nat(), length: fc.nat(60) })),
    }),
    ({ changes, move }) => {
      const from = filled(), to = driver();
      from.transfer.seal("news", 1, "s2");
      const pieces = from.exported().pieces.map((piece) => [...piece]);
      from.close();
      const bytes = pieces.flat();
      if (move !== null) bytes.push(...bytes.splice(move.from % bytes.length, move.length));
      for (const { at, to } of changes) bytes[at % bytes.length] = to;
      const whole = Uint8Array.from(bytes);
      const hash = createHash("sha256").update(whole).digest("hex");
      expect([undefined, "BAD_DATA", "PROTOCOL"]).toContain(codeThrown(() => received(to, { pieces: [whole], hash })));
      expect(to.execute({ kind: "put", counter: 1, bodies: bodies("still there") })[0]?.code).toBe("OK");
      to.close();
    },
    runsIn(place, { gate: 40, full: 2000 }),
  );

  test("a topic that is put aside is not answered from, and not deleted", () => {
    const store = filled();
    store.transfer.setAside("news");
    while (store.engine.writePending());
    expect(store.execute({ kind: "put", counter: 1, bodies: bodies("x") })[0]?.code).toBe("NOT_OWNER");
    expect(store.value("SELECT sum(last - first + 1) AS n FROM messages")).toBe(51);
    store.transfer.create("news", { incarnation: "c", baseOffset: 1000, epoch: 5 });
    expect(store.execute({ kind: "put", epoch: 5, counter: 1, bodies: bodies("x") })[0]?.ids).toEqual([{
      first: 1001,
      last: 1001,
    }]);
    store.close();
  });

  describe("a topic that was put back to an earlier time", () => {
    const baseOffset = 2 ** 44;
    const ids = (responses: readonly { messages?: readonly { id: number }[] }[]) =>
      responses.flatMap(({ messages }) => messages?.map(({ id }) => id) ?? []);

    test("gives numbers behind those that may have been given, and nobody misses what there never was", () => {
      const store = filled();
      // alice has had 7, zoë nothing; a third one everything.
      store.execute({ kind: "subscribe", client: "late" });
      store.transfer.raiseBaseOffset("news", baseOffset);
      store.transfer.raiseBaseOffset("news", baseOffset);
      store.reopen();
      const get = (client: string, last: number) => store.execute({ kind: "get", client, last, max: 100 });
      const pending = (client: string) => store.execute({ kind: "info", client })[0]?.pending;
      expect([pending("zoë"), pending("alice"), pending("late")]).toEqual([51, 44, 0]);
      const [put] = store.execute({ kind: "put", counter: 100, bodies: bodies("new") });
      expect(put?.ids).toEqual([{ first: baseOffset + 2, last: baseOffset + 2 }]);
      expect([pending("zoë"), pending("alice"), pending("late")]).toEqual([52, 45, 1]);
      const [old] = get("zoë", -1);
      expect([ids([old ?? {}]).length, old?.missed]).toEqual([51, 0]);
      // One has had messages that are lost.
      for (const [client, last] of [["zoë", 51], ["alice", 60], ["late", -1]] as const) {
        const [next] = store.execute({
          kind: "get",
          client,
          last,
          max: 100,
          ...(client === "alice" ? { session: { number: 3, key: "k" } } : {}),
        });
        expect([client, ids([next ?? {}]), next?.missed]).toEqual([client, [baseOffset + 2], 0]);
      }
      store.close();
    });

    test("keeps what retention by number keeps, and is handed off as it is", () => {
      const from = driver({ retainMessages: 21 }), to = driver();
      from.execute({ kind: "subscribe", client: "slow" });
      for (let counter = 1; counter <= 20; counter++) from.execute({ kind: "put", counter, bodies: bodies("x") });
      from.transfer.raiseBaseOffset("news", baseOffset);
      from.execute({ kind: "put", counter: 21, bodies: bodies("y") });
      from.transfer.seal("news", 1, "s2");
      const { pieces, hash } = from.exported();
      const transfer = to.transfer.importBegin("news", { incarnation: "b", baseOffset, owner: "s1", epoch: 1 });
      for (const piece of pieces) to.transfer.importPiece(transfer, piece);
      to.transfer.importDone(transfer, hash);
      to.transfer.activate("news", 2, "staged");
      expect(to.execute({ kind: "info", epoch: 2, client: "slow" })[0]).toMatchObject({ pending: 21 });
      const [old] = to.execute({ kind: "get", epoch: 2, client: "slow", last: -1, max: 100 });
      expect([ids([old ?? {}]).length, old?.missed]).toEqual([20, 0]);
      const [next] = to.execute({ kind: "get", epoch: 2, client: "slow", last: 20, max: 100 });
      expect([ids([next ?? {}]), next?.missed]).toEqual([[baseOffset + 2], 0]);
      for (const store of [from, to]) store.close();
    });
  });

  test("a dropped topic's rows go little by little", () => {
    const store = driver();
    store.execute({ kind: "subscribe" });
    for (let counter = 0; counter < 300; counter++) store.execute({ kind: "put", counter, bodies: bodies("x") });
    store.transfer.drop("news", 2);
    let steps = 0;
    while (store.engine.writePending()) steps++;
    expect(steps).toBeGreaterThan(4);
    for (const table of ["messages", "clients", "windows", "resolved", "topics"]) {
      expect([table, store.value(`SELECT count(*) AS n FROM ${table}`)]).toEqual([table, 0]);
    }
    store.close();
  });
});
