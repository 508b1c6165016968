import { expect, test } from "bun:test";
import { ListenerSet } from "../../../../src/base/support/event.ts";

test("a listener is called at each change until it is removed", () => {
  const changes = new ListenerSet();
  const calls: string[] = [];
  const off = changes.subscribe(() => calls.push("one"));
  changes.subscribe(() => calls.push("other"));
  changes.notify();
  off();
  changes.notify();
  changes.clear();
  changes.notify();
  expect(calls).toEqual(["one", "other", "other"]);
});

test("a listener that is added or removed by another one takes effect with the next change", () => {
  const changes = new ListenerSet();
  const calls: string[] = [];
  changes.subscribe(() => changes.subscribe(() => calls.push("new")));
  changes.notify();
  expect(calls).toEqual([]);
  changes.notify();
  expect(calls).toEqual(["new"]);
});
