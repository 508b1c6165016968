import { expect, test } from "bun:test";
import { KeeperConnectionTable } from "../../../../../src/coordination/keeper/protocol/connection_table.ts";
import { seededRandom, testSeed } from "../../../../support/random.ts";

const seed = testSeed();

const limits = {
  connectionsMax: 3,
  connectionsPerAddressMax: 2,
  readBufferBytesTotalMax: 100,
  unsentBytesTotalMax: 1000,
};
const local = { address: null, nowMs: 0 };

test("when it is full the oldest without a session goes; when all have one, the new one", () => {
  const table = new KeeperConnectionTable<string>(limits);
  expect(["a", "b", "c"].map((name) => table.add(name, local))).toEqual([null, null, null]);
  table.sessionOpened("a");
  expect(table.add("d", local)).toBe("b");
  // It has not left yet when the next comes.
  expect(table.add("e", local)).toBe("c");
  table.remove("b");
  table.remove("c");
  table.sessionOpened("d");
  table.sessionOpened("e");
  expect(table.add("f", local)).toBe("f");
  table.remove("f");
  expect([...table]).toEqual(["a", "d", "e"]);
});

const at = (address: string | null) => ({ address, nowMs: 0 });

test("of an address with too many the oldest without a session goes, never one with a session or of another", () => {
  const table = new KeeperConnectionTable<string>({ ...limits, connectionsMax: 100, connectionsPerAddressMax: 3 });
  table.add("other", at("10.0.0.2"));
  for (const name of ["a", "b", "c"]) table.add(name, at("10.0.0.1"));
  table.sessionOpened("a");
  expect([table.hasExcess, table.takeExcess()]).toEqual([false, []]);
  expect(table.add("d", at("10.0.0.1"))).toBeNull();
  expect([table.hasExcess, table.takeExcess(), table.hasExcess]).toEqual([true, ["b"], false]);
  // It has not left yet when the next come.
  for (const name of ["e", "f"]) expect(table.add(name, at("10.0.0.1"))).toBeNull();
  expect(table.takeExcess()).toEqual(["c", "d"]);
  for (const name of ["b", "c", "d", "d"]) table.remove(name);
  expect([...table]).toEqual(["other", "a", "e", "f"]);
});

test("a connection that opens its session before excess ones are chosen stays, however many came with it", () => {
  const table = new KeeperConnectionTable<string>({ ...limits, connectionsMax: 100 });
  for (const name of ["good", "a", "b", "c"]) table.add(name, at("10.0.0.1"));
  expect(table.hasRoom("good", undefined)).toBe(true);
  table.sessionOpened("good");
  expect(table.takeExcess()).toEqual(["a", "b"]);
});

test("an address has so many sessions, and one that moves adds none; a unix socket has one address for all", () => {
  const table = new KeeperConnectionTable<string>({ ...limits, connectionsMax: 100 });
  for (const name of ["a", "b", "c"]) {
    table.add(name, at("10.0.0.1"));
    if (name !== "c") table.sessionOpened(name);
  }
  table.add("d", at("10.0.0.2"));
  table.sessionOpened("d");
  expect([table.hasRoom("c", undefined), table.hasRoom("c", "a"), table.hasRoom("c", "d")]).toEqual([
    false,
    true,
    false,
  ]);
  table.remove("a");
  expect(table.hasRoom("c", undefined)).toBe(true);
  for (const name of ["u", "v", "w", "x"]) {
    table.add(name, at(null));
    expect(table.hasRoom(name, undefined)).toBe(true);
    table.sessionOpened(name);
  }
  expect(table.hasExcess).toBe(true);
  expect(table.takeExcess()).toEqual([]);
});

test(`in any order: no more than allowed stay, no session goes, the oldest go first [BATON_SEED=${seed}]`, () => {
  const random = seededRandom(seed);
  const max = { connectionsMax: 12, connectionsPerAddressMax: 5 };
  const table = new KeeperConnectionTable<number>({ ...limits, ...max });
  const there = new Map<number, { address: string | null; isKnown: boolean; isGoing: boolean }>();
  const staying = (address?: string | null) =>
    [...there].filter(([, one]) => !one.isGoing && (address === undefined || one.address === address));
  const goes = (name: number, among: typeof staying extends (...args: never) => infer List ? List : never) => {
    expect(name).toBe(among.find(([, one]) => !one.isKnown)?.[0] ?? NaN);
    Object.assign(there.get(name) ?? {}, { isGoing: true });
  };
  for (let name = 0; name < 5_000; name++) {
    const address = random() < 0.2 ? null : `10.0.0.${Math.floor(random() * 4)}`;
    there.set(name, { address, isKnown: false, isGoing: false });
    const gone = table.add(name, { address, nowMs: name });
    if (gone !== null) goes(gone, staying());
    expect(staying().length).toBeLessThanOrEqual(max.connectionsMax);
    if (random() < 0.5) {
      for (const other of table.takeExcess()) goes(other, staying(there.get(other)?.address));
      for (const [, one] of staying()) {
        if (one.address !== null) expect(staying(one.address).length).toBeLessThanOrEqual(max.connectionsPerAddressMax);
      }
    }
    for (const [other, one] of [...there]) {
      if (one.isGoing ? random() < 0.5 : random() < 0.1) {
        table.remove(other);
        there.delete(other);
      } else if (!one.isGoing && !one.isKnown && random() < 0.2 && table.hasRoom(other, undefined)) {
        table.sessionOpened(other);
        one.isKnown = true;
      }
    }
  }
});

test("who has not opened a session is known by how long ago he came", () => {
  const table = new KeeperConnectionTable<string>({ ...limits, connectionsMax: 100 });
  table.add("a", { address: null, nowMs: 1 });
  table.add("b", { address: null, nowMs: 2 });
  table.add("c", { address: null, nowMs: 3 });
  table.sessionOpened("a");
  expect(table.withoutSessionBefore(3)).toEqual(["b"]);
});

test("together they may make the keeper hold so much; then the first to have begun goes, not the last", () => {
  const table = new KeeperConnectionTable<string>({ ...limits, connectionsMax: 100 });
  for (const name of ["a", "b", "c"]) table.add(name, local);
  expect(table.setHeldBytes("a", 40, 0)).toEqual([]);
  expect(table.setHeldBytes("b", 40, 900)).toEqual([]);
  expect(table.setHeldBytes("a", 0, 0)).toEqual([]); // a break
  expect(table.setHeldBytes("a", 40, 90)).toEqual([]);
  expect(table.setHeldBytes("c", 40, 0)).toEqual(["b"]);
  expect(table.setHeldBytes("c", 60, 0)).toEqual([]);
  table.remove("a");
  expect(table.setHeldBytes("c", 100, 0)).toEqual([]);
  expect(table.setHeldBytes("c", 101, 0)).toEqual(["c"]); // even alone it is too much
});
