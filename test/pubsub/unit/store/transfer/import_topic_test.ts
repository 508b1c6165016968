/** A topic that gives messages up while it is on its way to another server. */
import { describe, expect, test } from "bun:test";
import { type EngineDriver, engineDrivers, rowPlaces } from "../engine_driver.ts";
import { bodies, get, put } from "../some_operations.ts";

describe.each(rowPlaces)("rows that are %s:", (place) => {
  const driver = engineDrivers(place);

  /** Sends it while `meanwhile` happens to it, which comes when all that is there was sent, and opens it in epoch 2. */
  function handOff(from: EngineDriver, to: EngineDriver, meanwhile: () => void): void {
    const outgoing = from.transfer.exportBegin("news", 1);
    to.transfer.drop("news", 2);
    const incoming = to.transfer.importBegin("news", { incarnation: "b", baseOffset: 0, owner: "s1", epoch: 1 });
    for (let rounds = 0;;) {
      const { piece, isCaughtUp, hash } = from.transfer.exportNext(outgoing);
      if (piece !== null) to.transfer.importPiece(incoming, piece);
      if (hash !== null) {
        to.transfer.importDone(incoming, hash);
        break;
      }
      if (!isCaughtUp) continue;
      if (rounds++ === 0) meanwhile();
      else from.transfer.seal("news", 1, "s2");
    }
    to.transfer.activate("news", 2, "staged");
  }

  test.each([
    ["one by one", 1],
    ["in rows of several", 4],
  ])("what a reader was told is gone does not come from the next owner, stored %s", (_, batch) => {
    const from = driver({ retainMessages: 10 });
    const to = driver({ retainMessages: 10 });
    from.execute({ kind: "subscribe", client: "alice" }, { kind: "subscribe", client: "zoë" });
    const more = (count: number, counter: number) => {
      for (let at = counter; at < counter + count; at += batch) {
        from.execute(put(at, "", { bodies: bodies(...Array.from({ length: batch }, (_, state) => `m${at + state}`)) }));
      }
    };
    const look = (store: EngineDriver, epoch: number) => {
      const [{ messages = [], missed } = {}] = store.execute(get(-1, { client: "alice", epoch, max: 100 }));
      return { missed, ids: messages.map(({ id }) => id) };
    };
    more(12, 1);
    let told: unknown;
    handOff(from, to, () => {
      more(16, 13);
      told = look(from, 1);
      expect(told).toMatchObject({ missed: batch === 1 ? 18 : 16 });
    });
    expect(look(to, 2)).toEqual(told as ReturnType<typeof look>);
    // And the same after a restart, and once more after the next row has gone.
    to.reopen();
    expect(look(to, 2)).toEqual(told as ReturnType<typeof look>);
    to.execute(put(29, "m29", { epoch: 2 }));
    expect(look(to, 2).ids.at(-1)).toBe(29);
    from.close();
    to.close();
  });

  test("a publisher with more counters than one record of a transfer has can put at the new owner", () => {
    const from = driver();
    const to = driver();
    from.execute({ kind: "subscribe", client: "alice" });
    const session = { number: 1, key: "k" };
    const batch = (counter: number, epoch = 1) =>
      put(counter, "", { session, epoch, bodies: bodies(...Array.from({ length: 1000 }, () => "m")) });
    for (let counter = 1; counter < 5000; counter += 1000) {
      expect(from.execute(batch(counter))).toMatchObject([{ code: "OK" }]);
    }
    handOff(from, to, () => {});
    expect(to.execute(batch(4001, 2))).toMatchObject([{ code: "OK", ids: [{ first: 4001, last: 5000 }] }]);
    from.close();
    to.close();
  });
});
