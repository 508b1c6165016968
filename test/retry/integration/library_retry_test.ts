/** The library's message store: storing what failed, looking into it, redriving, and a processor in this process. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BatonError } from "../../../src/library/baton.ts";
import {
  type MessageInfo,
  MessageStore,
  type MessageStoreOptions,
  PermanentFailure,
} from "../../../src/library/baton_retry.ts";
import { OneTimeEvent } from "../../../src/base/support/event.ts";
import { failureCode } from "../../support/failure_code.ts";

setDefaultTimeout(30_000);

let folder: string;
beforeEach(() => folder = mkdtempSync(join(tmpdir(), "baton-library-retry-")));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const policy = { backoff: "fixed", intervalMs: 1, maxRetries: 2, jitter: "none" } as const;
const open = (options: MessageStoreOptions = {}) => new MessageStore({ folder, policy, ...options });
const fail = (why: string) => () => {
  throw new Error(why);
};

async function all(store: MessageStore): Promise<MessageInfo[]> {
  const found: MessageInfo[] = [];
  for await (const message of store.list()) found.push(message);
  return found;
}

test("work that fails is stored with its failure as the first try; work that succeeds is not", async () => {
  await using store = open();
  expect(await store.tryOrAdd("order 17", () => "sent")).toBeNull();
  const stored = await store.tryOrAdd("order 18", fail("the backend is down"), { key: "orders" });
  const dead = await store.tryOrAdd("order 19", () => {
    throw new PermanentFailure("there is no such article");
  });
  expect([stored?.state, dead?.state, dead?.nextTryMs]).toEqual(["waiting", "dead", null]);
  expect(await all(store)).toMatchObject([
    { id: stored?.id, key: "orders", state: "waiting", tries: 1, error: "the backend is down", bytes: 8 },
    { id: dead?.id, key: null, state: "dead", tries: 1, reason: "final", error: "there is no such article" },
  ]);
  expect(new TextDecoder().decode((await store.get(stored?.id ?? "")).body ?? undefined)).toBe("order 18");
});

test("messages are tried by the policy until they succeed or are dead letters, several at a time", async () => {
  await using store = open();
  for (const text of ["a", "b", "c", "d"]) await store.add(text);
  const tries = new Map<string, number[]>();
  await store.process(({ text, attempt }) => {
    tries.set(text(), [...tries.get(text()) ?? [], attempt]);
    if (text() === "a") throw new PermanentFailure("never");
    if (text() === "b" || attempt < 2) throw new Error("not yet");
  }, { until: "empty", concurrency: 4 });
  expect(Object.fromEntries(tries)).toEqual({ a: [1], b: [1, 2, 3], c: [1, 2], d: [1, 2] });
  expect((await all(store)).map(({ state, reason }) => [state, reason])).toEqual([
    ["dead", "final"],
    ["dead", "exhausted"],
    ["done", null],
    ["done", null],
  ]);
});

test("dead letters are redriven one by one or all, and purged", async () => {
  await using store = open();
  const ids: string[] = [];
  for (const text of ["a", "b", "c"]) {
    ids.push((await store.tryOrAdd(text, () => Promise.reject(new PermanentFailure(text))))?.id ?? "");
  }
  await store.redrive(ids[0] ?? "");
  expect((await store.get(ids[0] ?? "")).state).toBe("waiting");
  expect(await failureCode(store.redrive(ids[0] ?? ""))).toBe("FALSE");
  expect(await failureCode(store.redrive("0-999"))).toBe("NOT_FOUND");
  expect(await failureCode(store.get("0-999"))).toBe("NOT_FOUND");
  expect(await store.redriveAll({ error: "b" })).toBe(1);
  expect(await store.purgeAll()).toBe(1);
  await store.cancel(ids[0] ?? "");
  expect((await all(store)).map(({ state }) => state)).toEqual(["cancelled", "waiting", "dropped"]);
  expect((await store.totals()).waiting).toEqual({ count: 1, bytes: 1 });
});

test("processors in two objects share a store: each message has one try", async () => {
  await using one = open();
  await using other = open();
  for (let number = 0; number < 200; number++) await one.add(String(number));
  const tried: string[] = [];
  const handler = ({ text }: { text(): string }) => void tried.push(text());
  await Promise.all([one, other].map((store) => store.process(handler, { until: "empty", concurrency: 8 })));
  expect(tried.sort((a, b) => Number(a) - Number(b))).toEqual(
    Array.from({ length: 200 }, (_, number) => String(number)),
  );
});

test("a processor waits for messages, and its signal lets the tries in flight end", async () => {
  await using store = open();
  const [began, end, stop] = [new OneTimeEvent(), new OneTimeEvent(), new AbortController()];
  const processing = store.process(async () => {
    began.set();
    await end.wait();
  }, { signal: stop.signal });
  const { id } = await store.add("a");
  await began.wait();
  stop.abort();
  end.set();
  await processing;
  expect((await store.get(id)).state).toBe("done");
});

test("a handler is told to stop after the time of a try, and when the processor has to end", async () => {
  await using store = open();
  const { id } = await store.add("a");
  const reasons: unknown[] = [];
  const untilStopped = ({ signal }: { signal: AbortSignal }) =>
    new Promise<void>((_, reject) =>
      signal.addEventListener("abort", () => {
        reasons.push(signal.reason instanceof BatonError && signal.reason.code);
        reject(signal.reason as Error);
      })
    );
  await store.process(untilStopped, { until: "once", attemptTimeoutMs: 20 });
  expect(await store.get(id)).toMatchObject({ state: "waiting", tries: 1, error: "took longer than 20 ms" });
  const stop = new AbortController();
  const began = new OneTimeEvent();
  const processing = store.process((message) => {
    began.set();
    return untilStopped(message);
  }, { signal: stop.signal, drainMs: 1 });
  await began.wait();
  stop.abort();
  await processing;
  expect(reasons).toEqual(["TIME_LIMIT", "REVOKED"]);
  expect(await store.get(id)).toMatchObject({ state: "waiting", tries: 2 });
});

test("a store keeps its messages over its objects, and refuses what is beyond its limits", async () => {
  {
    await using store = open();
    await store.add("a");
  }
  await using store = open({ maxMessages: 1 });
  expect((await all(store)).length).toBe(1);
  expect(await failureCode(store.add("b"))).toBe("STORE_FULL");
  expect(await failureCode(store.tryOrAdd("b", fail("down")))).toBe("STORE_FULL");
});

test("options are checked before anything is created", () => {
  expect(() => open({ name: "../x" })).toThrow("not a valid name");
  expect(() => open({ policy: { maxRetries: -1 } })).toThrow("policy.maxRetries");
  expect(() => open({ policy: { delaysMs: [] } })).toThrow("policy.delaysMs");
  expect(() => open({ maxMessages: 0.5 })).toThrow("maxMessages");
  const untyped = (options: object) => open(options as MessageStoreOptions);
  expect(() => untyped({ policy: { delaysMs: 5 } })).toThrow("delaysMs is 5; expected an array of numbers");
  expect(() => untyped({ policy: { delaysMs: [5, "x"] } })).toThrow('delaysMs[1] is "x"; expected a number');
  expect(() => untyped({ maxMessage: 1 })).toThrow('there is no option "maxMessage"');
  expect(() => untyped({ policy: { retries: 1 } })).toThrow('MessageStore: policy: there is no option "retries"');
});

test("a selection that names no state or no option is refused in words", async () => {
  await using store = open();
  const told = (work: () => Promise<unknown>) => work().then(() => "not refused", (error) => String(error));
  const list = (options: object) => told(() => store.list(options).next());
  expect(await list({ states: ["dead", "daed"] })).toContain(
    'list: states[1] is "daed"; expected "waiting", "in_flight", "done", "dead", "dropped" or "cancelled"',
  );
  expect(await list({ states: "dead" })).toContain(
    'list: states is "dead"; expected an array of "waiting", "in_flight"',
  );
  expect(await list({ key: 1 })).toContain("list: key is 1; expected text");
  const misspelled = { resaon: "final" } as object;
  expect(await told(() => store.purgeAll(misspelled))).toContain('purgeAll: there is no option "resaon"');
  expect(await told(() => store.redriveAll(misspelled))).toContain('redriveAll: there is no option "resaon"');
});

test("a body, a handler or an end that is none is refused, and costs no message a try", async () => {
  await using store = open();
  const untyped = <T>(value: unknown) => value as T;
  for (const wrong of [17, undefined, { a: 1 }, new DataView(new ArrayBuffer(1))]) {
    expect(await failureCode(store.add(untyped(wrong)))).toBe("USAGE");
  }
  const { id } = await store.add("a");
  expect(await failureCode(store.process(untyped(undefined), { until: "empty" }))).toBe("USAGE");
  expect(await failureCode(store.process(() => {}, { until: untyped("empyt") }))).toBe("USAGE");
  expect(await store.get(id)).toMatchObject({ state: "waiting", tries: 0 });
});

test("a closed store ends its processors, and refuses further calls", async () => {
  const store = open();
  await store.add("a");
  const processing = store.process(() => {});
  await store.close();
  await processing;
  expect(await store.add("b").catch((error: Error) => error.name)).toBe("AbortError");
});
