import { DatabaseSync } from "node:sqlite";
import { mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  refuseNetworkFolder,
  RetryDatabase,
  retryDatabaseFileName,
  toRetryStoreError,
} from "../../../../src/retry/queue/sqlite/retry_database.ts";
import { sqliteRetryTables } from "../../../../src/retry/queue/sqlite/retry_tables.ts";
import { verifyRetryStore } from "../../../../src/retry/queue/sqlite/verify_retry_store.ts";
import { property } from "../../../support/property.ts";
import { RetryRig, rigFailure, rigMessage, rigSuccess } from "../../../support/retry_rig.ts";

const all = ["waiting", "in_flight", "done", "dead", "dropped", "cancelled"] as const;
const order = { max: 10, order: "none" } as const;
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

describe("a stored message", () => {
  test("is claimed with all it came with, tried, and done", () => {
    using rig = new RetryRig();
    const [{ id } = { id: "" }] = rig.call("accept", [rigMessage("hello", { key: "k" })], 100);
    expect(id).toMatch(/^[0-9a-hjkmnp-tv-z]{8}-1$/);
    const owner = rig.call("register", "boot", 1000, 7, 100);
    const claim = rig.call("claim", { owner, ...order, nowMs: 100 });
    expect(claim).toMatchObject({ nextMs: null });
    const [message] = claim.messages;
    expect(message).toMatchObject({ id, key: "k", fence: 1, tries: 0, head: { argv: ["./send"], cwd: "/srv" } });
    expect(text(message?.body ?? new Uint8Array())).toBe("hello");
    expect(rig.call("claim", { owner, ...order, nowMs: 100 }).messages).toEqual([]);
    const report = { seq: 1, fence: 1, owner, end: rigSuccess, error: null, nowMs: 101 };
    expect(rig.call("finish", report)).toMatchObject({ state: "done", tries: 1 });
    expect(rig.call("finish", report)).toBeNull();
    expect(rig.call("show", id)).toMatchObject({ state: "done", lastMs: 101, nextMs: null });
    expect(rig.call("totals")).toMatchObject({ done: { count: 1, bytes: 0 }, waiting: { count: 0, bytes: 0 } });
    expect(verifyRetryStore(rig.folder).problems).toEqual([]);
  });

  test("is dead after its redeliveries, and says why", () => {
    using rig = new RetryRig();
    rig.call("accept", [rigMessage("x", { tried: { ...rigFailure, error: "exited with 1" } })], 100);
    const owner = rig.call("register", "boot", 1000, 7, 100);
    for (const [nowMs, fence] of [[110, 1], [120, 2]] as const) {
      expect(rig.call("claim", { owner, ...order, nowMs: nowMs - 1 })).toMatchObject({ messages: [], nextMs: nowMs });
      expect(rig.call("claim", { owner, ...order, nowMs }).messages).toMatchObject([{ fence }]);
      rig.call("finish", { seq: 1, fence, owner, end: rigFailure, error: `failed ${fence}`, nowMs });
    }
    const [dead] = rig.call("list", { states: ["dead"] }, { afterSeq: 0, max: 9 });
    expect(dead).toMatchObject({ tries: 3, reason: "exhausted", error: "failed 2", firstMs: 100, lastMs: 120 });
  });

  test("whose worker's lease has ended long enough ago waits again; before that nobody touches it", () => {
    using rig = new RetryRig();
    rig.call("accept", [rigMessage("x")], 100);
    const [gone, next] = [1, 2].map((pid) => rig.call("register", "boot", pid === 1 ? 500 : 9000, pid, 100)) as [
      number,
      number,
    ];
    rig.call("claim", { owner: gone, ...order, nowMs: 100 });
    const reclaim = (bootMs: number, boot = "boot") => rig.call("reclaim", { boot, bootMs, graceMs: 50, nowMs: 200 });
    expect([reclaim(400), reclaim(550), reclaim(551)]).toEqual([0, 0, 1]);
    expect(rig.call("renew", gone, 9999)).toBe(false);
    expect(() => rig.call("claim", { owner: gone, ...order, nowMs: 300 })).toThrow(/lease of this processor expired/);
    expect(rig.call("finish", { seq: 1, fence: 1, owner: gone, end: rigSuccess, error: null, nowMs: 300 })).toBeNull();
    expect(rig.call("list", { states: [...all] }, { afterSeq: 0, max: 9 })).toMatchObject([{
      state: "waiting",
      tries: 0,
      crashes: 1,
      nextMs: 210,
    }]);
    expect(rig.call("claim", { owner: next, ...order, nowMs: 210 }).messages).toMatchObject([{ fence: 2 }]);
    expect(reclaim(0, "another boot")).toBe(1);
    expect(rig.call("totals").dead.count).toBe(1);
    expect(verifyRetryStore(rig.folder).problems).toEqual([]);
  });
});

describe("order", () => {
  const claimed = (rig: RetryRig, owner: number, order: "key" | "fifo", nowMs = 100) =>
    rig.call("claim", { owner, max: 10, order, nowMs }).messages.map(({ seq }) => seq);

  test("by key what waits behind the first of a key costs nothing", () => {
    const claimMs = (messages: number) => {
      using rig = new RetryRig({ maxMessages: messages });
      rig.call("accept", Array.from({ length: messages }, () => rigMessage("", { key: "a" })), 100);
      const owner = rig.call("register", "boot", 1e9, 7, 100);
      expect(claimed(rig, owner, "key")).toEqual([1]);
      const times = Array.from({ length: 9 }, () => {
        const startMs = performance.now();
        expect(claimed(rig, owner, "key")).toEqual([]);
        return performance.now() - startMs;
      });
      return Math.min(...times);
    };
    expect(claimMs(20_000)).toBeLessThan(10 * claimMs(20));
  });
});

describe("a store", () => {
  test("of a newer version, and another program's database, are refused in words", () => {
    const folder = mkdtempSync(join(tmpdir(), "baton-retry-"));
    try {
      new RetryDatabase(folder).close();
      const raw = new DatabaseSync(join(folder, retryDatabaseFileName));
      raw.exec("PRAGMA user_version = 9");
      expect(() => new RetryDatabase(folder)).toThrow(
        /was written by a newer version \(format 9\); this version of baton reads format 3/,
      );
      raw.exec("PRAGMA application_id = 5");
      raw.close();
      expect(() => new RetryDatabase(folder)).toThrow(/another program's database, not a message store/);
      for (const name of ["none", "readonly-none"]) {
        const open = () => new RetryDatabase(join(folder, name), { mustExist: true });
        expect(open).toThrow(/^There is no message store/);
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("whose file was cut to nothing is not taken for a whole one without messages, nor made anew", () => {
    const folder = mkdtempSync(join(tmpdir(), "baton-retry-"));
    try {
      writeFileSync(join(folder, retryDatabaseFileName), "");
      expect(() => verifyRetryStore(folder)).toThrow(/There is no message store in .*: messages\.sqlite is empty/);
      expect(readdirSync(folder)).toEqual([retryDatabaseFileName]);
      expect(() => new RetryDatabase(folder)).toThrow(
        /The message store .*messages\.sqlite is empty: it was truncated/,
      );
      expect(readdirSync(folder)).toEqual([retryDatabaseFileName]);
      rmSync(join(folder, retryDatabaseFileName));
      const store = new RetryDatabase(folder);
      store.insert(sqliteRetryTables.processors, { id: 1, boot: "", end_ms: 0, pid: 0, since_ms: 0 });
      // What is in the log is not lost on top of it: SQLite would remove the log of an empty file.
      truncateSync(join(folder, retryDatabaseFileName), 0);
      expect(() => new RetryDatabase(folder)).toThrow(/is empty: it was truncated/);
      expect(() => verifyRetryStore(folder)).toThrow(/messages\.sqlite is empty/);
      expect(statSync(join(folder, `${retryDatabaseFileName}-wal`)).size).toBeGreaterThan(0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("that cannot be looked for is neither missing, nor full or busy because its path has the word in it", () => {
    const folder = mkdtempSync(join(tmpdir(), "baton-retry-"));
    try {
      const loop = join(folder, "full-locked");
      symlinkSync(loop, loop);
      const open = () => new RetryDatabase(join(loop, "store"), { mustExist: true });
      expect(open).toThrow(/cannot be read or written: .*: too many symbolic links/);
      for (const word of ["full", "locked"]) {
        const refused = Object.assign(new Error(`EACCES: open '/srv/${word}/x'`), { code: "EACCES", syscall: "open" });
        expect(toRetryStoreError(refused, folder).code).toBe("IO");
      }
      expect(toRetryStoreError(new Error("database or disk is full"), folder).code).toBe("STORE_FULL");
      expect(toRetryStoreError(new Error("database is locked"), folder).code).toBe("LOCK_BUSY");
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("is not opened over a network", () => {
    expect(() => refuseNetworkFolder("/mnt/x", () => 0x6969)).toThrow(/network file system \(NFS\)/);
    expect(() => refuseNetworkFolder("/mnt/x", () => 0xff534d42 | 0)).toThrow(/CIFS/);
    expect(() => refuseNetworkFolder("/mnt/x", () => 0xef53)).not.toThrow();
  });

  test("damaged by hand is told so", () => {
    using rig = new RetryRig();
    rig.call("accept", [rigMessage("x"), rigMessage("y")], 1);
    const raw = new DatabaseSync(join(rig.folder, retryDatabaseFileName));
    raw.exec("DELETE FROM bodies WHERE seq = 1; UPDATE messages SET state = 1 WHERE seq = 2");
    raw.close();
    expect(verifyRetryStore(rig.folder).problems).toEqual([
      "row 2 of the messages of this store is damaged",
      "message 1 is waiting, but its body is missing",
      "message 2 is in flight, but no processor owns it",
      "1 messages are waiting, but the total is 2",
      "messages that are waiting have 1 bytes, but the total is 2",
      "1 messages are in_flight, but the total is 0",
      "messages that are in_flight have 1 bytes, but the total is 0",
    ]);
  });
});

type Step = readonly [what: number, which: number];

property(
  "two processes at one store, in any order of steps: each message is in one state, counted, and whole",
  fc.array(fc.tuple(fc.nat(9), fc.nat(5)), { maxLength: 60 }) as fc.Arbitrary<Step[]>,
  (steps) => {
    using one = new RetryRig();
    using two = new RetryRig({ folder: one.folder });
    const rigs = [one, two] as const;
    const owners = rigs.map((rig, at) => rig.call("register", "boot", 1000 + at, at, 0));
    const held: { at: number; seq: number; fence: number }[] = [];
    let nowMs = 0, count = 0;
    for (const [what, which] of steps) {
      nowMs += 7;
      const at = which % 2, rig = rigs[at] as RetryRig, owner = owners[at] as number;
      if (what < 3) {
        count += rig.call("accept", [rigMessage("x".repeat(which), { key: which > 3 ? "k" : null })], nowMs).length;
      } else if (what < 6) {
        const claim = rig.call("claim", {
          owner,
          max: 2,
          order: which === 5 ? "fifo" : which === 4 ? "key" : "none",
          nowMs,
        });
        held.push(...claim.messages.map(({ seq, fence }) => ({ at, seq, fence })));
      } else if (what < 8) {
        const [mine] = held.splice(0, 1);
        if (mine === undefined) continue;
        const end = which === 0 ? null : which < 3 ? rigSuccess : rigFailure;
        const by = rigs[mine.at] as RetryRig;
        by.call("finish", { ...mine, owner: owners[mine.at] as number, end, error: "", nowMs });
      } else if (what === 8) rig.call("change", String(which + 1), which % 2 ? "cancel" : "retry", nowMs);
      else {
        rig.call("reclaim", { boot: "later", bootMs: 0, graceMs: 0, nowMs });
        for (const index of [0, 1]) {
          owners[index] = (rigs[index] as RetryRig).call("register", "later", 1000, index, nowMs);
        }
      }
    }
    const list = one.call("list", { states: [...all] }, { afterSeq: 0, max: 1000 });
    expect(list.length).toBe(count);
    for (const { tries, crashes } of list) expect([tries <= 3, crashes <= 2]).toEqual([true, true]);
    expect(Object.values(two.call("totals")).reduce((sum, one) => sum + one.count, 0)).toBe(count);
    expect(verifyRetryStore(one.folder)).toMatchObject({ messages: count, problems: [] });
  },
  20,
);
