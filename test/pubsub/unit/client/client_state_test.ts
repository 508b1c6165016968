import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  chmodSync,
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import {
  clientSessionAfterResponse,
  ClientState,
  clientStateTables,
} from "../../../../src/pubsub/client/client_state.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";

let folder: string;
beforeEach(() => folder = mkdtempSync(join(tmpdir(), "baton-client-")));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const open = (id: string, waitMs = 0) => ClientState.open(folder, id, { waitMs, clock: systemClock() });

test("every process has a session of its own, beyond all that were used or seen", async () => {
  const numbers: number[] = [];
  for (let process = 0; process < 3; process++) {
    using state = await open("alice");
    const session = state.currentSession();
    expect(state.currentSession()).toBe(session);
    numbers.push(session.number);
  }
  {
    using state = await open("alice");
    state.observeSession(17);
    state.observeSession(9);
    expect(state.currentSession().number).toBe(18);
  }
  expect(numbers).toEqual([1, 2, 3]);
});

test("what is in the state is for its owner only, in whatever folder it is", async () => {
  chmodSync(folder, 0o755);
  using _state = await open("alice");
  for (const name of readdirSync(folder)) expect([name, statSync(join(folder, name)).mode & 0o077]).toEqual([name, 0]);
});

test("one process at a time: a second one waits, and goes on when the first has ended", async () => {
  const first = await open("alice");
  await expect(open("alice", 60)).rejects.toMatchObject({ code: "LOCK_BUSY" });
  using _other = await open("bob");
  const second = open("alice", 5000);
  first[Symbol.dispose]();
  (await second)[Symbol.dispose]();
});

test("a file that is another id's is refused, and so is another program's", async () => {
  (await open("alice"))[Symbol.dispose]();
  const [alice = ""] = readdirSync(folder).filter((name) => name.endsWith(".sqlite"));
  (await open("bob"))[Symbol.dispose]();
  const bob = readdirSync(folder).find((name) => name.endsWith(".sqlite") && name !== alice) ?? "";
  renameSync(join(folder, alice), join(folder, bob));
  await expect(open("bob")).rejects.toMatchObject({ code: "CONFIG" });
  await Bun.write(
    join(folder, alice),
    "something else altogether, and long enough to be looked at as a database".repeat(20),
  );
  await expect(open("alice")).rejects.toMatchObject({ code: "IO" });
});

test("intents, places and inputs are there after the process has ended; what failed half way is not", async () => {
  const body = new Uint8Array([0, 255, 10]);
  {
    using state = await open("alice");
    const session = state.currentSession();
    state.runTransaction(() => {
      for (const counter of [1, 2]) {
        state.addIntents({ topic: "news", session, registration: 0, counter, msgId: null, bodies: [body] });
      }
      state.addIntents({
        topic: "news",
        session,
        registration: 0,
        counter: 3,
        msgId: null,
        bodies: [body, new Uint8Array(0), body],
      });
      state.addIntents({ topic: "else", session, registration: 0, counter: 4, msgId: "key", bodies: [body] });
      state.setInput("news", { name: "lines", taken: 3, digest: "abc" });
    });
    state.runTransaction(() => state.settleIntents({ topic: "news", session }, { first: 2, last: 2 }));
    state.setPosition("news", { cursor: 4, intent: 7, folder: "/inbox" });
    expect(() =>
      state.runTransaction(() => {
        state.setInput("news", { name: "else", taken: 0, digest: "" });
        throw new Error("half way");
      })
    ).toThrow("half way");
  }
  using state = await open("alice");
  expect(state.putIntents("news").map(({ counter }) => counter)).toEqual([1, 3]);
  expect(state.putIntents("news").map(({ bodies }) => bodies)).toEqual([[body], [body, new Uint8Array(0), body]]);
  expect(state.countIntents("news")).toBe(4);
  expect(state.countIntents("none")).toBe(0);
  expect(state.putIntents("else")[0]?.msgId).toBe("key");
  expect(state.subscriberPosition("news")).toEqual({ cursor: 4, intent: 7, folder: "/inbox" });
  expect(state.subscriberPosition("else")).toEqual({ cursor: -1, intent: -1, folder: null });
  expect(state.inputPosition("news", "lines")).toEqual({ name: "lines", taken: 3, digest: "abc" });
  expect(state.inputPosition("news", "else")).toBeNull();
});

test.each([
  ["a later session of another process", 5, 17, 0, 17],
  ["an earlier one", 5, 3, 0, 5],
  ["one that leaves no room", 5, 2 ** 53 - 1, 0, 2 ** 48 - 2 ** 22],
  ["the same again: a step", 2 ** 48 - 2 ** 22, 2 ** 53 - 1, 0, 2 ** 48 - 2 ** 22 + 2 ** 20],
  ["one that a server has accepted from another program", 5, 2 ** 48 + 1, 0, 2 ** 48 + 1],
  ["one that another program has reached in steps", 5, 2 ** 48 + 64 * 2 ** 20, 0, 2 ** 48 + 64 * 2 ** 20],
  ["an earlier one, of a server that refuses a number which wrong responses have raised", 2 ** 48 + 9, 5, 0, 5],
  ["an earlier one, while puts of a later session are stored", 2 ** 48 + 9, 5, 7, 7],
  ["the last number that there is", 2 ** 53 - 2, 2 ** 53 - 1, 0, 2 ** 53 - 2],
])("the session after a response that names %s", (_, own, said, used, expected) => {
  expect(clientSessionAfterResponse(own, said, used)).toBe(expected);
});

test("a state without a session number left says so, and stays as it is", async () => {
  let path = "";
  {
    using state = await open("alice");
    path = state.path;
  }
  {
    using database = new DatabaseSync(path);
    const row = clientStateTables.client.valuesToBind({ only: 0, id: "alice", session: Number.MAX_SAFE_INTEGER });
    database.prepare(clientStateTables.client.replace).run(...row);
  }
  for (let tries = 0; tries < 2; tries++) {
    using state = await open("alice");
    expect(() => state.currentSession()).toThrow('Client "alice" has no session number left; use another client ID');
  }
});

for (const [format, age] of [[4, "a version before the first release"], [6, "a newer version"]] as const) {
  test(`a state of another format is refused, and says so: ${age}`, async () => {
    (await open("alice"))[Symbol.dispose]();
    const [name = ""] = readdirSync(folder).filter((file) => file.endsWith(".sqlite"));
    const other = new DatabaseSync(join(folder, name));
    other.exec(`PRAGMA user_version = ${format}`);
    other.close();
    await expect(open("alice")).rejects.toMatchObject({
      code: "CONFIG",
      message: expect.stringContaining(
        `was written by ${age} (format ${format}); this version of baton reads format 5`,
      ),
    });
  });
}

test("what a disk has changed of it is not taken for a message, a place or a session", async () => {
  let path = "";
  {
    using state = await open("alice");
    path = state.path;
    const session = state.currentSession();
    const bodies = [new TextEncoder().encode("pay 100")];
    state.runTransaction(() => {
      state.addIntents({ topic: "news", session, registration: 0, counter: 1, msgId: null, bodies });
      state.setInput("news", { name: "lines", taken: 3, digest: "c" });
    });
    state.setPosition("news", { cursor: 4, intent: 4, folder: null });
  }
  const changes = {
    "UPDATE intents SET bodies = CAST('pay 900' AS BLOB)": (state: ClientState) => state.putIntents("news"),
    "UPDATE places SET cursor = 5": (state: ClientState) => state.subscriberPosition("news"),
    "UPDATE inputs SET taken = 4": (state: ClientState) => state.inputPosition("news", "lines"),
    "UPDATE client SET session = 0": (state: ClientState) => state.currentSession(),
  };
  for (const [change, read] of Object.entries(changes)) {
    const database = new DatabaseSync(path);
    database.exec(change);
    database.close();
    using state = await open("alice");
    expect(() => read(state)).toThrow(`The state of client "alice" at ${path} is damaged in its`);
  }
});

test("a state whose damage is found as it is opened is not locked afterwards", async () => {
  let path = "";
  {
    using state = await open("alice");
    path = state.path;
    state.currentSession();
  }
  const database = new DatabaseSync(path);
  database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  const page = database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'client'").get()
    ?.["rootpage"] as number;
  const size = database.prepare("PRAGMA page_size").get()?.["page_size"] as number;
  database.close();
  const file = openSync(path, "r+");
  writeSync(file, new Uint8Array(size).fill(0xff), 0, size, (page - 1) * size);
  closeSync(file);
  for (let tries = 0; tries < 2; tries++) {
    const opening = open("alice").then(() => "opened", (error) => error.code);
    expect(await opening).toBe("IO");
  }
});

test("messages whose lengths are not those of their bytes are said to be damaged, and not sent", async () => {
  let path = "";
  {
    using state = await open("alice");
    path = state.path;
    const bodies = [new Uint8Array([1, 2]), new Uint8Array([3])];
    const session = state.currentSession();
    state.runTransaction(() =>
      state.addIntents({ topic: "news", session, registration: 0, counter: 1, msgId: null, bodies })
    );
  }
  for (const lengths of ["00000002", "0000000200000002", "ffffffff00000004", "00"]) {
    const database = new DatabaseSync(path);
    database.exec(`UPDATE intents SET lengths = x'${lengths}'`);
    database.close();
    using state = await open("alice");
    expect(() => state.putIntents("news")).toThrow(/damaged/);
  }
});
