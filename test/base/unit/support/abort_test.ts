import { describe, expect, test } from "bun:test";
import {
  CleanupScope,
  onAbort,
  rejectOnAbort,
  RunningCalls,
  throwIfAborted,
  whenAborted,
} from "../../../../src/base/support/abort.ts";

const reason = new Error("given up");

describe("onAbort", () => {
  test("calls once, with the reason", () => {
    const controller = new AbortController();
    const heard: unknown[] = [];
    onAbort(controller.signal, (why) => heard.push(why));
    controller.abort(reason);
    controller.abort(new Error("again"));
    expect(heard).toEqual([reason]);
  });

  test("calls at once when it is too late already", () => {
    const heard: unknown[] = [];
    onAbort(AbortSignal.abort(reason), (why) => heard.push(why));
    expect(heard).toEqual([reason]);
  });

  test("leaves nothing behind when taken off", () => {
    const controller = new AbortController();
    const heard: unknown[] = [];
    onAbort(controller.signal, (why) => heard.push(why))();
    controller.abort(reason);
    expect(heard).toEqual([]);
  });
});

describe("abortable", () => {
  test("is the promise where nothing aborts", async () => {
    expect(await rejectOnAbort(Promise.resolve(1), undefined)).toBe(1);
    expect(await rejectOnAbort(Promise.resolve(2), new AbortController().signal)).toBe(2);
    expect(rejectOnAbort(Promise.reject(reason), new AbortController().signal)).rejects.toBe(reason);
  });

  test("rejects with the signal's reason while the promise goes on", async () => {
    const controller = new AbortController();
    const forever = new Promise<never>(() => {});
    const waiting = rejectOnAbort(forever, controller.signal);
    controller.abort(reason);
    expect(waiting).rejects.toBe(reason);
    await waiting.catch(() => {});
  });

  test("takes its listener off when the promise is done first", async () => {
    let listeners = 0;
    const { signal } = new AbortController();
    const spied = new Proxy(signal, {
      get(target, name) {
        if (name === "addEventListener") return () => listeners++;
        if (name === "removeEventListener") return () => listeners--;
        return Reflect.get(target, name, target);
      },
    });
    await rejectOnAbort(Promise.resolve(), spied);
    await Promise.resolve();
    expect(listeners).toBe(0);
  });
});

test("throwIfAborted throws the reason itself", () => {
  expect(() => throwIfAborted(AbortSignal.abort(reason))).toThrow(reason);
  throwIfAborted(undefined);
  throwIfAborted(new AbortController().signal);
});

test("a scope ends what it has, in its order and once; what is added later ends immediately", () => {
  const ended: string[] = [];
  {
    using scope = new CleanupScope(() => ended.push("first"));
    scope.add(() => ended.push("second"));
    expect(ended).toEqual([]);
    scope[Symbol.dispose]();
    expect(ended).toEqual(["first", "second"]);
    scope.add(() => ended.push("late"));
    expect(ended).toEqual(["first", "second", "late"]);
  }
  expect(ended).toEqual(["first", "second", "late"]);
});

test("an owner waits for its calls, also for those that fail", async () => {
  const calls = new RunningCalls();
  const { promise, reject } = Promise.withResolvers<void>();
  const failing = calls.run(() => promise);
  let isOver = false;
  const ended = calls.ended().then(() => isOver = true);
  await Promise.resolve();
  expect(isOver).toBe(false);
  reject(new Error("failed"));
  await expect(failing).rejects.toThrow("failed");
  await ended;
});

test("aborted resolves with the signal", async () => {
  const controller = new AbortController();
  const waiting = whenAborted(controller.signal);
  controller.abort(new Error("the reason is no rejection"));
  await waiting;
  await whenAborted(controller.signal);
});
