/** What every message store does, in a folder and in PostgreSQL: one suite for the engine over both kinds of rows. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BatonError } from "../../../src/base/errors.ts";
import { parseDatabaseUrl } from "../../../src/base/postgres/database_address.ts";
import { PostgresRetryStore } from "../../../src/retry/queue/postgres/postgres_retry_store.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import {
  DeadLetterForwarder,
  type DeadLetterSinkSession,
} from "../../../src/retry/dead_letters/dead_letter_forwarder.ts";
import type { TryEnd } from "../../../src/retry/queue/message_life.ts";
import type { StoreRules } from "../../../src/retry/queue/store_rules.ts";
import { RetryStore } from "../../../src/retry/queue/sqlite/retry_store.ts";
import type { ServiceStore, StoreClient, StoreHooks } from "../../../src/retry/queue/store_methods.ts";
import type { ClaimedMessage } from "../../../src/retry/queue/stored_message.ts";
import { verifyRetryStore } from "../../../src/retry/queue/sqlite/verify_retry_store.ts";
import { eventually } from "../../support/eventually.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";
import { copyReleaseFiles, readReleaseFile } from "../../support/release_fixture.ts";
import { rigFailure, rigMessage, rigRules, rigSuccess } from "../../support/retry_rig.ts";

/** The message of a rejection. */
function failureOf(work: Promise<unknown>): Promise<string> {
  return work.then(() => "no failure", (error) => (error as Error).message);
}

interface OpenOptions {
  /** A store that is opened twice has a name; others get one of their own. */
  readonly name?: string;
  readonly hooks?: StoreHooks;
}

/** Where the stores of the cases are. Each case has a store of its own. */
interface StorePlace {
  start(): Promise<void>;
  open(rules: StoreRules, options?: OpenOptions): Promise<ServiceStore>;
  /** Opens a store that release 0.1.0 has written. */
  openOld(rules: StoreRules): Promise<ServiceStore>;
  /** Changes the content of a message of the store that was opened last. */
  damage(seq: number): Promise<void>;
  /** Lets the leases of all processors end, grace included, and takes their messages back. */
  reclaim(store: StoreClient): Promise<number>;
  problems(store: StoreClient): Promise<readonly string[]>;
  end(): Promise<void>;
}

const leaseMs = 60_000;

function folderPlace(): StorePlace {
  let folder = "";
  const above = mkdtempSync(join(tmpdir(), "baton-retry-"));
  const path = () => join(folder, "messages.sqlite");
  return {
    start: () => Promise.resolve(),
    open: (rules, { name = randomUUID(), hooks = {} } = {}) =>
      RetryStore.open(folder = join(above, name), { rules, hooks }),
    openOld(rules) {
      copyReleaseFiles("retry", folder = join(above, randomUUID()));
      return RetryStore.open(folder, { rules, mustExist: true });
    },
    damage(seq) {
      using database = new DatabaseSync(path());
      database.exec(`UPDATE bodies SET body = CAST('x' AS BLOB) WHERE seq = ${seq}`);
      return Promise.resolve();
    },
    reclaim: (store) => store.call("reclaim", { boot: "boot", bootMs: 10 * leaseMs, graceMs: 0, nowMs: Date.now() }),
    problems: () => Promise.resolve(verifyRetryStore(folder).problems),
    // deno-lint-ignore require-await -- as the other place
    end: async () => rmSync(above, { recursive: true, force: true }),
  };
}

function databasePlace(): StorePlace {
  let server: PostgresServer;
  let last = "";
  const address = (database = "") =>
    parseDatabaseUrl(server.url.replace(/postgres$/, database || "postgres"), { mayHavePassword: false, env: {} });
  const options = { leaseMs, mustExist: false } as const;
  return {
    async start() {
      server = await PostgresServer.start();
    },
    open(rules, { name = randomUUID(), hooks = {} } = {}) {
      const all = { ...options, address: address(), name: last = name, rules, hooks, migrates: true };
      return patiently(() => PostgresRetryStore.open(all));
    },
    async openOld(rules) {
      await server.sql("CREATE DATABASE old");
      await server.sql(readReleaseFile("database.sql"), "old");
      return await PostgresRetryStore.open({
        ...{ ...options, address: address("old"), name: "orders", rules, mustExist: true, wasMoved: true },
      });
    },
    async damage(seq) {
      await server.sql(`UPDATE baton.retry_body SET body = 'x' WHERE seq = ${seq}
        AND queue = (SELECT id FROM baton.queue WHERE name = '${last}')`);
    },
    async reclaim(store) {
      await server.sql("UPDATE baton.processor SET lease_end = 0");
      return await store.call("reclaim", { boot: "", bootMs: 0, graceMs: 0, nowMs: 0 });
    },
    problems: async (store) => (await (store as PostgresRetryStore).verify()).problems,
    end: async () => await server?.[Symbol.asyncDispose](),
  };
}

/** A database whose disk stands still may need longer than the 5 s that a store waits for it when it is opened. */
async function patiently<T>(open: () => Promise<T>, attempts = 4): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (attempts === 1 || (error as BatonError).code !== "UNREACHABLE") throw error;
    return await patiently(open, attempts - 1);
  }
}

describe("a message store in a folder", () => cases(folderPlace()));
describeWithPeer("postgres", "a message store in PostgreSQL", () => cases(databasePlace()));

function cases(place: StorePlace): void {
  beforeAll(() => place.start(), 60_000);
  afterAll(() => place.end());

  /** A store, and a processor of it. */
  class Rig implements AsyncDisposable {
    readonly store: StoreClient & AsyncDisposable;
    owner = 0;

    constructor(store: StoreClient & AsyncDisposable) {
      this.store = store;
    }

    get call(): StoreClient["call"] {
      return this.store.call.bind(this.store);
    }

    async register(): Promise<number> {
      return this.owner = await this.call("register", "boot", leaseMs, 7, Date.now());
    }

    claim(order: "none" | "key" | "fifo" = "none", max = 10) {
      return this.call("claim", { owner: this.owner, max, order, nowMs: Date.now() });
    }

    async claimed(order: "none" | "key" | "fifo" = "none"): Promise<number[]> {
      return (await this.claim(order)).messages.map(({ seq }) => seq);
    }

    /** Waits until messages are due. */
    async claimDue(order: "none" | "key" | "fifo" = "none"): Promise<readonly ClaimedMessage[]> {
      let found: readonly ClaimedMessage[] = [];
      await eventually(async () => (found = (await this.claim(order)).messages).length > 0, { everyMs: 5 });
      return found;
    }

    finish(
      { seq, fence }: { readonly seq: number; readonly fence: number },
      end: TryEnd | null,
      error: string | null = null,
    ) {
      return this.call("finish", { seq, fence, owner: this.owner, end, error, nowMs: Date.now() });
    }

    async [Symbol.asyncDispose](): Promise<void> {
      await this.store[Symbol.asyncDispose]();
    }
  }

  const open = async (rules: Partial<StoreRules> = {}, options: OpenOptions = {}): Promise<Rig> => {
    const rig = new Rig(await place.open({ ...rigRules, ...rules }, options));
    await rig.register();
    return rig;
  };
  const accept = (rig: Rig, ...messages: Parameters<typeof rigMessage>[]) =>
    rig.call("accept", messages.map((one) => rigMessage(...one)), Date.now());
  const final = { outcome: "final", retryAfterMs: null } as const;
  const dead = (rig: Rig, count: number) =>
    accept(
      rig,
      ...Array.from({ length: count }, (_, at): [string, object] => [
        String(at),
        { tried: { ...final, error: `exited with ${at % 2 ? 64 : 65}` } },
      ]),
    );

  test("a message is claimed with all it came with, tried, and done", async () => {
    await using rig = await open();
    const [{ id } = { id: "" }] = await accept(rig, ["hello", { key: "k\0é" }]);
    expect(id).toMatch(/^[0-9a-hjkmnp-tv-z]{8}-1$/);
    const [message] = (await rig.claim()).messages;
    expect(message).toMatchObject({ id, key: "k\0é", fence: 1, tries: 0, head: { argv: ["./send"], cwd: "/srv" } });
    expect(new TextDecoder().decode(message?.body)).toBe("hello");
    expect(await rig.claimed()).toEqual([]);
    expect(await rig.finish({ seq: 1, fence: 1 }, rigSuccess)).toMatchObject({ state: "done", tries: 1 });
    expect(await rig.finish({ seq: 1, fence: 1 }, rigSuccess)).toBeNull();
    expect(await rig.call("show", id)).toMatchObject({ state: "done", nextMs: null });
    expect(await rig.call("totals")).toMatchObject({ done: { count: 1, bytes: 0 }, waiting: { count: 0, bytes: 0 } });
    expect(await place.problems(rig.store)).toEqual([]);
  });

  test("a message is dead after its redeliveries, with the last error", async () => {
    await using rig = await open();
    await accept(rig, ["x", { tried: { ...rigFailure, error: "exited with 1" } }]);
    for (const fence of [1, 2]) {
      const [message] = await rig.claimDue();
      expect(message).toMatchObject({ fence, tries: fence });
      await rig.finish({ seq: 1, fence }, rigFailure, `failed ${fence}\0`);
    }
    expect(await rig.call("list", { states: ["dead"] }, { afterSeq: 0, max: 9 })).toMatchObject([
      { tries: 3, reason: "exhausted", error: "failed 2\0" },
    ]);
    expect(await rig.claimed()).toEqual([]);
  });

  test("a claim says when the next message is due", async () => {
    await using rig = await open({ policy: { ...rigRules.policy, intervalMs: 60_000, maxDelayMs: 60_000 } });
    await accept(rig, ["x", { tried: { ...rigFailure, error: "" } }]);
    const { messages, nextMs } = await rig.claim();
    expect(messages).toEqual([]);
    expect(Math.abs((nextMs ?? 0) - Date.now() - 60_000)).toBeLessThan(5000);
  });

  test("a try that was not started is not counted", async () => {
    await using rig = await open();
    await accept(rig, ["x"]);
    await rig.claim();
    expect(await rig.finish({ seq: 1, fence: 1 }, null)).toMatchObject({ state: "waiting", tries: 0 });
    expect((await rig.claim()).messages).toMatchObject([{ fence: 2, tries: 0, crashes: 0 }]);
  });

  test("messages of a lease that ended are taken back, and dead after too many crashes", async () => {
    await using rig = await open();
    await accept(rig, ["x"]);
    await rig.claim();
    const gone = rig.owner;
    expect(await place.reclaim(rig.store)).toBe(1);
    expect(await rig.call("renew", gone, leaseMs)).toBe(false);
    expect(await rig.finish({ seq: 1, fence: 1 }, rigSuccess)).toBeNull();
    expect(await failureOf(rig.claim())).toMatch(/lease of this processor expired/);
    await rig.register();
    expect(await rig.claimDue()).toMatchObject([{ fence: 2, tries: 0, crashes: 1 }]);
    expect(await place.reclaim(rig.store)).toBe(1);
    expect((await rig.call("totals")).dead.count).toBe(1);
    expect(await place.problems(rig.store)).toEqual([]);
  });

  test("a processor that leaves keeps its messages in flight from nobody", async () => {
    await using rig = await open();
    expect(await rig.call("renew", rig.owner, leaseMs)).toBe(true);
    await rig.call("leave", rig.owner);
    expect(await rig.call("renew", rig.owner, leaseMs)).toBe(false);
  });

  test("the processors that run are counted: those that have registered, and neither left nor ended", async () => {
    await using rig = await open();
    const running = () => rig.call("processorCount", "boot", 0);
    expect(await running()).toBe(1);
    const first = rig.owner;
    await rig.register();
    expect(await running()).toBe(2);
    await rig.call("leave", first);
    expect(await running()).toBe(1);
    await place.reclaim(rig.store);
    expect(await running()).toBe(0);
  });

  test("by key the first of each key is taken, and all without one", async () => {
    await using rig = await open();
    await accept(rig, ...["a", "a", "b", null, null].map((key): [string, object] => ["x", { key }]));
    expect(await rig.claimed("key")).toEqual([1, 3, 4, 5]);
    expect(await rig.claimed("key")).toEqual([]);
    await rig.finish({ seq: 1, fence: 1 }, rigFailure);
    expect(await rig.claimDue("key")).toMatchObject([{ seq: 1, fence: 2 }]);
    await rig.finish({ seq: 1, fence: 2 }, rigSuccess);
    expect(await rig.claimed("key")).toEqual([2]);
  });

  test("by key a dead letter without a key that was never tried here is taken after it was redriven", async () => {
    await using rig = await open();
    await dead(rig, 1);
    expect(await rig.call("change", "1", "redrive", Date.now())).toBeNull();
    expect(await place.problems(rig.store)).toEqual([]);
    expect(await rig.claimed("key")).toEqual([1]);
  });

  test("by key a redriven message waits for what is in flight, and goes before what waits", async () => {
    await using rig = await open();
    await accept(rig, ...["a", "a", "a"].map((key): [string, object] => ["x", { key }]));
    expect(await rig.claimed("key")).toEqual([1]);
    await rig.finish({ seq: 1, fence: 1 }, final);
    expect(await rig.claimed("key")).toEqual([2]);
    expect(await rig.call("change", "1", "redrive", Date.now())).toBeNull();
    expect(await rig.claimed("key")).toEqual([]);
    await rig.finish({ seq: 2, fence: 1 }, rigSuccess);
    expect(await rig.claimed("key")).toEqual([1]);
    await rig.finish({ seq: 1, fence: 2 }, final);
    await rig.call("change", "1", "redrive", Date.now());
    expect(await place.problems(rig.store)).toEqual([]);
    expect(await rig.claimed("key")).toEqual([1]);
    await rig.finish({ seq: 1, fence: 3 }, rigSuccess);
    await rig.call("change", "3", "cancel", Date.now());
    await accept(rig, ["x", { key: "a" }]);
    expect(await rig.claimed("key")).toEqual([4]);
    expect(await place.problems(rig.store)).toEqual([]);
  });

  test("fifo takes one at a time, and waits for one that fails", async () => {
    await using rig = await open();
    await accept(rig, ["x"], ["y"]);
    expect(await rig.claimed("fifo")).toEqual([1]);
    expect(await rig.claimed("fifo")).toEqual([]);
    await rig.finish({ seq: 1, fence: 1 }, rigFailure);
    expect(await rig.claimDue("fifo")).toMatchObject([{ seq: 1 }]);
    await rig.finish({ seq: 1, fence: 2 }, final);
    expect(await rig.claimed("fifo")).toEqual([2]);
    await rig.call("change", "1", "redrive", Date.now());
    expect(await rig.claimed("fifo")).toEqual([]);
    await rig.finish({ seq: 2, fence: 1 }, rigSuccess);
    expect(await rig.claimed("fifo")).toEqual([1]);
  });

  test("a limit of messages and of bytes is kept, and what is refused leaves nothing behind", async () => {
    await using rig = await open({ maxMessages: 2, maxBytes: 10 });
    expect(await failureOf(accept(rig, ["12345678901"]))).toMatch(/0 bytes, 11 more exceed the limit of 10/);
    await accept(rig, ["1"], ["2"]);
    expect(await failureOf(accept(rig, ["3"]))).toMatch(/it has 2 messages, the limit is 2/);
    expect(await rig.call("fullReason")).toMatch(/the limit is 2/);
    await rig.claim();
    await rig.finish({ seq: 1, fence: 1 }, rigSuccess);
    await eventually(async () => (await rig.call("totals")).done.count === 1);
    await accept(rig, ["3"]);
    expect(await place.problems(rig.store)).toEqual([]);
  });

  test("a key and a command line have a limit", async () => {
    await using rig = await open();
    expect(await failureOf(accept(rig, ["x", { key: "k".repeat(1025) }]))).toMatch(/key has 1025 bytes/);
    const head = { kind: "command", argv: ["x".repeat(300_000)], cwd: null } as const;
    expect(await failureOf(accept(rig, ["x", { head }]))).toMatch(/headers has 300/);
  });

  test("an operator redrives each dead letter once by a command, though it dies again meanwhile", async () => {
    await using rig = await open();
    await dead(rig, 3);
    const number = await rig.call("startRedrive");
    expect(await rig.call("redrive", number, {}, 2, Date.now())).toBe(2);
    const { messages } = await rig.claim();
    expect(messages.map(({ seq }) => seq)).toEqual([1, 2]);
    for (const message of messages) await rig.finish(message, final);
    await eventually(async () => (await rig.call("totals")).dead.count === 3);
    expect(await rig.call("redrive", number, {}, 9, Date.now())).toBe(1);
    expect(await rig.call("redrive", number, {}, 9, Date.now())).toBe(0);
    expect(await rig.call("redrive", await rig.call("startRedrive"), {}, 9, Date.now())).toBe(2);
  });

  test("an operator chooses by the error, cancels and hurries what waits, and purges what is dead", async () => {
    await using rig = await open({ policy: { ...rigRules.policy, intervalMs: 1000 } });
    await dead(rig, 4);
    const found = await rig.call("list", { states: ["dead"], error: "65" }, { afterSeq: 0, max: 9 });
    expect(found.map(({ seq }) => seq)).toEqual([1, 3]);
    expect(await rig.call("purge", { error: "65" }, Date.now())).toBe(2);
    const [{ id } = { id: "" }] = await accept(rig, ["x", { tried: { ...rigFailure, error: "" } }]);
    expect(await rig.call("change", id, "redrive", Date.now())).toBe("waiting");
    expect(await rig.call("change", "nobody-77", "retry", Date.now())).toBe("unknown");
    expect(await rig.claimed()).toEqual([]);
    expect(await rig.call("change", id, "retry", Date.now())).toBeNull();
    expect(await rig.claimed()).toEqual([5]);
    expect(await rig.call("change", id, "cancel", Date.now())).toBe("in_flight");
    await rig.finish({ seq: 5, fence: 1 }, null);
    expect(await rig.call("change", id, "cancel", Date.now())).toBeNull();
    expect(await rig.call("change", id, "cancel", Date.now())).toBe("cancelled");
    await eventually(async () => (await rig.call("totals")).cancelled.count === 1);
    expect(await rig.call("totals")).toMatchObject({ dead: { count: 2 }, dropped: { count: 2 } });
    expect(await rig.call("forget", Date.now() + 1000)).toBe(3);
    await eventually(async () => (await rig.call("totals")).dropped.count === 2);
    expect(await place.problems(rig.store)).toEqual([]);
  });

  test("a pause lasts until it is ended", async () => {
    await using rig = await open();
    await accept(rig, ["x"]);
    await rig.call("setPaused", true);
    expect([await rig.call("isPaused"), await rig.claimed()]).toEqual([true, []]);
    await rig.call("setPaused", false);
    expect(await rig.claimed()).toEqual([1]);
  });

  test("the backlog has the newest error: of the sink, or of a letter that fails while the sink works", async () => {
    await using rig = await open({ letters: "pending" });
    await dead(rig, 2);
    const backlog = async (error: string | null) =>
      expect(await rig.call("deadLetterBacklog")).toEqual({ count: 2, forwarded: 0, error });
    await backlog(null);
    const fails = (seq: number | null, error: string, byMs: number) =>
      rig.call("recordForwardFailure", seq, error, Date.now() + byMs);
    await fails(2, "too large", 0);
    await fails(1, "too old", 1);
    await backlog("too old");
    await fails(null, "no response", 2);
    await backlog("no response");
    await rig.call("clearForwardDelays");
    await fails(2, "still too large", 3);
    await backlog("still too large");
  });

  test("a process with a sink takes over what others have left open, but nothing that they have kept", async () => {
    const name = randomUUID();
    await using rig = await open({ letters: "kept" }, { name });
    await dead(rig, 1);
    await using other = await open({ letters: "open" }, { name });
    await dead(other, 2);
    expect(await other.call("deadLetterBacklog")).toEqual({ count: 0, forwarded: 0, error: null });
    expect(await other.call("pendingDeadLetters", 9, Date.now())).toMatchObject([
      { seq: 2, forwardState: "pending" },
      { seq: 3 },
    ]);
    expect(await other.call("deadLetterBacklog")).toEqual({ count: 2, forwarded: 0, error: null });
    expect(await other.call("markForwarded", 2, 0, Date.now())).toBe(true);
    await other.call("change", "3", "redrive", Date.now());
    expect(await other.call("pendingDeadLetters", 9, Date.now())).toEqual([]);
    expect(await other.call("show", "1")).toMatchObject({ state: "dead", forwardState: "kept" });
    expect(await place.problems(other.store)).toEqual([]);
  });

  test.each([null, 0])("dead letters purged or redriven while others are sent are not sent (offset %s)", async (at) => {
    await using rig = await open({ letters: "pending" });
    await dead(rig, 5);
    const sent: number[] = [];
    const recorded: boolean[] = [];
    const send: DeadLetterSinkSession["send"] = async ({ seq, fence }) => {
      sent.push(seq);
      if (sent.length > 1) return;
      // All are in the same batch: the one that is sent now, one that is redriven and dies again, and two purged ones.
      expect([seq, fence]).toEqual([1, 0]);
      await rig.call("change", "2", "redrive", Date.now());
      expect(await rig.claimed()).toEqual([2]);
      await rig.finish({ seq: 2, fence: 1 }, { outcome: "final", retryAfterMs: null });
      for (const purged of ["1", "3", "4"]) await rig.call("change", purged, "purge", Date.now());
    };
    const session = { nextOffset: () => at, send, close() {} };
    const forwarder = new DeadLetterForwarder({
      store: rig.store,
      sink: { skipsFailed: true, open: () => Promise.resolve(session) },
      clock: systemClock(),
      wallClockMs: () => Date.now(),
      onForwarded: (_, isRecorded) => recorded.push(isRecorded),
      onFailure: (why) => {
        throw new Error(why);
      },
    });
    await forwarder.run(AbortSignal.abort());
    // The redriven one is sent as it is after its second death: it is read again.
    expect([sent, recorded]).toEqual([[1, 5, 2], [false, true, true]]);
    await rig.call("recordForwardFailure", 3, "refused", Date.now());
    expect(await rig.call("deadLetterBacklog")).toEqual({ count: 0, forwarded: 2, error: null });
    expect(await place.problems(rig.store)).toEqual([]);
  });

  test("a dead letter that is forwarded leaves the store when it is there, and not before", async () => {
    await using rig = await open({ letters: "pending" });
    await dead(rig, 2);
    expect(await rig.call("pendingDeadLetters", 9, Date.now())).toMatchObject([
      { seq: 1, forwardState: "pending", forwardOffset: null },
      { seq: 2 },
    ]);
    await rig.call("recordForwardFailure", 2, "too large", Date.now());
    await rig.call("recordForwardFailure", null, "no response", Date.now());
    expect(await rig.call("deadLetterBacklog")).toEqual({ count: 2, forwarded: 0, error: "no response" });
    expect(await rig.call("show", "2")).toMatchObject({ forwardError: "too large" });
    expect(await rig.call("markForwarded", 1, 9, Date.now())).toBe(false);
    expect(await rig.call("markForwarding", 1, 9, 77)).toBe(false);
    expect(await rig.call("markForwarding", 1, 0, null)).toBe(true);
    expect(await rig.call("pendingDeadLetters", 9, Date.now())).toMatchObject([{
      seq: 1,
      forwardState: "pending",
      forwardError: "no response",
    }]);
    expect(await rig.call("markForwarding", 1, 0, 77)).toBe(true);
    expect(await rig.call("pendingDeadLetters", 9, Date.now())).toMatchObject([
      { forwardState: "sending", forwardOffset: 77 },
    ]);
    expect(await rig.call("markForwarded", 1, 0, Date.now())).toBe(true);
    expect(await rig.call("markForwarding", 1, 0, null)).toBe(false);
    expect(await rig.call("pendingDeadLetters", 9, Date.now())).toEqual([]);
    await rig.call("clearForwardDelays");
    expect(await rig.call("pendingDeadLetters", 9, Date.now())).toMatchObject([{ seq: 2 }]);
    expect(await rig.call("change", "1", "redrive", Date.now())).toBe("forwarded");
    expect(await rig.call("show", "1")).toMatchObject({ state: "dead", forwardState: "forwarded" });
    expect(await rig.call("countDeadLetters", {})).toEqual({ redrivable: 1, forwarded: 1 });
    expect(await place.problems(rig.store)).toEqual([]);
  });

  test("calls that come together are stored under numbers of their own, whatever is refused beside them", async () => {
    await using rig = await open({ maxMessages: 200 });
    const calls = Array.from({ length: 201 }, (_, at) => accept(rig, [String(at)]));
    const results = await Promise.allSettled(calls);
    const stored = results.flatMap((result) => result.status === "fulfilled" ? result.value.map(({ id }) => id) : []);
    expect(new Set(stored).size).toBe(stored.length);
    expect((await rig.call("totals")).waiting.count).toBe(stored.length);
    expect(await failureOf(accept(rig, ...Array.from({ length: 201 }, (): [string] => ["x"])))).toMatch(/is full/);
    expect(await place.problems(rig.store)).toEqual([]);
  });

  test("processes learn what others store in a store of the same name, and nothing of other stores", async () => {
    const name = randomUUID();
    let changes = 0;
    await using one = await place.open(rigRules, { name, hooks: { onChanged: () => changes++ } });
    await using other = await place.open(rigRules, { name });
    one.checkForChanges();
    await eventually(() => changes === 1);
    await other.call("accept", [rigMessage("from another")], Date.now());
    await eventually(() => {
      one.checkForChanges();
      return changes > 1;
    });
    expect(await other.call("storeName")).toBe(await one.call("storeName"));
    expect((await one.call("totals")).waiting.count).toBe(1);
    await using another = await place.open(rigRules);
    expect((await another.call("totals")).waiting.count).toBe(0);
  });

  test("a message whose content changed is a dead letter with a reason, and reported; others are tried", async () => {
    const said: string[] = [];
    await using rig = new Rig(await place.open(rigRules, { hooks: { onDamage: (sentence) => said.push(sentence) } }));
    await rig.register();
    await accept(rig, ["whole"], ["y"]);
    await place.damage(1);
    const key = await rig.call("storeName");
    expect(await failureOf(rig.call("show", "1"))).toMatch(/is damaged: the content of message .*-1 is damaged/);
    expect(await rig.claimed()).toEqual([2]);
    expect(await rig.call("list", { states: ["dead"] }, { afterSeq: 0, max: 9 })).toMatchObject([
      { seq: 1, reason: "damaged", forwardState: "none" },
    ]);
    expect(said.at(-1)).toBe(`the content of message ${key}-1 is damaged`);
    expect(await rig.call("damageCount")).toBeGreaterThan(0);
    expect(await rig.call("change", "1", "purge", Date.now())).toBeNull();
    expect(await place.problems(rig.store)).toEqual([]);
  });

  test("messages of a topic are stored once, and those that follow them", async () => {
    await using rig = await open();
    const some = (...ids: number[]) => ids.map((id) => ({ id, body: new TextEncoder().encode(`news ${id}`) }));
    expect(await rig.call("lastIngestedId", "news")).toBe(-1);
    expect(await rig.call("ingest", "news", some(3, 4), Date.now())).toBe(2);
    expect(await rig.call("ingest", "news", some(3, 4), Date.now())).toBe(0);
    expect(await rig.call("ingest", "news", some(4, 7), Date.now())).toBe(1);
    expect(await rig.call("lastIngestedId", "news")).toBe(7);
    await rig.call("forgetIngested", "news", 4);
    expect(await rig.call("lastIngestedId", "news")).toBe(7);
    await rig.call("forgetIngested", "news", 7);
    expect(await rig.call("lastIngestedId", "news")).toBe(-1);
    const { messages } = await rig.claim();
    expect(messages.map(({ body }) => new TextDecoder().decode(body))).toEqual(["news 3", "news 4", "news 7"]);
  });

  test("a store that release 0.1.0 has written goes on: each message as it was, and then to its end", async () => {
    await using rig = new Rig(await place.openOld({ ...rigRules, letters: "pending" }));
    const states = ["waiting", "in_flight", "done", "dead", "dropped", "cancelled"] as const;
    const all = await rig.call("list", { states }, { afterSeq: 0, max: 99 });
    expect(all).toMatchObject([
      { seq: 1, state: "done", tries: 1, key: null },
      { seq: 2, state: "waiting", tries: 1, error: "exited with 75" },
      { seq: 3, state: "dead", reason: "final", forwardState: "pending" },
      { seq: 4, state: "in_flight", fence: 1, tries: 0 },
      { seq: 5, state: "waiting", key: "a" },
      { seq: 6, state: "waiting", key: "a" },
    ]);
    expect(all[2]?.forwardError).toMatch(/^Cannot write dead letters to/);
    expect(await place.problems(rig.store)).toEqual([]);
    expect(await rig.call("isPaused")).toBe(true);
    await rig.call("setPaused", false);
    await rig.register();
    // The processor was killed; its lease has ended.
    expect(await place.reclaim(rig.store)).toBe(1);
    await rig.register();
    for (const seq of [2, 4]) expect(await rig.call("change", String(seq), "retry", Date.now())).toBeNull();
    const { messages } = await rig.claim("key");
    expect(messages.map(({ seq }) => seq).sort()).toEqual([2, 4, 5]);
    expect(new TextDecoder().decode(messages.find(({ seq }) => seq === 4)?.body)).toBe("flying");
    for (const message of messages) expect(await rig.finish(message, rigSuccess)).toMatchObject({ state: "done" });
    expect(await rig.claimed("key")).toEqual([6]);
    await rig.call("clearForwardDelays");
    expect(await rig.call("pendingDeadLetters", 9, Date.now())).toMatchObject([{ seq: 3 }]);
    expect((await rig.call("accept", [rigMessage("new")], Date.now()))[0]?.id).toMatch(/-7$/);
    expect(await place.problems(rig.store)).toEqual([]);
  });
}
