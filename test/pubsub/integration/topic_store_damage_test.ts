/**
 * A disk that changes bits under a topic store: nothing damaged is delivered, everything damaged is found, and all else
 * is served.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { TopicDatabase } from "../../../src/pubsub/store/sqlite/topic_database.ts";
import { verifyTopicStore } from "../../../src/pubsub/store/sqlite/verify_topic_store.ts";
import { DamagedCopies, problemsOf } from "../../support/damaged_copies.ts";
import { dose } from "../../support/dose.ts";
import { flipBit } from "../../support/flip_bit.ts";
import { seededRandom, testSeed } from "../../support/random.ts";
import { EngineDriver } from "../unit/store/engine_driver.ts";

setDefaultTimeout(300_000);

const stored = ["topics", "messages", "clients", "windows", "resolved", "msg_ids", "dropped", "generation", "store"];
let copies = new DamagedCopies("topics.sqlite", stored);
beforeEach(() => copies = new DamagedCopies("topics.sqlite", stored));
afterEach(() => copies[Symbol.dispose]());

const seed = testSeed();
const flips = dose({ gate: 200, full: 10_000 });
const topics = ["news", "other"] as const;
const subscribers = ["alice", "bob"] as const;
const rounds = 60;

const textOf = (topic: string, id: number) => `${topic} ${id} `.repeat(id % 7 === 0 ? 700 : 20);

/** Each with the id of its first message as its counter. */
function putsOf(topic: string) {
  let id = 1;
  return Array.from({ length: rounds }, (_, round) => {
    const count = round % 3 === 0 ? 5 : 1;
    const bodies = Array.from({ length: count }, (_, at) => new TextEncoder().encode(textOf(topic, id + at)));
    const session = round % 2 === 0 ? { number: 1 + Math.floor(round / 20), key: "key" } : null;
    const msgId = count === 1 && round % 4 === 0 ? `key ${round}` : null;
    const put = { kind: "put", topic, client: `publisher ${round % 5}`, session, counter: id, bodies, msgId } as const;
    id += count;
    return put;
  });
}

/** Everything is put again; throws where something is stored twice, or refused for another reason than its damage. */
function repeatAll(store: EngineDriver, topic: string): void {
  if (store.transfer.copiesOf(topic).copy === null) return;
  for (const put of putsOf(topic)) {
    const [response] = store.execute(put);
    const isSame = response?.code === "OK" && response.ids?.[0]?.first === put.counter;
    if (isSame || response?.code === "DAMAGED" || response?.code === "FENCED") continue;
    const became = `${response?.code} ${response?.ids?.[0]?.first}: ${response?.reason}`;
    throw new Error(`message ${put.counter} of ${topic}, which ${put.client} puts again, was answered ${became}`);
  }
}

/** Two topics with two subscribers each, publishers of many kinds, rows of one and of several messages. */
function filled(folder: string): void {
  const store = new EngineDriver(folder);
  store.transfer.create("other", { incarnation: "o", baseOffset: 0, epoch: 1 });
  for (const topic of topics) {
    for (const client of subscribers) store.execute({ kind: "subscribe", topic, client, op: 1 });
    for (const put of putsOf(topic)) store.execute(put);
  }
  store.engine.writePending();
  store.close();
}

interface Read {
  readonly count: number;
  readonly refusal: string | null;
}

/**
 * What a subscriber gets, message by message; throws when it is given what was not stored, or passes over something.
 */
function readAll(store: EngineDriver, topic: string, client: string): Read {
  for (let last = 0;;) {
    const [response] = store.execute({ kind: "get", topic, client, last, max: 3 });
    if (response?.code === "NO_MESSAGE" && (response.missed ?? 0) === 0) return { count: last, refusal: null };
    if (response?.code !== "OK") return { count: last, refusal: `${response?.code}: ${response?.reason}` };
    if ((response.missed ?? 0) > 0) {
      throw new Error(`${client} was told that it has missed ${response.missed} of ${topic}`);
    }
    for (const { id, body } of response.messages ?? []) {
      const text = new TextDecoder().decode(body);
      if (id !== last + 1) throw new Error(`${client} was given ${id} of ${topic} behind ${last}`);
      if (text !== textOf(topic, id)) {
        throw new Error(`${client} was given ${JSON.stringify(text)} as ${id} of ${topic}`);
      }
      last = id;
    }
  }
}

/** By topic and subscriber; a sentence when the store could not be opened at all. */
function readEverything(folder: string): string | Map<string, Read> {
  let store: EngineDriver;
  try {
    store = new EngineDriver(folder, {}, { creates: false });
  } catch (error) {
    return String(error);
  }
  const reads = new Map<string, Read>();
  try {
    for (const topic of topics) {
      for (const client of subscribers) reads.set(`${topic} ${client}`, readAll(store, topic, client));
      repeatAll(store, topic);
    }
  } catch (error) {
    // SQLite found its pages damaged when something was to be written: the server ends with 74.
    if (!/malformed|corrupt/i.test(String(error))) throw error;
    return String(error);
  } finally {
    store.close();
  }
  return reads;
}

test(`a flipped bit anywhere in the database is found or harmless; no damage is used [BATON_SEED=${seed}]`, () => {
  const folder = join(copies.root, "whole");
  filled(folder);
  expect(verifyTopicStore(folder).problems).toEqual([]);
  const original = copies.contents(folder);
  const bits = statSync(copies.path(folder)).size * 8;
  const random = seededRandom(seed);
  const total = rounds + Math.ceil(rounds / 3) * 4;
  const seen = { harmless: 0, refused: 0, unopened: 0 };
  for (let flip = 0; flip < flips; flip++) {
    const bit = Math.floor(random() * bits);
    const copy = copies.copy(folder, "flipped");
    flipBit(copies.path(copy), bit);
    const problems = problemsOf(() => verifyTopicStore(copy));
    const isSame = problems.length === 0 && copies.contents(copy) === original;
    const reads = readEverything(copy);
    const at = `bit ${bit}: ${problems.join("; ")}`;
    if (problems.length === 0) {
      expect([at, isSame]).toEqual([at, true]);
      expect([at, typeof reads === "string" ? reads : ""]).toEqual([at, ""]);
      seen.harmless++;
    }
    if (typeof reads === "string") {
      seen.unopened++;
      continue;
    }
    const missing = [...reads].filter(([, { count }]) => count !== total);
    for (const [who, { refusal }] of missing) expect([at, who, refusal]).toEqual([at, who, expect.any(String)]);
    if (missing.length > 0) seen.refused++;
    // Damage in one topic's messages is none of the other's.
    if (problems.length > 0 && problems.every((one) => /^row \d+ of the messages of topic "news"/.test(one))) {
      expect([at, missing.filter(([who]) => who.startsWith("other"))]).toEqual([at, []]);
    }
  }
  console.log(`of ${flips} flips: ${JSON.stringify(seen)}`);
  expect(seen.refused).toBeGreaterThan(flips / 4);
});

test("a flipped bit in the log of a killed store is found; the store opens only if damage is accepted", () => {
  const folder = join(copies.root, "killed");
  filled(folder);
  const store = new EngineDriver(folder, {}, { creates: false });
  for (let round = 0; round < 40; round++) {
    store.execute({ kind: "put", counter: 10_000 + round, bodies: [new Uint8Array(100).fill(round)] });
  }
  const killed = copies.copy(folder, "copy");
  store.close();
  const log = readFileSync(copies.path(killed, "-wal"));
  expect(log.byteLength).toBeGreaterThan(40 * 4096);
  const random = seededRandom(seed);
  for (let flip = 0; flip < 50; flip++) {
    const copy = copies.copy(killed, "flipped");
    flipBit(copies.path(copy, "-wal"), Math.floor(random() * 8 * 20 * 4096));
    expect(problemsOf(() => verifyTopicStore(copy)).join()).toContain("the log");
    expect(() => new TopicDatabase(copy)).toThrow(/the log[^]*restore --id ID/);
    new TopicDatabase(copy, { acceptDamagedLog: true }).close();
  }
});
