import { expect, setDefaultTimeout, test } from "bun:test";
import { Worker } from "node:worker_threads";
import type { BatonError } from "../../../../src/base/errors.ts";
import { StorageThread } from "../../../../src/base/storage/storage_thread.ts";
import type { NumberCalls } from "../../../support/storage_thread_worker.ts";

setDefaultTimeout(60_000);

function newStore() {
  const seen: { readonly events: number[]; readonly broken: string[] } = { events: [], broken: [] };
  const worker = new Worker(new URL("../../../support/storage_thread_worker.ts", import.meta.url));
  const thread = new StorageThread<NumberCalls, number>(worker, {
    what: "The store of numbers",
    onEvent: (number) => seen.events.push(number),
    onBroken: (error) => seen.broken.push(error.message),
  });
  return { thread, seen };
}

const codeOf = (call: Promise<unknown>) => call.then(() => "done", (error: BatonError) => error.code);

test("calls run in their order; those made in one turn run together, and a refusal concerns one of them", async () => {
  const { thread, seen } = newStore();
  expect(await thread.open(null)).toBe("opened");
  const together = [1, 13, 2].map((number) => codeOf(thread.callTogether("add", number)));
  const after = thread.call("sum");
  expect(await Promise.all(together)).toEqual(["done", "BAD_DATA", "done"]);
  expect(await after).toEqual({ sum: 3, transactions: 1 });
  expect(await codeOf(thread.call("add", 13))).toBe("BAD_DATA");
  expect(seen).toEqual({ events: [1, 2], broken: [] });
  await thread.close();
  expect(await codeOf(thread.call("sum"))).toBe("IO");
});

test("a transaction that finds no room refuses all of its calls, and the next ones are done", async () => {
  const { thread } = newStore();
  await thread.open(null);
  await thread.call("fillDisk");
  const refused = [1, 2].map((number) => codeOf(thread.callTogether("add", number)));
  expect(await Promise.all(refused)).toEqual(["STORE_FULL", "STORE_FULL"]);
  expect(await thread.callTogether("add", 3)).toBe(1);
  expect((await thread.call("sum")).sum).toBe(3);
  await thread.close();
});

test("after a failure every call is rejected, and it is reported once", async () => {
  const { thread, seen } = newStore();
  await thread.open(null);
  const calls = [99, 1].map((number) => codeOf(thread.callTogether("add", number)));
  const later = codeOf(thread.call("sum"));
  expect(await Promise.all([...calls, later])).toEqual(["IO", "IO", "IO"]);
  expect(await codeOf(thread.callTogether("add", 1))).toBe("IO");
  expect(seen.broken).toEqual(["The store of numbers cannot be read or written: the disk failed"]);
  expect(await codeOf(thread.close())).toBe("IO");
});

test("a thread that ends rejects the calls that it has not answered", async () => {
  const { thread, seen } = newStore();
  await thread.open(null);
  expect(await codeOf(thread.call("end"))).toBe("IO");
  expect(seen.broken).toEqual(["The store of numbers cannot be read or written: its thread ended"]);
});

test("a store that is not opened is no failure of an open one", async () => {
  const { thread, seen } = newStore();
  expect(await codeOf(thread.open("CONFIG"))).toBe("CONFIG");
  expect(await codeOf(thread.call("sum"))).toBe("IO");
  expect(seen.broken).toEqual([]);
});

test("while a call waits, later calls wait for their turn, and those that need not are answered", async () => {
  const { thread } = newStore();
  await thread.open(null);
  const waits = thread.call("wait", null);
  const added = thread.call("add", 1);
  expect(await thread.call("isWaiting")).toBe(true);
  expect(await waits).toBe(0);
  expect(await added).toBe(1);
  expect(await thread.call("isWaiting")).toBe(false);
  const refused = codeOf(thread.call("wait", "CONFIG"));
  await thread.call("isWaiting");
  expect(await refused).toBe("CONFIG");
  await thread.close();
});
