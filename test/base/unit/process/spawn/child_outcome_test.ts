import { expect, test } from "bun:test";
import { childEndOf } from "../../../../../src/base/process/spawn/child_outcome.ts";

test("a code, a signal with a name, one without", () => {
  expect(childEndOf(0, null)).toEqual({ kind: "exited", code: 0 });
  expect(childEndOf(null, "SIGTERM")).toEqual({ kind: "signaled", signal: "SIGTERM", signalNumber: 15 });
  expect(childEndOf(null, 40)).toEqual({ kind: "signaled", signal: "SIG40", signalNumber: 40 });
});

test("an end that cannot be read is neither an exit nor a signal", () => {
  expect(childEndOf(null, null).kind).toBe("unreadable");
  expect(childEndOf(null, "SIGNOBODYKNOWS").kind).toBe("unreadable");
});
