/**
 * A disk that changes bits under a message store: nothing damaged is tried, everything damaged is found, and all else
 * is tried.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { RetryDatabase } from "../../../src/retry/queue/sqlite/retry_database.ts";
import type { StoreMethods } from "../../../src/retry/queue/store_methods.ts";
import { verifyRetryStore } from "../../../src/retry/queue/sqlite/verify_retry_store.ts";
import { DamagedCopies, problemsOf } from "../../support/damaged_copies.ts";
import { dose } from "../../support/dose.ts";
import { flipBit } from "../../support/flip_bit.ts";
import { seededRandom, testSeed } from "../../support/random.ts";
import { folderCalls, rigMessage, rigRules, rigSuccess } from "../../support/retry_rig.ts";

setDefaultTimeout(300_000);

const tables = ["store", "totals", "messages", "bodies", "processors", "forward_failures", "ingest_offsets"];
let copies = new DamagedCopies("messages.sqlite", tables);
beforeEach(() => copies = new DamagedCopies("messages.sqlite", tables));
afterEach(() => copies[Symbol.dispose]());

const seed = testSeed();
const flips = dose({ gate: 200, full: 10_000 });
const count = 80;
const pageBytes = 4096;
const rules = { ...rigRules, maxBytes: 1 << 24 };
const textOf = (number: number) => `message ${number} `.repeat(number % 9 === 0 ? 800 : 30);

function opened<T>(folder: string, work: (ask: RetryDatabase["transaction"], methods: StoreMethods) => T): T {
  const database = new RetryDatabase(folder);
  try {
    return work((ask) => database.transaction(ask), folderCalls(database, rules, () => 0.5));
  } finally {
    database.close();
  }
}

function filled(): string {
  const folder = join(copies.root, "whole");
  opened(folder, (transaction, { accept, ingest }) => {
    for (let number = 1; number <= count; number++) {
      transaction(() =>
        accept([rigMessage(textOf(number), { key: number % 4 === 0 ? `key ${number % 8}` : null })], 1)
      );
    }
    transaction(() => ingest("news", [{ id: 7, body: new TextEncoder().encode(textOf(count + 1)) }], 1));
  });
  return folder;
}

/** The numbers of the messages that are given out to be tried, each with the body that was stored; others throw. */
function tried(folder: string, order: "none" | "key" = "none"): Set<number> {
  const found = new Set<number>();
  opened(folder, (transaction, { register, claim, finish }) => {
    const owner = transaction(() => register("boot", 1e12, 1, 2));
    for (;;) {
      const { messages } = transaction(() => claim({ owner, max: 7, order, nowMs: 2 }));
      if (messages.length === 0) return;
      for (const { seq, fence, body } of messages) {
        const text = new TextDecoder().decode(body);
        if (text !== textOf(seq)) throw new Error(`message ${seq} was given out as ${JSON.stringify(text)}`);
        if (found.has(seq)) throw new Error(`message ${seq} was given out twice`);
        found.add(seq);
        transaction(() => finish({ seq, fence, owner, end: rigSuccess, error: null, nowMs: 2 }));
      }
    }
  });
  return found;
}

/** Null when the structure of the database is damaged: nothing is done in this store any more. */
function triedUnlessUnusable(copy: string): Set<number> | null {
  try {
    return tried(copy);
  } catch (error) {
    const unusable = /malformed|corrupt|not a database|too large|damaged|format|another program|no such|schema/i;
    if (!unusable.test(String(error))) throw error;
    return null;
  }
}

test(`an index of what is due that names a message twice lets no message be tried twice [BATON_SEED=${seed}]`, () => {
  const folder = filled();
  using database = new DatabaseSync(copies.path(folder), { readOnly: true });
  const page = Number(
    database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'messages_due'").get()?.["rootpage"],
  );
  const pageEnd = page * pageBytes;
  // The entries are at the end of the page; its header says where they begin (SQLite's file format, 1.6).
  const start = readFileSync(copies.path(folder)).readUInt16BE(pageEnd - pageBytes + 5);
  const random = seededRandom(seed);
  const tries = Array.from({ length: 60 }, () => {
    const copy = copies.copy(folder, "flipped");
    const bits = 8 * (pageBytes - start);
    flipBit(copies.path(copy), 8 * pageEnd - bits + Math.floor(random() * bits));
    return triedUnlessUnusable(copy);
  });
  expect(tries.filter((got) => got !== null && got.size < count + 1).length).toBeGreaterThan(0);
});

test(`a flipped bit anywhere in the store is found or harmless; nothing damaged is tried [BATON_SEED=${seed}]`, () => {
  const folder = filled();
  expect(verifyRetryStore(folder).problems).toEqual([]);
  const original = copies.contents(folder);
  const bits = statSync(copies.path(folder)).size * 8;
  const random = seededRandom(seed);
  const seen = { harmless: 0, refused: 0, unopened: 0 };
  for (let flip = 0; flip < flips; flip++) {
    const bit = Math.floor(random() * bits);
    const copy = copies.copy(folder, "flipped");
    flipBit(copies.path(copy), bit);
    const problems = problemsOf(() => verifyRetryStore(copy));
    const at = `bit ${bit}: ${problems.join("; ")}`;
    if (problems.length === 0) {
      expect([at, copies.contents(copy) === original]).toEqual([at, true]);
      seen.harmless++;
    }
    const got = triedUnlessUnusable(copy);
    if (got === null) seen.unopened++;
    if (problems.length === 0) expect([at, got?.size]).toEqual([at, count + 1]);
    if (got !== null && got.size < count + 1) seen.refused++;
    // One message's content is none of the others'.
    if (problems.length === 1 && /^row \d+ of the bodies/.test(problems[0] ?? "")) {
      expect([at, got?.size]).toEqual([at, count]);
    }
  }
  console.log(`of ${flips} flips: ${JSON.stringify(seen)}`);
  expect(seen.refused).toBeGreaterThan(flips / 4);
});

describe("a damaged message", () => {
  const damage = (folder: string, sql: string) => {
    const database = new DatabaseSync(copies.path(folder));
    database.exec(sql);
    database.close();
  };

  test("whose content is damaged is a dead letter, with the reason, and does not keep back those of its key", () => {
    const folder = filled();
    damage(folder, "UPDATE bodies SET body = CAST('pay 900' AS BLOB) WHERE seq = 4");
    expect(tried(folder, "key").size).toBe(count);
    opened(folder, (transaction, { list, show, change, totals }) => {
      const dead = transaction(() => list({ states: ["dead"] }, { afterSeq: 0, max: 9 }));
      expect(dead).toMatchObject([{ seq: 4, state: "dead", reason: "damaged", forwardState: "none" }]);
      expect(dead[0]?.error).toMatch(/the content of message .*-4 is damaged/);
      expect(() => transaction(() => show("4"))).toThrow("the content of message");
      expect(transaction(() => change("4", "purge", 3))).toBeNull();
      expect(transaction(() => totals())).toMatchObject({ dead: { count: 0, bytes: 0 }, done: { count } });
    });
    expect(verifyRetryStore(folder).problems).toEqual([]);
  });

  test("whose row is damaged is not tried; and others are", () => {
    const folder = filled();
    damage(folder, "UPDATE messages SET tries = 200 WHERE seq = 5");
    const told: string[] = [];
    const database = new RetryDatabase(folder);
    database.damage.onFound = (sentence) => void told.push(sentence);
    const { list, show } = folderCalls(database, rules);
    const all = database.transaction(() => list({ states: ["waiting"] }, { afterSeq: 0, max: 999 }));
    expect(all.length).toBe(count);
    expect(() => database.transaction(() => show("5"))).toThrow(/is damaged: message .*-5/);
    expect(told).toEqual(["row 5 of the messages of this store is damaged"]);
    database.close();
    expect(tried(folder).size).toBe(count);
  });

  test("is gone when it is cancelled, and what is left is counted", () => {
    const folder = filled();
    damage(folder, "UPDATE messages SET bytes = 1, tries = 7 WHERE seq = 5");
    opened(folder, (transaction, { change }) => {
      expect(() => transaction(() => change("5", "retry", 3))).toThrow("is damaged");
      expect(transaction(() => change("5", "cancel", 3))).toBeNull();
    });
    expect(verifyRetryStore(folder).problems).toEqual([]);
    expect(tried(folder).size).toBe(count);
  });
});
