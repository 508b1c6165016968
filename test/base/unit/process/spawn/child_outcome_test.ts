import { expect, test } from "bun:test";
import { toChildEnd } from "../../../../../src/base/process/spawn/child_outcome.ts";

test("a code, a signal with a name, one without", () => {
  expect(toChildEnd(0, null)).toEqual({ kind: "exited", code: 0 });
  expect(toChildEnd(null, "SIGTERM")).toEqual({ kind: "signaled", signal: "SIGTERM", signalNumber: 15 });
  expect(toChildEnd(null, 40)).toEqual({ kind: "signaled", signal: "SIG40", signalNumber: 40 });
});

test("an end that cannot be read is neither an exit nor a signal", () => {
  expect(toChildEnd(null, null).kind).toBe("unreadable");
  expect(toChildEnd(null, "SIGNOBODYKNOWS").kind).toBe("unreadable");
});
