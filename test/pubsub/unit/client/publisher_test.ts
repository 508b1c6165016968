/** Puts against a server in memory that knows counters: answers are lost, requests are lost, the process is killed. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PubsubClientSession } from "../../../../src/pubsub/client/pubsub_client_session.ts";
import { ClientState } from "../../../../src/pubsub/client/client_state.ts";
import {
  emptyInputDigest,
  PutFilesCheckpoint,
  PutSequenceCheckpoint,
} from "../../../../src/pubsub/client/input_checkpoints.ts";
import { Publisher } from "../../../../src/pubsub/client/publisher.ts";
import type {
  PubsubRequester,
  PubsubRequestOptions,
  PubsubRequestOutcome,
} from "../../../../src/pubsub/client/requester.ts";
import { onAbort } from "../../../../src/base/support/abort.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import type { PubsubHeaders, PubsubMessageOf } from "../../../../src/pubsub/wire/pubsub_messages.ts";
import type { StatusCode } from "../../../../src/pubsub/wire/status_codes.ts";
import { seededRandom, testSeed } from "../../../support/random.ts";

let folder: string;
beforeEach(() => folder = mkdtempSync(join(tmpdir(), "baton-publisher-")));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const openState = () => ClientState.open(folder, "bob", { waitMs: 0, clock: systemClock() });
const bytes = (text: string) => new TextEncoder().encode(text);
const text = (body: Uint8Array) => new TextDecoder().decode(body);

/** What becomes of a request: done or not, and what is heard of it; "killed": nothing more is heard of anything. */
type Fate = "done" | "done, unheard" | "lost" | "full" | "killed" | "done, killed";

class FakeServer {
  readonly log: string[] = [];
  underWayMax = 0;
  /** The topic's number, and those that clients have become known with. */
  registration = 0;
  readonly registered: number[] = [];
  readonly heard: PubsubMessageOf<"PUT">[] = [];
  readonly #known = new Map<string, string>();
  readonly #firstUnacked = new Map<string, number>();
  #session = 0;
  #underWay = 0;

  /** The network delivers again what it has delivered before. */
  deliverAgain(put: PubsubMessageOf<"PUT"> | undefined): void {
    if (put !== undefined) this.#put(put);
  }

  requester(fate: (put: PubsubMessageOf<"PUT">) => Fate): PubsubRequester {
    const request = async (
      put: PubsubMessageOf<"PUT">,
      { signal, onSent }: PubsubRequestOptions = {},
    ): Promise<PubsubRequestOutcome> => {
      if (put.batch?.length === 0 && put.headers?.fromSession === undefined) return this.#register(put);
      onSent?.();
      this.#underWay += put.batch?.length ?? 1;
      this.underWayMax = Math.max(this.underWayMax, this.#underWay);
      this.heard.push(put);
      await new Promise((resolve) => setImmediate(resolve));
      this.#underWay -= put.batch?.length ?? 1;
      const what = fate(put);
      if (what === "killed" || what === "done, killed") {
        if (what === "done, killed") this.#put(put);
        return await new Promise((_, reject) => onAbort(signal, reject));
      }
      if (what === "full") return response("FULL");
      if ((put.headers?.registration ?? 0) < this.registration) return response("UNREGISTERED");
      if (put.batch?.length === 0 && what !== "lost") return this.#end(put);
      const status = what === "lost" ? null : this.#put(put);
      if (what !== "done") return { kind: "unknown", why: "nothing was heard", response: null };
      return status === "OVERLOADED" ? { kind: "fail", why: "", response: null } : response(status ?? "ERROR");
    };
    return { request } as unknown as PubsubRequester;
  }

  /** A put of nothing, before the first put: with its number, a topic that has forgotten the client since is told. */
  #register(put: PubsubMessageOf<"PUT">): PubsubRequestOutcome {
    if ((put.headers?.registration ?? 0) < this.registration) {
      return response("UNREGISTERED", { registration: this.registration });
    }
    this.registered.push(put.headers?.registration ?? 0);
    return response(this.#put(put));
  }

  /** As a server does it: store_engine.ts. */
  #end(put: PubsubMessageOf<"PUT">): PubsubRequestOutcome {
    this.#put(put);
    const { number, key } = put.headers?.fromSession ?? { number: 0, key: "" };
    const isStored = this.#known.has(`${number} ${key} ${put.counter}`);
    return response("OK", isStored ? { ids: [{ first: 1, last: 1 }] } : {});
  }

  /** As a server decides it: src/pubsub/store/decisions/decide_put.ts. */
  #put({ counter, headers = {}, body, batch = [body ?? new Uint8Array(0)] }: PubsubMessageOf<"PUT">): StatusCode {
    const { firstUnacked = 0, after, session } = headers;
    const { number, key } = headers.fromSession ?? session ?? { number: 0, key: "" };
    if ((session?.number ?? 0) < this.#session) return "FENCED";
    this.#session = session?.number ?? 0;
    const window = `${number} ${key}`;
    const bound = this.#firstUnacked.get(window) ?? 0;
    const slot = (at: number) => `${window} ${at}`;
    const counters = batch.map((_, place) => counter + place);
    if (counters.some((at) => at < bound)) return "STALE_OP";
    const fresh = counters.filter((at) => !this.#known.has(slot(at)));
    const isEarly = after !== undefined && after >= Math.max(bound, firstUnacked) && !this.#known.has(slot(after));
    if (fresh.length > 0 && isEarly) return "OVERLOADED";
    this.#firstUnacked.set(window, Math.max(bound, firstUnacked));
    for (const at of fresh) {
      const content = text(batch[at - counter] as Uint8Array);
      this.#known.set(slot(at), content);
      this.log.push(content);
    }
    return "OK";
  }
}

function response(status: StatusCode, headers: PubsubHeaders = {}): PubsubRequestOutcome {
  return { kind: "response", response: { name: "STATUS", sender: "s1", status, headers } };
}

async function* chunks(items: readonly string[], size = 100): AsyncGenerator<Uint8Array[], void, void> {
  for (let at = 0; at < items.length; at += size) {
    yield items.slice(at, at + size).map(bytes);
    await Promise.resolve();
  }
}

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `message ${index + 1}`);
const begin = { name: "lines", taken: 0, digest: emptyInputDigest };
const notesOf = (state: ClientState) =>
  new PutSequenceCheckpoint(state, "news", state.inputPosition("news", "lines") ?? begin);

test("all are stored in their order, 256 are under way at most, and no intent is left", async () => {
  const server = new FakeServer();
  using state = await openState();
  const items = numbered(2000);
  const publisher = new Publisher(new PubsubClientSession(state, server.requester(() => "done")), "news");
  expect(await publisher.putAll(chunks(items, 700), { input: notesOf(state) })).toBe(2000);
  expect(server.log).toEqual(items);
  expect(server.underWayMax).toBeLessThanOrEqual(256);
  expect(server.underWayMax).toBeGreaterThan(128);
  expect(state.putIntents("news")).toEqual([]);
  expect(state.inputPosition("news", "lines")?.taken).toBe(2000);
});

test("what the window has room for is noted by one write, before any of it is sent", async () => {
  const server = new FakeServer();
  using state = await openState();
  const write = state.runTransaction.bind(state);
  const noted: number[] = [];
  state.runTransaction = (work, options) => {
    write(work, options);
    noted.push(server.heard.length);
  };
  const publisher = new Publisher(new PubsubClientSession(state, server.requester(() => "done")), "news");
  await publisher.putAll(chunks(numbered(256), 256), { input: notesOf(state) });
  expect(server.heard.map(({ batch }) => batch?.length)).toEqual([64, 64, 64, 64]);
  // The session, the four requests, what became of them.
  expect(noted).toEqual([0, 0, 4]);
});

test("what could not be noted was not taken: the place stays before it, also when the disk is well again", async () => {
  const server = new FakeServer();
  const items = numbered(300);
  {
    using state = await openState();
    const add = state.addIntents.bind(state);
    let rows = 0;
    state.addIntents = (intents) => {
      if (++rows === 3) throw new Error("no room");
      add(intents);
    };
    const publisher = new Publisher(new PubsubClientSession(state, server.requester(() => "done")), "news");
    await expect(publisher.putAll(chunks(items, 100), { input: notesOf(state) })).rejects.toMatchObject({ code: "IO" });
    expect(state.inputPosition("news", "lines")?.taken).toBe(100);
  }
  using state = await openState();
  const publisher = new Publisher(new PubsubClientSession(state, server.requester(() => "done")), "news");
  await publisher.putAll(chunks(items.slice(100), 100), { input: notesOf(state) });
  expect(server.log).toEqual(items);
});

test("behind a message that was refused nothing is stored, and the place is before it", async () => {
  const server = new FakeServer();
  using state = await openState();
  const refuse = server.requester(({ counter, batch }) => counter === 129 && batch?.length !== 0 ? "full" : "done");
  const publisher = new Publisher(new PubsubClientSession(state, refuse), "news");
  const items = numbered(1000);
  await expect(publisher.putAll(chunks(items, 1000), { input: notesOf(state) })).rejects.toMatchObject({
    code: "STORE_FULL",
  });
  expect(server.log).toEqual(items.slice(0, 128));
  expect(state.putIntents("news")).toEqual([]);
  expect(state.inputPosition("news", "lines")?.taken).toBe(128);
});

test("what is behind a refusal is in the input and not kept as well, also if it was given up before", async () => {
  using state = await openState();
  const server = new FakeServer();
  let hasGivenUp = () => {};
  const givenUp = new Promise<void>((resolve) => hasGivenUp = resolve);
  const asked: number[] = [];
  const request = async (
    { counter }: PubsubMessageOf<"PUT">,
    { onSent }: PubsubRequestOptions = {},
  ): Promise<PubsubRequestOutcome> => {
    if (counter === 0) return response("OK"); // it becomes known
    onSent?.();
    asked.push(counter);
    if (counter > 1) {
      setImmediate(hasGivenUp);
      return { kind: "unknown", why: "nothing was heard", response: null };
    }
    await givenUp;
    return { kind: "fail", why: "no server was there", response: null };
  };
  const items = numbered(128);
  const publisher = new Publisher(new PubsubClientSession(state, { request } as unknown as PubsubRequester), "news");
  await expect(publisher.putAll(chunks(items, 128), { input: notesOf(state) })).rejects.toMatchObject({
    code: "UNREACHABLE",
  });
  expect(asked.slice(0, 2)).toEqual([1, 65]);
  expect(state.inputPosition("news", "lines")?.taken).toBe(0);
  expect(state.putIntents("news")).toEqual([]);
  const again = new PubsubClientSession(state, server.requester(() => "done"));
  await new Publisher(again, "news").resume();
  await new Publisher(again, "news").putAll(chunks(items), { input: notesOf(state) });
  expect(server.log).toEqual(items);
});

test("of inputs of one message each those that were stored are noted, and none behind a refusal", async () => {
  const server = new FakeServer();
  using state = await openState();
  const refuse = server.requester(({ counter, batch }) => counter === 65 && batch?.length !== 0 ? "full" : "done");
  const publisher = new Publisher(new PubsubClientSession(state, refuse), "news");
  const notes = new PutFilesCheckpoint(state, "news");
  const names = numbered(130);
  const each = async function* () {
    for await (const [body] of chunks(names, 1)) {
      if (body === undefined) throw new Error("unreachable");
      notes.addFile(`file ${text(body)}`, "c");
      yield [body];
    }
  };
  await expect(publisher.putAll(each(), { input: notes })).rejects.toMatchObject({ code: "STORE_FULL" });
  const noted = names.filter((name) => state.inputPosition("news", `file ${name}`) !== null);
  expect(noted).toEqual(names.slice(0, 64));
  expect(server.log).toEqual(noted);
});

test("an unknown outcome keeps the messages; resume sends the same again, in the earlier session's name", async () => {
  const server = new FakeServer();
  {
    using state = await openState();
    const publisher = new Publisher(new PubsubClientSession(state, server.requester(() => "done, unheard")), "news");
    await expect(publisher.putAll(chunks(["a", "b"]))).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect(state.putIntents("news").flatMap(({ bodies }) => bodies.map(text))).toEqual(["a", "b"]);
  }
  using state = await openState();
  const client = new PubsubClientSession(state, server.requester(() => "done"));
  expect(await new Publisher(client, "news").resume()).toBe(2);
  expect(server.log).toEqual(["a", "b"]);
  expect(server.heard.at(-1)).toMatchObject({ counter: 1, headers: { firstUnacked: 1, fromSession: { number: 1 } } });
  expect(await new Publisher(client, "news").resume()).toBe(0);
});

test("a refusal is told when its session has ended at the server: no copy of the request is stored then", async () => {
  const server = new FakeServer();
  using state = await openState();
  const refuse = server.requester(({ counter, batch }) => counter === 65 && batch?.length !== 0 ? "full" : "done");
  const publisher = new Publisher(new PubsubClientSession(state, refuse), "news");
  const items = numbered(130);
  await expect(publisher.putAll(chunks(items, 130), { input: notesOf(state) })).rejects.toMatchObject({
    code: "STORE_FULL",
  });
  expect(server.heard.at(-1)).toMatchObject({
    counter: 65,
    batch: [],
    headers: { session: { number: 2 }, fromSession: { number: 1 } },
  });
  for (const put of server.heard) server.deliverAgain(put);
  expect(server.log).toEqual(items.slice(0, 64));
});

test("a full topic whose server confirms no end of the session: the outcome is unknown; resume puts once", async () => {
  const server = new FakeServer();
  const items = numbered(130);
  {
    using state = await openState();
    const full = ({ counter, batch }: PubsubMessageOf<"PUT">): Fate =>
      counter < 65 ? "done" : batch?.length === 0 ? "lost" : "full";
    const publisher = new Publisher(new PubsubClientSession(state, server.requester(full)), "news");
    await expect(publisher.putAll(chunks(items, 64))).rejects.toMatchObject({
      code: "OUTCOME_UNKNOWN",
      message: expect.stringContaining("no server confirmed"),
    });
  }
  for (const put of server.heard) server.deliverAgain(put); // there is room again
  using state = await openState();
  await new Publisher(new PubsubClientSession(state, server.requester(() => "done")), "news").resume();
  expect(server.log).toEqual(items);
});

test("who was taken over does not take the topic back by the end of its session", async () => {
  const heard: PubsubMessageOf<"PUT">[] = [];
  const request = (put: PubsubMessageOf<"PUT">, { onSent }: PubsubRequestOptions = {}) => {
    onSent?.();
    heard.push(put);
    return Promise.resolve(response("FENCED"));
  };
  using state = await openState();
  const publisher = new Publisher(new PubsubClientSession(state, { request } as unknown as PubsubRequester), "news");
  await expect(publisher.putAll(chunks(["a"]))).rejects.toMatchObject({ code: "FENCED" });
  expect(heard).toHaveLength(1);
});

test.each([
  ["", false],
  [", and delivered again at any time,", true],
])(
  "whatever is lost%s and whenever it is killed, what is resumed to its end is stored once, in order",
  async (_, again) => {
    const base = testSeed();
    for (let seed = base; seed < base + 12; seed++) {
      const random = seededRandom(seed);
      const server = new FakeServer();
      const items = numbered(700);
      rmSync(folder, { recursive: true, force: true });
      let isDone = false;
      for (let life = 0; !isDone; life++) {
        using state = await openState();
        const kill = new AbortController();
        const fate = (put: PubsubMessageOf<"PUT">): Fate => {
          if (again) server.deliverAgain(server.heard[Math.floor(random() * server.heard.length)]);
          // A server confirms the end of a session, or the client is killed: otherwise only a full topic is safe from
          // copies.
          const chance = put.batch?.length === 0 ? 0.08 + random() : random();
          return fateBy(chance, life, kill);
        };
        isDone = await oneLife(new PubsubClientSession(state, server.requester(fate)), items, kill.signal);
        if (again) { for (const put of server.heard) server.deliverAgain(put); }
      }
      expect({ seed, log: server.log }).toEqual({ seed, log: items });
    }
  },
  60_000,
);

function fateBy(chance: number, life: number, kill: AbortController): Fate {
  const trouble = life > 30 ? 1 : chance;
  if (trouble < 0.03) return "done, unheard";
  if (trouble < 0.06) return "lost";
  if (trouble < 0.08) return "full";
  if (trouble > 0.12) return "done";
  setImmediate(() => kill.abort(new Error("killed")));
  return trouble < 0.1 ? "killed" : "done, killed";
}

/** Ends as a process that was killed does: what it has stored is there, and it says nothing more. */
async function oneLife(client: PubsubClientSession, items: readonly string[], killed: AbortSignal): Promise<boolean> {
  const publisher = new Publisher(client, "news");
  try {
    await publisher.resume({ signal: killed });
    const { taken } = client.state.inputPosition("news", "lines") ?? begin;
    await publisher.putAll(chunks(items.slice(taken)), { input: notesOf(client.state), signal: killed });
    return true;
  } catch {
    return false;
  }
}

test("a topic that forgot the client is asked again with its number before a put, and the number is kept", async () => {
  const server = new FakeServer();
  server.registration = 3;
  for (const known of [3, 3]) {
    using state = await openState();
    const publisher = new Publisher(new PubsubClientSession(state, server.requester(() => "done")), "news");
    expect(await publisher.putAll(chunks(numbered(3)))).toBe(3);
    expect(server.registered.at(-1)).toBe(known);
    expect(server.heard.at(-1)?.headers?.registration).toBe(known);
  }
});

test("a put during which a topic forgot the client is unknown, keeps its number, and can be given up", async () => {
  const server = new FakeServer();
  using state = await openState();
  const forget = server.requester(({ counter }) => {
    if (counter === 65) server.registration = 1;
    return "done";
  });
  const publisher = new Publisher(new PubsubClientSession(state, forget), "news");
  await expect(publisher.putAll(chunks(numbered(128), 128))).rejects.toMatchObject({
    code: "OUTCOME_UNKNOWN",
    message: expect.stringContaining("the topic has forgotten this client meanwhile"),
  });
  expect(server.log).toEqual(numbered(64));
  expect(state.putIntents("news").map(({ registration, counter }) => [registration, counter])).toEqual([[0, 65]]);
  const next = new Publisher(new PubsubClientSession(state, server.requester(() => "done")), "news");
  await expect(next.resume()).rejects.toMatchObject({
    code: "BAD_DATA",
    message: expect.stringContaining("UNREGISTERED"),
  });
  expect(server.heard.at(-1)?.headers?.registration).toBeUndefined();
  expect(state.putIntents("news")).toEqual([]);
  expect(server.log).toEqual(numbered(64));
});
