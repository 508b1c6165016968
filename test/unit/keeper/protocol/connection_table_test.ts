import { expect, test } from "bun:test";
import process from "node:process";
import { Crowd } from "../../../../src/keeper/protocol/connection_table.ts";
import { seededRandom } from "../../../support/random.ts";

const seed = Number(process.env["BATON_SEED"] ?? (Math.random() * 0x7fffffff) | 0);

const limits = { connectionsMax: 3, connectionsPerAddressMax: 2, heldBytesMax: 100, unsentBytesAllMax: 1000 };
const local = { address: null, nowMs: 0 };

test("when it is full the oldest without a session goes; when all have one, the new one", () => {
  const crowd = new Crowd<string>(limits);
  expect(["a", "b", "c"].map((name) => crowd.came(name, local))).toEqual([null, null, null]);
  crowd.known("a");
  expect(crowd.came("d", local)).toBe("b");
  // It has not left yet when the next comes.
  expect(crowd.came("e", local)).toBe("c");
  crowd.left("b");
  crowd.left("c");
  crowd.known("d");
  crowd.known("e");
  expect(crowd.came("f", local)).toBe("f");
  crowd.left("f");
  expect([...crowd]).toEqual(["a", "d", "e"]);
});

const at = (address: string | null) => ({ address, nowMs: 0 });

test("of an address that has too many the oldest without a session goes, never one with a session or of another address", () => {
  const crowd = new Crowd<string>({ ...limits, connectionsMax: 100, connectionsPerAddressMax: 3 });
  crowd.came("other", at("10.0.0.2"));
  for (const name of ["a", "b", "c"]) crowd.came(name, at("10.0.0.1"));
  crowd.known("a");
  expect([crowd.hasExcess, crowd.takeExcess()]).toEqual([false, []]);
  expect(crowd.came("d", at("10.0.0.1"))).toBeNull();
  expect([crowd.hasExcess, crowd.takeExcess(), crowd.hasExcess]).toEqual([true, ["b"], false]);
  // It has not left yet when the next come.
  for (const name of ["e", "f"]) expect(crowd.came(name, at("10.0.0.1"))).toBeNull();
  expect(crowd.takeExcess()).toEqual(["c", "d"]);
  for (const name of ["b", "c", "d", "d"]) crowd.left(name);
  expect([...crowd]).toEqual(["other", "a", "e", "f"]);
});

test("a connection that opens its session before it is looked for who has to go stays, however many came with it", () => {
  const crowd = new Crowd<string>({ ...limits, connectionsMax: 100 });
  for (const name of ["good", "a", "b", "c"]) crowd.came(name, at("10.0.0.1"));
  expect(crowd.hasRoom("good", undefined)).toBe(true);
  crowd.known("good");
  expect(crowd.takeExcess()).toEqual(["a", "b"]);
});

test("an address has so many sessions, and one that moves is none more; a unix socket's addresses are not told apart", () => {
  const crowd = new Crowd<string>({ ...limits, connectionsMax: 100 });
  for (const name of ["a", "b", "c"]) {
    crowd.came(name, at("10.0.0.1"));
    if (name !== "c") crowd.known(name);
  }
  crowd.came("d", at("10.0.0.2"));
  crowd.known("d");
  expect([crowd.hasRoom("c", undefined), crowd.hasRoom("c", "a"), crowd.hasRoom("c", "d")]).toEqual([
    false,
    true,
    false,
  ]);
  crowd.left("a");
  expect(crowd.hasRoom("c", undefined)).toBe(true);
  for (const name of ["u", "v", "w", "x"]) {
    crowd.came(name, at(null));
    expect(crowd.hasRoom(name, undefined)).toBe(true);
    crowd.known(name);
  }
  expect(crowd.hasExcess).toBe(true);
  expect(crowd.takeExcess()).toEqual([]);
});

test(`whoever comes and goes: no more than allowed stay, no session goes, the oldest go first [BATON_SEED=${seed}]`, () => {
  const random = seededRandom(seed);
  const max = { connectionsMax: 12, connectionsPerAddressMax: 5 };
  const crowd = new Crowd<number>({ ...limits, ...max });
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
    const gone = crowd.came(name, { address, nowMs: name });
    if (gone !== null) goes(gone, staying());
    expect(staying().length).toBeLessThanOrEqual(max.connectionsMax);
    if (random() < 0.5) {
      for (const other of crowd.takeExcess()) goes(other, staying(there.get(other)?.address));
      for (const [, one] of staying()) {
        if (one.address !== null) expect(staying(one.address).length).toBeLessThanOrEqual(max.connectionsPerAddressMax);
      }
    }
    for (const [other, one] of [...there]) {
      if (one.isGoing ? random() < 0.5 : random() < 0.1) {
        crowd.left(other);
        there.delete(other);
      } else if (!one.isGoing && !one.isKnown && random() < 0.2 && crowd.hasRoom(other, undefined)) {
        crowd.known(other);
        one.isKnown = true;
      }
    }
  }
});

test("who has not opened a session is known by how long ago he came", () => {
  const crowd = new Crowd<string>({ ...limits, connectionsMax: 100 });
  crowd.came("a", { address: null, nowMs: 1 });
  crowd.came("b", { address: null, nowMs: 2 });
  crowd.came("c", { address: null, nowMs: 3 });
  crowd.known("a");
  expect(crowd.strangersSince(3)).toEqual(["b"]);
});

test("together they may make the keeper hold so much; then the first to have begun goes, not the last", () => {
  const crowd = new Crowd<string>({ ...limits, connectionsMax: 100 });
  for (const name of ["a", "b", "c"]) crowd.came(name, local);
  expect(crowd.hold("a", 40, 0)).toEqual([]);
  expect(crowd.hold("b", 40, 900)).toEqual([]);
  expect(crowd.hold("a", 0, 0)).toEqual([]); // a break
  expect(crowd.hold("a", 40, 90)).toEqual([]);
  expect(crowd.hold("c", 40, 0)).toEqual(["b"]);
  expect(crowd.hold("c", 60, 0)).toEqual([]);
  crowd.left("a");
  expect(crowd.hold("c", 100, 0)).toEqual([]);
  expect(crowd.hold("c", 101, 0)).toEqual(["c"]); // even alone it is too much
});
