import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomUUID } from "node:crypto";
import type { BatonError } from "../../../src/base/errors.ts";
import { parseDatabaseUrl } from "../../../src/base/postgres/database_address.ts";
import { PostgresRetryStore } from "../../../src/retry/queue/postgres/postgres_retry_store.ts";
import type { StoreRules } from "../../../src/retry/queue/store_rules.ts";
import type { StoreHooks } from "../../../src/retry/queue/store_methods.ts";
import { eventually } from "../../support/eventually.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";
import { rigFailure, rigMessage, rigRules, rigSuccess } from "../../support/retry_rig.ts";
import { type StatementCut, StatementCutter } from "../../support/statement_cutter.ts";

const cuts: readonly StatementCut[] = ["before", "sent", "after"];
const all = ["waiting", "in_flight", "done", "dead", "dropped", "cancelled"] as const;

describeWithPeer("postgres", "a message store in PostgreSQL whose connection is cut", () => {
  let server: PostgresServer;
  let cutter: StatementCutter;
  beforeAll(async () => {
    server = await PostgresServer.start();
    cutter = await StatementCutter.start({ host: "127.0.0.1", port: server.port });
  }, 60_000);
  afterAll(async () => {
    await cutter?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  const open = (options: { name?: string; rules?: Partial<StoreRules>; hooks?: StoreHooks; leaseMs?: number } = {}) =>
    PostgresRetryStore.open({
      address: parseDatabaseUrl(`postgres://baton@127.0.0.1:${cutter.port}/postgres`, {
        mayHavePassword: false,
        env: {},
      }),
      ...{
        name: options.name ?? randomUUID(),
        rules: { ...rigRules, ...options.rules },
        mustExist: false,
        migrates: true,
      },
      ...{ leaseMs: options.leaseMs ?? 60_000, hooks: options.hooks ?? {} },
    });
  const messages = (count: number) => Array.from({ length: count }, (_, at) => rigMessage(`message ${at}`));

  /** Repeats a call as a processor does. */
  const persist = async <T>(call: () => Promise<T>): Promise<T> => {
    let result: { readonly value: T } | null = null;
    await eventually(async () => {
      try {
        result = { value: await call() };
      } catch (error) {
        if (!/^(UNREACHABLE|OUTCOME_UNKNOWN|LOCK_BUSY)$/.test((error as BatonError).code)) throw error;
      }
      return result !== null;
    }, { withinMs: 20_000, everyMs: 5 });
    return (result as { readonly value: T } | null)?.value as T;
  };

  for (const cut of cuts) {
    test(`${cut} an acceptance: the messages are stored once, with the numbers that are reported`, async () => {
      await using store = await open();
      await store.call("accept", messages(1), Date.now());
      cutter.arm(cut, "queue_accept");
      const stored = await store.call("accept", messages(3), Date.now());
      expect(cutter.isArmed).toBe(false);
      const found = await store.call("list", { states: [...all] }, { afterSeq: 1, max: 99 });
      expect(found.map(({ id }) => id)).toEqual(stored.map(({ id }) => id));
    });

    test(`${cut} a claim: what nobody heard of is given back, and no try is counted`, async () => {
      await using store = await open();
      await store.call("accept", messages(5), Date.now());
      const owner = await store.call("register", "", 0, 1, 0);
      const claim = (max: number) => store.call("claim", { owner, max, order: "none", nowMs: Date.now() });
      const first = (await claim(2)).messages;
      cutter.arm(cut, "queue_claim");
      const rest = (await persist(() => claim(10))).messages;
      expect(cutter.isArmed).toBe(false);
      expect([...first, ...rest].map(({ seq }) => seq).sort()).toEqual([1, 2, 3, 4, 5]);
      for (const { seq, fence } of [...first, ...rest]) {
        const report = { seq, fence, owner, end: rigSuccess, error: null, nowMs: Date.now() };
        expect(await persist(() => store.call("finish", report))).toMatchObject({
          state: "done",
          tries: 1,
          crashes: 0,
        });
      }
      expect((await store.verify()).problems).toEqual([]);
    });

    test(`${cut} a result: it is recorded once, and told as recorded`, async () => {
      await using store = await open({ rules: { policy: { ...rigRules.policy, intervalMs: 0 } } });
      await store.call("accept", messages(1), Date.now());
      const owner = await store.call("register", "", 0, 1, 0);
      for (const tries of [1, 2, 3]) {
        const claim = () => store.call("claim", { owner, max: 1, order: "none", nowMs: Date.now() });
        let found = (await claim()).messages;
        await eventually(async () => found.length > 0 || (found = (await claim()).messages).length > 0);
        const [{ seq, fence } = { seq: 0, fence: 0 }] = found;
        cutter.arm(cut, "queue_write");
        const report = { seq, fence, owner, end: rigFailure, error: "failed", nowMs: Date.now() };
        const life = await persist(() => store.call("finish", report));
        expect(cutter.isArmed).toBe(false);
        expect(life).toMatchObject({ state: tries === 3 ? "dead" : "waiting", tries });
      }
    });
  }

  test("a database that is killed and started again: calls wait for it", async () => {
    await using store = await open();
    const owner = await store.call("register", "", 0, 1, 0);
    await server.kill();
    const accepted = store.call("accept", messages(2), Date.now());
    await server.resume();
    expect(await accepted).toHaveLength(2);
    const claimed = await persist(() => store.call("claim", { owner, max: 9, order: "none", nowMs: Date.now() }));
    expect(claimed.messages).toHaveLength(2);
  }, 60_000);

  test("a message whose result a fail-over has undone is given back and tried again", async () => {
    await using store = await open();
    await store.call("accept", messages(1), Date.now());
    const owner = await store.call("register", "", 0, 1, 0);
    const claim = () => persist(() => store.call("claim", { owner, max: 9, order: "none", nowMs: Date.now() }));
    const [{ seq, fence } = { seq: 0, fence: 0 }] = (await claim()).messages;
    await store.call("finish", { seq, fence, owner, end: rigFailure, error: "failed", nowMs: Date.now() });
    await server.sql(`UPDATE baton.retry SET state = 1, rev = 1, tries = 0, owner = ${owner} WHERE queue =
      (SELECT id FROM baton.queue WHERE key = '${await store.call("storeName")}')`);
    expect((await claim()).messages).toEqual([]);
    cutter.cutAll();
    let found: readonly { readonly fence: number }[] = [];
    await eventually(async () => (found = (await claim()).messages).length > 0);
    expect(found).toMatchObject([{ fence: 2, tries: 0, crashes: 0 }]);
  });

  test("a result that a fail-over undoes while it is compared is written again", async () => {
    await using store = await open();
    await store.call("accept", messages(1), Date.now());
    const owner = await store.call("register", "", 0, 1, 0);
    const claim = await store.call("claim", { owner, max: 9, order: "none", nowMs: Date.now() });
    const [{ seq, fence } = { seq: 0, fence: 0 }] = claim.messages;
    cutter.arm("after", "queue_write");
    const finishing = store.call("finish", { seq, fence, owner, end: rigFailure, error: "", nowMs: Date.now() });
    await eventually(() => !cutter.isArmed, { everyMs: 1 });
    // The comparison does not reach the database before the change is undone there.
    let isHeld = true;
    const holding = eventually(() => {
      if (isHeld && !cutter.isArmed) cutter.arm("before", "queue_compare");
      return !isHeld;
    }, { everyMs: 1 });
    await eventually(() => cutter.isArmed, { everyMs: 1 });
    await server.sql(`UPDATE baton.retry SET state = 1, rev = 1, tries = 0, owner = ${owner} WHERE queue =
      (SELECT id FROM baton.queue WHERE key = '${await store.call("storeName")}')`);
    isHeld = false;
    await holding;
    cutter.disarm();
    expect(await finishing).toMatchObject({ state: "waiting", tries: 1 });
    expect(await store.call("show", "1")).toMatchObject({ state: "waiting", tries: 1 });
  });

  test("dead letters are sent by one process at a time; the next one follows when it ends", async () => {
    const name = randomUUID();
    const rules = { letters: "pending" } as const;
    const one = await open({ name, rules });
    await using other = await open({ name, rules });
    const tried = { outcome: "final", retryAfterMs: null, error: "" } as const;
    await one.call("accept", [rigMessage("x", { tried })], Date.now());
    expect(await one.call("pendingDeadLetters", 9, 0)).toHaveLength(1);
    expect(await other.call("pendingDeadLetters", 9, 0)).toHaveLength(0);
    await one.close();
    expect(await other.call("pendingDeadLetters", 9, 0)).toHaveLength(1);
  });

  test("a database without tables is refused with the way to make them", async () => {
    const address = parseDatabaseUrl(`${server.url}?schema=nothing`, { mayHavePassword: false, env: {} });
    const opening = PostgresRetryStore.open({ address, name: "x", rules: rigRules, mustExist: true });
    const error = await opening.then(() => null, (thrown) => thrown as BatonError);
    expect(error).toMatchObject({ code: "CONFIG" });
    expect(error?.message).toMatch(/has no tables .* --migrate/);
  });
});
